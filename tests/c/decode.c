/* Dequantising, products and the decode step; the same from eight threads at once. */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <pthread.h>

#include "story.h"

enum { CONTEXT = 64, BATCH = 4, GENERATED = 32, THREADS = 8 };

/* "Once upon a time", and how the model goes on; numpy says so (tests/data/tiny). */
static const uint32_t PROMPT_IDS[] = {1, 427, 537, 260, 450};
static const uint32_t GENERATED_IDS[GENERATED] = {15,  412, 288, 260, 540, 423, 319, 714, 17,  406, 321,
                                                  318, 260, 872, 871, 328, 260, 462, 662, 17,  714, 442,
                                                  260, 462, 618, 17,  406, 902, 595, 295, 411, 615};

/* ---- arithmetic ---- */

static void test_kernels(file f) {
    p64_container container = opened(f);
    p64_error error;
    p64_tensor t;
    CHECK_OK(p64_container_find(&container, TEXT("blk.0.ffn_gate.weight"), &t, &error));
    size_t cols = t.dims[0], rows = t.dims[1], scratch_len = 0;
    float *w = malloc(rows * cols * sizeof *w), *x = malloc(cols * sizeof *x), *y = malloc(rows * sizeof *y);
    CHECK_OK(p64_tensor_dequantize(&container, t.index, 0, rows, w, rows * cols, &error));
    CHECK_OK(p64_tensor_dequantize(&container, t.index, rows, 0, NULL, 0, &error));
    CHECK_STATUS(p64_tensor_dequantize(&container, t.index, 0, 1, w, cols - 1, &error), P64_STATUS_LENGTH_MISMATCH);
    CHECK(error.expected == cols && error.found == cols - 1 && error.place == P64_PLACE_TENSOR && error.index == t.index);
    CHECK_STATUS(p64_tensor_dequantize(&container, t.index, rows, 1, w, cols, &error), P64_STATUS_LENGTH_MISMATCH);
    CHECK_STATUS(p64_tensor_dequantize(&container, t.index, UINT64_MAX, 2, w, cols, &error), P64_STATUS_LENGTH_MISMATCH);
    CHECK_STATUS(p64_tensor_dequantize(&container, t.index, 0, 1, NULL, cols, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_tensor_dequantize(&container, t.index, 0, 1, CROOKED(float), cols, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_tensor_dequantize(&container, t.index, 0, 1, (float *)(void *)(f.data + t.offset), cols, &error),
                 P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_tensor_dequantize(&container, UINT32_MAX, 0, 1, w, cols, &error), P64_STATUS_NO_SUCH_TENSOR);

    for (size_t i = 0; i < cols; i++) x[i] = sinf((float)i);
    CHECK_OK(p64_tensor_gemv_required(&container, t.index, &scratch_len, &error));
    unsigned char *scratch = malloc(scratch_len + 1);
    for (uint32_t mode = P64_ACTIVATIONS_QUANTIZED; mode <= P64_ACTIVATIONS_F32; mode++) {
        for (int shift = 0; shift < 2; shift++) { /* scratch may begin anywhere */
            CHECK_OK(p64_tensor_gemv(&container, t.index, x, cols, y, rows, scratch + shift, scratch_len, mode, &error));
            for (size_t r = 0; r < rows; r++) {
                double want = 0;
                for (size_t i = 0; i < cols; i++) want += (double)w[r * cols + i] * x[i];
                CHECK(fabs(want - (double)y[r]) < 1e-4);
            }
        }
    }
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, x, cols, y, rows, scratch, scratch_len, 2, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, x, cols - 1, y, rows, scratch, scratch_len, 0, &error),
                 P64_STATUS_LENGTH_MISMATCH);
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, x, cols, y, rows - 1, scratch, scratch_len, 0, &error),
                 P64_STATUS_LENGTH_MISMATCH);
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, x, cols, y, rows, scratch, 40, 0, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, x, cols, y, rows, NULL, 0, 0, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, x, cols, x, rows, scratch, scratch_len, 0, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, x, cols, y, rows, y, scratch_len, 0, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, NULL, cols, y, rows, scratch, scratch_len, 0, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, x, cols, NULL, rows, scratch, scratch_len, 0, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, CROOKED(float), cols, y, rows, scratch, scratch_len, 0, &error),
                 P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_tensor_gemv_required(&container, UINT32_MAX, &scratch_len, &error), P64_STATUS_NO_SUCH_TENSOR);

    uint32_t best = 0;
    const float values[] = {1, 3, 3, 2};
    CHECK_OK(p64_argmax(values, 4, &best, &error));
    CHECK(best == 1);
    CHECK_STATUS(p64_argmax(values, 0, &best, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_argmax(NULL, 4, &best, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_argmax(values, SIZE_MAX / 4, &best, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_argmax(CROOKED(float), 4, &best, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_argmax(values, 4, NULL, &error), P64_STATUS_NULL_POINTER);
    free(scratch);
    free(w);
    free(x);
    free(y);
}

/* ---- decoding ---- */

/* The prompt in steps of `chunk` tokens, then GENERATED greedy ones. */
static void generate(const p64_container *container, size_t chunk) {
    p64_error error;
    p64_decode_memory need;
    p64_decoder decoder;
    size_t position = 0, n = sizeof PROMPT_IDS / sizeof *PROMPT_IDS;
    CHECK_OK(p64_decode_required(container, CONTEXT, BATCH, &need, &error));
    CHECK(need.logits == VOCABULARY && need.bytes > 0);
    void *memory = aligned(&need);
    float *logits = malloc(need.logits * sizeof *logits);
    CHECK_OK(p64_decoder_init(&decoder, container, CONTEXT, BATCH, memory, need.bytes, &error));
    for (size_t at = 0; at < n; at += chunk) {
        size_t now = n - at < chunk ? n - at : chunk;
        size_t len = at + now == n ? need.logits : 0;
        CHECK_OK(p64_decoder_step(&decoder, PROMPT_IDS + at, now, len ? logits : NULL, len, &error));
    }
    for (size_t i = 0; i < GENERATED; i++) {
        uint32_t token = 0;
        CHECK_OK(p64_argmax(logits, need.logits, &token, &error));
        CHECK(token == GENERATED_IDS[i]);
        CHECK_OK(p64_decoder_step(&decoder, &token, 1, logits, need.logits, &error));
    }
    CHECK_OK(p64_decoder_position(&decoder, &position, &error));
    CHECK(position == n + GENERATED);
    free(memory);
    free(logits);
}

static void test_decoder(file f) {
    p64_container container = opened(f);
    for (size_t chunk = 1; chunk <= 6; chunk++) generate(&container, chunk);

    p64_error error;
    p64_decode_memory need;
    p64_decoder decoder;
    size_t position = 99;
    memset(&decoder, 0xa5, sizeof decoder);
    CHECK_STATUS(p64_decoder_position(&decoder, &position, &error), P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_decoder_truncate(&decoder, 0, &error), P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_decoder_step(&decoder, PROMPT_IDS, 1, NULL, 0, &error), P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_decoder_step(NULL, PROMPT_IDS, 1, NULL, 0, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_decode_required(&container, 0, 1, &need, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_decode_required(&container, 1, 0, &need, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_OK(p64_decode_required(&container, SIZE_MAX, SIZE_MAX, &need, &error));
    CHECK(need.bytes == SIZE_MAX);
    CHECK_OK(p64_decode_required(&container, 8, 2, &need, &error));
    unsigned char *memory = aligned(&need);
    float *logits = malloc(need.logits * sizeof *logits);
    CHECK_STATUS(p64_decoder_init(&decoder, &container, 8, 2, memory, need.bytes - 1, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK(error.expected == need.bytes && error.found == need.bytes - 1);
    CHECK_STATUS(p64_decoder_init(&decoder, &container, 8, 2, memory + 4, need.bytes, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_decoder_init(&decoder, &container, 8, 2, NULL, need.bytes, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_decoder_init(&decoder, &container, 8, 0, memory, need.bytes, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_decoder_init(&decoder, &container, SIZE_MAX / 8, 2, memory, SIZE_MAX - 1, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_decoder_init(&decoder, &container, SIZE_MAX / 8, 2, memory, SIZE_MAX, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_decoder_init(NULL, &container, 8, 2, memory, need.bytes, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_decoder_init(CROOKED(p64_decoder), &container, 8, 2, memory, need.bytes, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_decoder_position(&decoder, &position, &error), P64_STATUS_NOT_OPEN);
    CHECK(position == 99);

    CHECK_OK(p64_decoder_init(&decoder, &container, 8, 2, memory, need.bytes, &error));
    memset(&container, 0, sizeof container); /* the decoder does not need it */
    const uint32_t bad[] = {1, 2, VOCABULARY};
    CHECK_STATUS(p64_decoder_step(&decoder, bad, 3, logits, need.logits, &error), P64_STATUS_TOKEN_RANGE);
    CHECK(error.place == P64_PLACE_TOKEN && error.index == 2);
    CHECK_STATUS(p64_decoder_step(&decoder, bad, 3, NULL, 0, &error), P64_STATUS_TOKEN_RANGE);
    CHECK_STATUS(p64_decoder_step(&decoder, PROMPT_IDS, 2, logits, need.logits - 1, &error), P64_STATUS_LENGTH_MISMATCH);
    CHECK_STATUS(p64_decoder_step(&decoder, PROMPT_IDS, 0, logits, need.logits, &error), P64_STATUS_LENGTH_MISMATCH);
    CHECK_STATUS(p64_decoder_step(&decoder, NULL, 0, NULL, 0, &error), P64_STATUS_LENGTH_MISMATCH);
    CHECK_STATUS(p64_decoder_step(&decoder, NULL, 2, logits, need.logits, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_decoder_step(&decoder, CROOKED(uint32_t), 2, logits, need.logits, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_decoder_step(&decoder, PROMPT_IDS, 2, NULL, need.logits, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_decoder_step(&decoder, (const uint32_t *)(const void *)logits, 1, logits, need.logits, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_OK(p64_decoder_position(&decoder, &position, &error));
    CHECK(position == 0);
    CHECK_OK(p64_decoder_step(&decoder, PROMPT_IDS, 5, logits, need.logits, &error));
    float first = logits[0];
    CHECK_STATUS(p64_decoder_step(&decoder, PROMPT_IDS, 5, logits, need.logits, &error), P64_STATUS_CONTEXT_FULL);
    CHECK_STATUS(p64_decoder_step(&decoder, PROMPT_IDS, 5, NULL, 0, &error), P64_STATUS_CONTEXT_FULL);
    CHECK_OK(p64_decoder_position(&decoder, &position, &error));
    CHECK(position == 5);
    CHECK_OK(p64_decoder_truncate(&decoder, 99, &error));
    CHECK_OK(p64_decoder_truncate(&decoder, 2, &error));
    CHECK_OK(p64_decoder_step(&decoder, PROMPT_IDS + 2, 3, logits, need.logits, &error));
    CHECK(logits[0] == first);
    CHECK_STATUS(p64_decoder_position(&decoder, NULL, &error), P64_STATUS_NULL_POINTER);
    free(memory);
    free(logits);
}

/* ---- eight threads ---- */

static void *thread(void *argument) {
    const p64_container *container = argument;
    uint32_t count = 0;
    CHECK_OK(p64_container_tensor_count(container, &count, NULL));
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *data = NULL;
        size_t len = 0;
        p64_tensor tensor;
        CHECK_OK(p64_tensor_data(container, i, &data, &len, NULL));
        CHECK_OK(p64_container_tensor(container, i, &tensor, NULL));
        CHECK_OK(p64_container_find(container, tensor.name, tensor.name_len, &tensor, NULL));
        CHECK(tensor.index == i);
    }
    p64_error error; /* each thread's own */
    CHECK_STATUS(p64_tensor_verify(container, count, &error), P64_STATUS_NO_SUCH_TENSOR);
    generate(container, 3);
    return NULL;
}

static void test_threads(file f) {
    p64_container container;
    p64_name_slot names[512];
    uint8_t verified[512];
    p64_open_options o = options();
    o.integrity = P64_INTEGRITY_LAZY;
    o.names = names;
    o.names_len = 512;
    o.verified = verified;
    o.verified_len = 512;
    CHECK_OK(p64_container_open(&container, f.data, f.len, &o, NULL));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, thread, &container) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv) {
    file f = story_model("decode", argc, argv);
    test_kernels(f);
    test_decoder(f);
    test_threads(f);
    free(f.data);
    return checks_end("decode");
}
