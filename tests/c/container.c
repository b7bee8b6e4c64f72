/* Opening a container, and what it says: tensors, layers, metadata, strings of the tokenizer. */
#define _POSIX_C_SOURCE 200809L

#include <math.h>

#include "story.h"

/* ---- opening ---- */

static void test_open(file f) {
    p64_container container;
    p64_error error;
    p64_info info;
    CHECK_STATUS(p64_container_open(NULL, f.data, f.len, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK(error.status == P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_container_open(CROOKED(p64_container), f.data, f.len, NULL, &error), P64_STATUS_MISALIGNED);
    CHECK(error.expected > 1 && error.found % error.expected != 0);
    CHECK_STATUS(p64_container_open(&container, NULL, 64, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_container_open(&container, NULL, 0, NULL, &error), P64_STATUS_TOO_SHORT);
    CHECK_STATUS(p64_container_open(&container, f.data, SIZE_MAX, NULL, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_container_open(&container, f.data, SIZE_MAX / 2, NULL, &error), P64_STATUS_FILE_TOO_LARGE);
    /* An error at an odd address is written all the same. */
    CHECK_STATUS(p64_container_open(&container, NULL, 64, NULL, CROOKED(p64_error)), P64_STATUS_NULL_POINTER);
    memcpy(&error, CROOKED(unsigned char), sizeof error);
    CHECK(error.status == P64_STATUS_NULL_POINTER);

    /* Storage whose opening failed counts as not opened, also where it was open before. */
    container = opened(f);
    CHECK_OK(p64_container_info(&container, &info, &error));
    p64_open_options o = options();
    o.policy = P64_POLICY_STRICT;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len - 1, &o, &error), P64_STATUS_FILE_LENGTH);
    CHECK(error.expected == f.len && error.found == f.len - 1);
    CHECK_STATUS(p64_container_info(&container, &info, &error), P64_STATUS_NOT_OPEN);

    for (size_t cut = 0; cut < 4096 && cut < f.len; cut += 61) {
        CHECK(p64_container_open(&container, f.data, cut, NULL, &error) != P64_STATUS_OK);
    }

    CHECK_OK(p64_container_open(&container, f.data, f.len, &o, &error));
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, CROOKED(p64_open_options), &error), P64_STATUS_MISALIGNED);
    o.struct_size -= 1;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_BAD_STRUCT_SIZE);
    CHECK(error.expected == sizeof o && error.found == sizeof o - 1);
    o.struct_size = 0;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_BAD_STRUCT_SIZE);
    o = options();
    o.policy = 2;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_BAD_ARGUMENT);
    o = options();
    o.integrity = UINT32_MAX;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_BAD_ARGUMENT);
    o = options();
    o.reserved = 1;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_BAD_ARGUMENT);

    /* Lent memory: too short, misaligned, part of the file, enough. */
    uint32_t count = 0;
    container = opened(f);
    CHECK_OK(p64_container_tensor_count(&container, &count, &error));
    p64_name_slot *names = calloc(count, sizeof *names);
    uint8_t *verified = malloc(count);
    memset(verified, 0xa5, count);
    o = options();
    o.names = names;
    o.names_len = count - 1;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_TOO_MANY_TENSORS);
    o.names = CROOKED(p64_name_slot);
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_MISALIGNED);
    o.names = NULL;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_NULL_POINTER);
    o.names = (p64_name_slot *)(void *)f.data;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_BAD_ARGUMENT);
    o.names = names;
    o.names_len = count;
    o.integrity = P64_INTEGRITY_LAZY;
    o.verified = verified;
    o.verified_len = count - 1;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_BUFFER_TOO_SMALL);
    o.verified = f.data + 64;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_BAD_ARGUMENT);
    o.verified = verified;
    o.verified_len = count;
    CHECK_OK(p64_container_open(&container, f.data, f.len, &o, &error));
    CHECK(verified[0] == 0);
    const uint8_t *data = NULL;
    size_t len = 0;
    CHECK_OK(p64_tensor_data(&container, 0, &data, &len, &error));
    CHECK(verified[0] == 1 && verified[1] == 0);

    /* A copy is as good as the original. */
    p64_container copy = container;
    memset(&container, 0, sizeof container);
    p64_tensor tensor;
    CHECK_OK(p64_container_find(&copy, TEXT("output_norm.weight"), &tensor, &error));
    CHECK(tensor.role == P64_ROLE_OUTPUT_NORM);
    free(names);
    free(verified);
}

/* ---- what a container says ---- */

static void test_tensors(file f) {
    p64_container container = opened(f);
    p64_error error;
    p64_info info;
    p64_hparams hparams;
    CHECK_OK(p64_container_info(&container, &info, &error));
    CHECK(info.version == 4 && info.file_len == f.len && info.has_tokenizer == 1 && info.n_layer > 0);
    CHECK(info.blob_floor + info.tensor_bytes + info.padding_bytes >= info.file_len);
    CHECK(info.tensor_bytes + info.padding_bytes < info.file_len);
    CHECK_OK(p64_container_hparams(&container, &hparams, &error));
    CHECK(hparams.n_layer == info.n_layer && hparams.vocab_size == VOCABULARY && hparams.n_embd > 0);
    CHECK(hparams.n_head % hparams.n_kv_head == 0 && hparams.rope_freq_base > 0);

    uint32_t count = 0;
    CHECK_OK(p64_container_tensor_count(&container, &count, &error));
    CHECK(count == info.tensor_count);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        p64_tensor tensor, same;
        CHECK_OK(p64_container_tensor(&container, i, &tensor, &error));
        CHECK(tensor.index == i && tensor.rank >= 1 && tensor.rank <= 4 && tensor.name[tensor.name_len] == 0);
        CHECK((const unsigned char *)tensor.name > f.data && (const unsigned char *)tensor.name < f.data + f.len);
        CHECK_OK(p64_container_find(&container, tensor.name, tensor.name_len, &same, &error));
        CHECK(same.index == i && same.offset == tensor.offset && same.size == tensor.size);
        if (tensor.role != P64_ROLE_NONE) {
            CHECK_OK(p64_container_find_role(&container, tensor.role, tensor.layer, &same, &error));
            CHECK(same.index == i);
        }
        const uint8_t *data = NULL;
        size_t len = 0;
        CHECK_OK(p64_tensor_verify(&container, i, &error));
        CHECK_OK(p64_tensor_data(&container, i, &data, &len, &error));
        CHECK(data == f.data + tensor.offset && len == tensor.size);
        bytes += len;
    }
    CHECK(bytes == info.tensor_bytes);
    CHECK_OK(p64_container_verify_all(&container, &error));

    p64_tensor tensor;
    const uint8_t *data = NULL;
    size_t len = 0;
    CHECK_STATUS(p64_container_tensor(&container, count, &tensor, &error), P64_STATUS_NO_SUCH_TENSOR);
    CHECK(error.expected == count && error.found == count);
    CHECK_STATUS(p64_tensor_verify(&container, UINT32_MAX, &error), P64_STATUS_NO_SUCH_TENSOR);
    CHECK_STATUS(p64_tensor_data(&container, count, &data, &len, &error), P64_STATUS_NO_SUCH_TENSOR);
    CHECK_STATUS(p64_container_find(&container, TEXT("no such name"), &tensor, &error), P64_STATUS_NOT_FOUND);
    CHECK_STATUS(p64_container_find(&container, TEXT("\xff\xfe"), &tensor, &error), P64_STATUS_NOT_FOUND);
    CHECK_STATUS(p64_container_find(&container, NULL, 0, &tensor, &error), P64_STATUS_NOT_FOUND);
    CHECK_STATUS(p64_container_find(&container, NULL, 4, &tensor, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_container_find(&container, "name", SIZE_MAX, &tensor, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_container_find_role(&container, P64_ROLE_VISION_FC, 0, &tensor, &error), P64_STATUS_NOT_FOUND);
    CHECK_STATUS(p64_container_find_role(&container, 0x10000, 0, &tensor, &error), P64_STATUS_BAD_ARGUMENT);

    uint64_t end = 0;
    for (uint32_t layer = 0; layer <= info.n_layer; layer++) {
        p64_layer unit;
        p64_manifold place;
        CHECK_OK(p64_container_layer(&container, layer, &unit, &error));
        CHECK(unit.layer == layer && unit.tensor_count > 0 && unit.begin < unit.end && unit.end <= f.len);
        CHECK(layer == info.n_layer || unit.begin >= end);
        end = unit.end;
        CHECK_OK(p64_container_manifold(&container, layer, &place, &error));
        CHECK(fabsf(place.values[0] - (float)layer / (float)info.n_layer) < 1e-6f);
    }
    p64_layer unit;
    p64_manifold place;
    CHECK_STATUS(p64_container_layer(&container, info.n_layer + 1, &unit, &error), P64_STATUS_NOT_FOUND);
    CHECK_STATUS(p64_container_manifold(&container, info.n_layer + 1, &place, &error), P64_STATUS_NOT_FOUND);
}

static void test_metadata(file f) {
    p64_container container = opened(f);
    p64_metadata area, other;
    p64_error error;
    p64_value value, element;
    const char *key = NULL;
    size_t key_len = 0;
    uint32_t count = 0;
    CHECK_OK(p64_container_metadata(&container, P64_AREA_SOURCE, &area, &error));
    CHECK_OK(p64_container_metadata(&container, P64_AREA_PROVENANCE, &other, &error));
    CHECK_STATUS(p64_container_metadata(&container, 2, &other, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_metadata_count(&other, &count, &error), P64_STATUS_NOT_OPEN);
    CHECK_OK(p64_metadata_count(&area, &count, &error));
    CHECK(count > 10);

    CHECK_OK(p64_metadata_get(&area, TEXT("general.architecture"), &value, &error));
    CHECK(value.kind == P64_KIND_STRING && value.data_len == 5 && memcmp(value.data, "llama", 5) == 0);
    uint64_t u64 = 0;
    int64_t i64 = 0;
    double f64 = 0;
    CHECK_STATUS(p64_value_u64(&value, &u64, &error), P64_STATUS_METADATA_WRONG_TYPE);
    CHECK_STATUS(p64_value_i64(&value, &i64, &error), P64_STATUS_METADATA_WRONG_TYPE);
    CHECK_STATUS(p64_value_f64(&value, &f64, &error), P64_STATUS_METADATA_WRONG_TYPE);
    CHECK_STATUS(p64_value_at(&value, 0, &element, &error), P64_STATUS_METADATA_WRONG_TYPE);
    CHECK_STATUS(p64_value_next(&value, &element, &error), P64_STATUS_METADATA_WRONG_TYPE);
    p64_hparams hparams;
    CHECK_OK(p64_container_hparams(&container, &hparams, &error));
    CHECK_OK(p64_metadata_get(&area, TEXT("llama.block_count"), &value, &error));
    CHECK_OK(p64_value_u64(&value, &u64, &error));
    CHECK_OK(p64_value_i64(&value, &i64, &error));
    CHECK(u64 == hparams.n_layer && i64 == (int64_t)hparams.n_layer);
    CHECK_STATUS(p64_value_f64(&value, &f64, &error), P64_STATUS_METADATA_WRONG_TYPE);
    CHECK_OK(p64_metadata_get(&area, TEXT("llama.attention.layer_norm_rms_epsilon"), &value, &error));
    CHECK_OK(p64_value_f64(&value, &f64, &error));
    CHECK(f64 > 0 && f64 < 1e-3);
    CHECK_STATUS(p64_metadata_get(&area, TEXT("no.such.key"), &value, &error), P64_STATUS_NOT_FOUND);
    CHECK_STATUS(p64_metadata_get(&area, NULL, 3, &value, &error), P64_STATUS_NULL_POINTER);

    /* Values that no library made: every number is an answer or a status. */
    p64_value made = {P64_KIND_I8, 0, 0, NULL, 0, (uint64_t)-3};
    CHECK_OK(p64_value_i64(&made, &i64, &error));
    CHECK(i64 == -3);
    CHECK_STATUS(p64_value_u64(&made, &u64, &error), P64_STATUS_METADATA_WRONG_TYPE);
    made.kind = P64_KIND_BOOL;
    made.bits = 1;
    CHECK_OK(p64_value_u64(&made, &u64, &error));
    CHECK(u64 == 1);
    made.kind = P64_KIND_U64;
    made.bits = UINT64_MAX;
    CHECK_STATUS(p64_value_i64(&made, &i64, &error), P64_STATUS_METADATA_WRONG_TYPE);
    memset(&made, 0xff, sizeof made);
    CHECK_STATUS(p64_value_u64(&made, &u64, &error), P64_STATUS_METADATA_WRONG_TYPE);
    CHECK_STATUS(p64_value_at(&made, 0, &element, &error), P64_STATUS_METADATA_WRONG_TYPE);
    made.kind = P64_KIND_ARRAY;
    made.element_kind = P64_KIND_U8;
    CHECK_STATUS(p64_value_at(&made, 0, &element, &error), P64_STATUS_BAD_ARGUMENT);
    made.data = f.data;
    made.data_len = 7;
    made.element_kind = P64_KIND_U32;
    CHECK_OK(p64_value_at(&made, 0, &element, &error));
    CHECK_STATUS(p64_value_at(&made, 1, &element, &error), P64_STATUS_NOT_FOUND);
    CHECK_STATUS(p64_value_at(&made, UINT64_MAX - 1, &element, &error), P64_STATUS_NOT_FOUND);
    made.element_kind = P64_KIND_STRING;
    CHECK_STATUS(p64_value_next(&made, &element, &error), P64_STATUS_NOT_FOUND);
    made.element_kind = P64_KIND_ARRAY;
    CHECK_STATUS(p64_value_next(&made, &element, &error), P64_STATUS_METADATA_WRONG_TYPE);

    /* One pass over all pairs, beside look-up by position; arrays in one pass beside look-up by index. */
    uint32_t seen = 0, arrays = 0;
    while (p64_metadata_next(&area, &key, &key_len, &value, &error) == P64_STATUS_OK) {
        const char *same_key = NULL;
        size_t same_len = 0;
        p64_value same;
        CHECK_OK(p64_metadata_at(&area, seen, &same_key, &same_len, &same, &error));
        CHECK(same_key == key && same_len == key_len && same.kind == value.kind && same.data == value.data);
        if (value.kind == P64_KIND_ARRAY) {
            uint64_t at = 0, total = value.count;
            arrays += 1;
            while (p64_value_next(&value, &element, &error) == P64_STATUS_OK) {
                if (at % 97 == 0) {
                    p64_value indexed;
                    CHECK_OK(p64_value_at(&same, at, &indexed, &error));
                    CHECK(indexed.kind == same.element_kind && indexed.data == element.data && indexed.bits == element.bits);
                }
                at += 1;
            }
            CHECK(at == total && value.count == 0 && value.data_len == 0);
            CHECK_STATUS(p64_value_at(&same, total, &element, &error), P64_STATUS_NOT_FOUND);
        }
        seen += 1;
    }
    CHECK(error.status == P64_STATUS_NOT_FOUND && seen == count && arrays >= 2);
    CHECK_STATUS(p64_metadata_at(&area, count, &key, &key_len, &value, &error), P64_STATUS_NOT_FOUND);
}

static void test_tokenizer(file f) {
    p64_container container = opened(f);
    p64_error error;
    p64_tokenizer tokenizer;
    const char *text = NULL, *right = NULL;
    size_t len = 0, right_len = 0;
    CHECK_OK(p64_container_tokenizer(&container, &tokenizer, &error));
    CHECK(tokenizer.token_count == VOCABULARY && tokenizer.merge_count > 0 && tokenizer.bos == 1 && tokenizer.version == 1);
    p64_strings rest = tokenizer.tokens;
    uint32_t seen = 0;
    while (p64_strings_next(&rest, &text, &len, &error) == P64_STATUS_OK) {
        const char *same = NULL;
        size_t same_len = 0;
        CHECK_OK(p64_tokenizer_token(&container, seen, &same, &same_len, &error));
        CHECK(same == text && same_len == len);
        seen += 1;
    }
    CHECK(error.status == P64_STATUS_NOT_FOUND && seen == tokenizer.token_count && rest.len == 0);
    rest = tokenizer.merges;
    for (uint32_t i = 0; i < tokenizer.merge_count; i++) {
        const char *left = NULL;
        size_t left_len = 0;
        CHECK_OK(p64_tokenizer_merge(&container, i, &left, &left_len, &right, &right_len, &error));
        CHECK_OK(p64_strings_next(&rest, &text, &len, &error));
        CHECK(left == text && left_len == len);
        CHECK_OK(p64_strings_next(&rest, &text, &len, &error));
        CHECK(right == text && right_len == len);
    }
    CHECK_STATUS(p64_tokenizer_token(&container, VOCABULARY, &text, &len, &error), P64_STATUS_NOT_FOUND);
    CHECK_STATUS(p64_tokenizer_merge(&container, UINT32_MAX, &text, &len, &right, &right_len, &error), P64_STATUS_NOT_FOUND);
    uint8_t broken[] = {9, 0, 0, 0, 'x'};
    rest.data = broken;
    rest.len = sizeof broken;
    CHECK_STATUS(p64_strings_next(&rest, &text, &len, &error), P64_STATUS_NOT_FOUND);
    rest.data = NULL;
    CHECK_STATUS(p64_strings_next(&rest, &text, &len, &error), P64_STATUS_NULL_POINTER);
}

int main(int argc, char **argv) {
    file f = story_model("container", argc, argv);
    test_open(f);
    test_tensors(f);
    test_metadata(f);
    test_tokenizer(f);
    free(f.data);
    return checks_end("container");
}
