/* Function by function: NULL, misaligned pointers, storage that was never opened. */
#define _POSIX_C_SOURCE 200809L

#include "story.h"

/* ---- misuse, function by function ---- */

/* Each function that takes a container, with storage of which `want` is to be said. */
static void every_call_with(const p64_container *c, p64_status want) {
    union {
        uint32_t u32;
        size_t size;
        p64_info info;
        p64_hparams hparams;
        p64_tensor tensor;
        p64_layer layer;
        p64_manifold manifold;
        p64_metadata metadata;
        p64_tokenizer tokenizer;
        p64_decode_memory memory;
        p64_decoder decoder;
    } out;
    p64_error error;
    const uint8_t *data = NULL;
    const char *text = NULL, *right = NULL;
    size_t len = 0, right_len = 0;
    float number = 0;
    CHECK_STATUS(p64_container_info(c, &out.info, &error), want);
    CHECK_STATUS(p64_container_hparams(c, &out.hparams, &error), want);
    CHECK_STATUS(p64_container_verify_all(c, &error), want);
    CHECK_STATUS(p64_container_tensor_count(c, &out.u32, &error), want);
    CHECK_STATUS(p64_container_tensor(c, 0, &out.tensor, &error), want);
    CHECK_STATUS(p64_container_find(c, TEXT("output_norm.weight"), &out.tensor, &error), want);
    CHECK_STATUS(p64_container_find_role(c, P64_ROLE_ATTN_Q, 0, &out.tensor, &error), want);
    CHECK_STATUS(p64_tensor_data(c, 0, &data, &len, &error), want);
    CHECK_STATUS(p64_tensor_verify(c, 0, &error), want);
    CHECK_STATUS(p64_container_layer(c, 0, &out.layer, &error), want);
    CHECK_STATUS(p64_container_manifold(c, 0, &out.manifold, &error), want);
    CHECK_STATUS(p64_container_metadata(c, 0, &out.metadata, &error), want);
    CHECK_STATUS(p64_container_tokenizer(c, &out.tokenizer, &error), want);
    CHECK_STATUS(p64_tokenizer_token(c, 0, &text, &len, &error), want);
    CHECK_STATUS(p64_tokenizer_merge(c, 0, &text, &len, &right, &right_len, &error), want);
    CHECK_STATUS(p64_tensor_dequantize(c, 0, 0, 0, &number, 0, &error), want);
    CHECK_STATUS(p64_tensor_gemv_required(c, 0, &out.size, &error), want);
    if (want != P64_STATUS_OK) {
        CHECK_STATUS(p64_tensor_gemv(c, 0, &number, 1, &number + 1, 0, NULL, 0, 0, &error), want);
        CHECK_STATUS(p64_decoder_init(&out.decoder, c, 1, 1, memory_of_tests(), 16, &error), want);
        CHECK(data == NULL && text == NULL && right == NULL && len == 0);
    }
    CHECK_STATUS(p64_decode_required(c, 1, 1, &out.memory, &error), want);
}

/* Each place for a result, as NULL and misaligned. */
#define EACH_PLACE(type, call) \
    do { \
        type *place = NULL; \
        CHECK_STATUS(call, P64_STATUS_NULL_POINTER); \
        place = CROOKED(type); \
        CHECK_STATUS(call, P64_STATUS_MISALIGNED); \
    } while (0)

static void test_misuse(file f) {
    p64_container container = opened(f), garbage;
    p64_error error;
    every_call_with(&container, P64_STATUS_OK);
    every_call_with(NULL, P64_STATUS_NULL_POINTER);
    every_call_with(CROOKED(p64_container), P64_STATUS_MISALIGNED);
    memset(&garbage, 0, sizeof garbage);
    every_call_with(&garbage, P64_STATUS_NOT_OPEN);
    memset(&garbage, 0xa5, sizeof garbage);
    every_call_with(&garbage, P64_STATUS_NOT_OPEN);

    const p64_container *c = &container;
    p64_metadata area, closed;
    p64_value value = {P64_KIND_U32, 0, 0, NULL, 0, 7}, array, element;
    p64_tokenizer tokenizer;
    p64_tensor tensor;
    const uint8_t *data = NULL;
    const char *text = NULL;
    size_t len = 0;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    int64_t i64 = 0;
    double f64 = 0;
    EACH_PLACE(p64_info, p64_container_info(c, place, &error));
    EACH_PLACE(p64_hparams, p64_container_hparams(c, place, &error));
    EACH_PLACE(uint32_t, p64_container_tensor_count(c, place, &error));
    EACH_PLACE(p64_tensor, p64_container_tensor(c, 0, place, &error));
    EACH_PLACE(p64_tensor, p64_container_find(c, TEXT("output_norm.weight"), place, &error));
    EACH_PLACE(p64_tensor, p64_container_find_role(c, P64_ROLE_ATTN_Q, 0, place, &error));
    EACH_PLACE(const uint8_t *, p64_tensor_data(c, 0, place, &len, &error));
    EACH_PLACE(size_t, p64_tensor_data(c, 0, &data, place, &error));
    EACH_PLACE(p64_layer, p64_container_layer(c, 0, place, &error));
    EACH_PLACE(p64_manifold, p64_container_manifold(c, 0, place, &error));
    EACH_PLACE(p64_metadata, p64_container_metadata(c, 0, place, &error));
    EACH_PLACE(p64_tokenizer, p64_container_tokenizer(c, place, &error));
    EACH_PLACE(const char *, p64_tokenizer_token(c, 0, place, &len, &error));
    EACH_PLACE(size_t, p64_tokenizer_token(c, 0, &text, place, &error));
    EACH_PLACE(const char *, p64_tokenizer_merge(c, 0, place, &len, &text, &len, &error));
    EACH_PLACE(size_t, p64_tokenizer_merge(c, 0, &text, place, &text, &len, &error));
    EACH_PLACE(const char *, p64_tokenizer_merge(c, 0, &text, &len, place, &len, &error));
    EACH_PLACE(size_t, p64_tokenizer_merge(c, 0, &text, &len, &text, place, &error));
    EACH_PLACE(size_t, p64_tensor_gemv_required(c, 0, place, &error));
    EACH_PLACE(p64_decode_memory, p64_decode_required(c, 1, 1, place, &error));

    CHECK_OK(p64_container_metadata(c, P64_AREA_SOURCE, &area, &error));
    CHECK_OK(p64_metadata_get(&area, TEXT("tokenizer.ggml.tokens"), &array, &error));
    EACH_PLACE(uint32_t, p64_metadata_count(&area, place, &error));
    EACH_PLACE(const char *, p64_metadata_at(&area, 0, place, &len, &value, &error));
    EACH_PLACE(size_t, p64_metadata_at(&area, 0, &text, place, &value, &error));
    EACH_PLACE(p64_value, p64_metadata_at(&area, 0, &text, &len, place, &error));
    EACH_PLACE(const char *, p64_metadata_next(&area, place, &len, &value, &error));
    EACH_PLACE(p64_value, p64_metadata_next(&area, &text, &len, place, &error));
    EACH_PLACE(p64_value, p64_metadata_get(&area, TEXT("general.architecture"), place, &error));
    EACH_PLACE(p64_metadata, p64_metadata_next(place, &text, &len, &value, &error));
    EACH_PLACE(const p64_metadata, p64_metadata_count(place, &u32, &error));
    EACH_PLACE(const p64_value, p64_value_u64(place, &u64, &error));
    EACH_PLACE(uint64_t, p64_value_u64(&value, place, &error));
    EACH_PLACE(const p64_value, p64_value_i64(place, &i64, &error));
    EACH_PLACE(int64_t, p64_value_i64(&value, place, &error));
    EACH_PLACE(const p64_value, p64_value_f64(place, &f64, &error));
    EACH_PLACE(double, p64_value_f64(&value, place, &error));
    EACH_PLACE(const p64_value, p64_value_at(place, 0, &element, &error));
    EACH_PLACE(p64_value, p64_value_at(&array, 0, place, &error));
    EACH_PLACE(p64_value, p64_value_next(place, &element, &error));
    EACH_PLACE(p64_value, p64_value_next(&array, place, &error));
    memset(&closed, 0xa5, sizeof closed);
    CHECK_STATUS(p64_metadata_count(&closed, &u32, &error), P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_metadata_at(&closed, 0, &text, &len, &value, &error), P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_metadata_next(&closed, &text, &len, &value, &error), P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_metadata_get(&closed, TEXT("x"), &value, &error), P64_STATUS_NOT_OPEN);

    CHECK_OK(p64_container_tokenizer(c, &tokenizer, &error));
    EACH_PLACE(p64_strings, p64_strings_next(place, &text, &len, &error));
    EACH_PLACE(const char *, p64_strings_next(&tokenizer.tokens, place, &len, &error));
    EACH_PLACE(size_t, p64_strings_next(&tokenizer.tokens, &text, place, &error));
    (void)tensor;
    (void)data;
}

int main(int argc, char **argv) {
    file f = story_model("misuse", argc, argv);
    test_misuse(f);
    free(f.data);
    return checks_end("misuse");
}
