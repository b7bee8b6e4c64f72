/* Text to ids and back without a heap: the story model's cases from tests/data/tiny, misuse, and eight threads.
 *
 *   vocabulary MODEL.p64 MODEL.gguf FOLDER-OF-INVALID-FIXTURES SCRATCH-FOLDER
 */
#include <pthread.h>

#include "check.h"

enum { SLOTS = 256, IDS = 64 };

static _Alignas(16) unsigned char crooked_bytes[1024];
#define CROOKED(type) ((type *)(void *)(crooked_bytes + 1))
#define TEXT(literal) (literal), (sizeof(literal) - 1)

static const struct sample {
    const char *text;
    uint32_t ids[8];
    size_t len;
} SAMPLES[] = {
    {"", {0}, 0},
    {" ", {224}, 1},
    {"Once upon a time", {427, 537, 260, 450}, 4},
    {" Once", {224, 427}, 2},
    {"once", {291, 359}, 2},
    {"kites and boats", {78, 380, 86, 276, 607, 86}, 6},
};

/* Every sample there and back. */
static void round_trips(const p64_vocabulary *v) {
    p64_error error;
    for (size_t i = 0; i < sizeof SAMPLES / sizeof *SAMPLES; i++) {
        const struct sample *s = &SAMPLES[i];
        p64_slot slots[SLOTS];
        uint32_t ids[IDS];
        char text[64];
        size_t len = 99, need = 0, written = 0, at = 0;
        CHECK_OK(p64_vocabulary_slots(v, s->text, strlen(s->text), &need, &error));
        CHECK(need >= s->len && need <= SLOTS);
        CHECK_OK(p64_vocabulary_encode(v, s->text, strlen(s->text), P64_TEXT_PLAIN, slots, need, ids, IDS, &len, &error));
        CHECK(len == s->len && memcmp(ids, s->ids, len * sizeof *ids) == 0);
        for (size_t k = 0; k < len; k++, at += written) {
            CHECK_OK(p64_vocabulary_decode(v, ids[k], P64_TEXT_PLAIN, text + at, sizeof text - at, &written, &error));
        }
        CHECK(at == strlen(s->text) && memcmp(text, s->text, at) == 0);
        CHECK_OK(p64_vocabulary_encode(v, s->text, strlen(s->text), P64_TEXT_ADD_SPECIAL, slots, SLOTS, ids, IDS, &len, &error));
        CHECK(len == s->len + 1 && ids[0] == 1);
    }
}

static void test_misuse(const p64_container *c, const p64_vocabulary *v) {
    p64_error error;
    p64_vocabulary made, closed;
    p64_container garbage;
    p64_slot slots[SLOTS];
    uint32_t ids[IDS], index[8];
    char text[32];
    size_t len = 77;
    int32_t is_end = 7;
    memset(&closed, 0xa5, sizeof closed);
    memset(&garbage, 0xa5, sizeof garbage);
    CHECK_STATUS(p64_vocabulary_index_len(&garbage, &len, &error), P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_vocabulary_index_len(NULL, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_index_len(c, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_index_len(c, CROOKED(size_t), &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_vocabulary_init(NULL, c, NULL, 0, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_init(CROOKED(p64_vocabulary), c, NULL, 0, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_vocabulary_init(&made, &garbage, NULL, 0, &error), P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_vocabulary_init(&made, c, NULL, 8, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_init(&made, c, CROOKED(uint32_t), 8, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_vocabulary_init(&made, c, index, 8, &error), P64_STATUS_BUFFER_TOO_SMALL);
    const p64_vocabulary *bad[] = {NULL, CROOKED(p64_vocabulary), &closed, &made};
    const p64_status want[] = {P64_STATUS_NULL_POINTER, P64_STATUS_MISALIGNED, P64_STATUS_NOT_OPEN, P64_STATUS_NOT_OPEN};
    for (size_t i = 0; i < 4; i++) {
        CHECK_STATUS(p64_vocabulary_slots(bad[i], TEXT("x"), &len, &error), want[i]);
        CHECK_STATUS(p64_vocabulary_encode(bad[i], TEXT("x"), 0, slots, SLOTS, ids, IDS, &len, &error), want[i]);
        CHECK_STATUS(p64_vocabulary_decode(bad[i], 5, 0, text, sizeof text, &len, &error), want[i]);
        CHECK_STATUS(p64_vocabulary_is_end(bad[i], 5, &is_end, &error), want[i]);
    }
    CHECK(len == 77 && is_end == 7);
    CHECK_STATUS(p64_vocabulary_slots(v, NULL, 3, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_slots(v, TEXT("x"), NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_encode(v, TEXT("x"), 4, slots, SLOTS, ids, IDS, &len, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_vocabulary_encode(v, NULL, 3, 0, slots, SLOTS, ids, IDS, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_encode(v, "x", SIZE_MAX, 0, slots, SLOTS, ids, IDS, &len, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_vocabulary_encode(v, TEXT("once"), 0, NULL, SLOTS, ids, IDS, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_encode(v, TEXT("once"), 0, CROOKED(p64_slot), SLOTS, ids, IDS, &len, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_vocabulary_encode(v, TEXT("once"), 0, slots, 1, ids, IDS, &len, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_vocabulary_encode(v, TEXT("once"), 0, slots, SLOTS, NULL, IDS, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_encode(v, TEXT("once"), 0, slots, SLOTS, NULL, 0, &len, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK(error.expected == 2 && error.found == 0);
    CHECK_STATUS(p64_vocabulary_encode(v, TEXT("once"), 0, slots, SLOTS, (uint32_t *)(void *)slots, IDS, &len, &error),
                 P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_vocabulary_encode(v, (const char *)slots, 8, 0, slots, SLOTS, ids, IDS, &len, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_vocabulary_encode(v, TEXT("once"), 0, slots, SLOTS, ids, IDS, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_decode(v, UINT32_MAX, 0, text, sizeof text, &len, &error), P64_STATUS_TOKEN_RANGE);
    CHECK_STATUS(p64_vocabulary_decode(v, 427, 0, text, 1, &len, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK(error.expected == 4);
    CHECK_STATUS(p64_vocabulary_decode(v, 427, P64_TEXT_ADD_SPECIAL, text, sizeof text, &len, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_vocabulary_decode(v, 427, 0, NULL, 8, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_vocabulary_decode(v, 427, 0, text, sizeof text, CROOKED(size_t), &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_vocabulary_is_end(v, 427, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK(len == 77);
    CHECK_OK(p64_vocabulary_is_end(v, UINT32_MAX, &is_end, &error));
    CHECK(is_end == 0);
    CHECK_OK(p64_vocabulary_decode(v, 1, P64_TEXT_PLAIN, text, sizeof text, &len, &error));
    CHECK(len == 0);
    CHECK_OK(p64_vocabulary_decode(v, 1, P64_TEXT_SPECIAL, text, sizeof text, &len, &error));
    CHECK(len > 0);
    /* Text that is not UTF-8 has ids too. */
    CHECK_OK(p64_vocabulary_encode(v, TEXT("\xff\xfe" "a"), P64_TEXT_SPECIAL, slots, SLOTS, ids, IDS, &len, &error));
    CHECK(len > 0);
}

static void *thread(void *vocabulary) {
    for (int i = 0; i < 20; i++) round_trips(vocabulary);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: vocabulary MODEL.p64 MODEL.gguf INVALID-FOLDER SCRATCH-FOLDER\n");
        return 2;
    }
    file f = read_file(argv[1]);
    p64_container container;
    p64_tokenizer tokenizer;
    p64_vocabulary plain, indexed;
    p64_error error;
    size_t index_len = 0;
    int32_t is_end = 0;
    CHECK_OK(p64_container_open(&container, f.data, f.len, NULL, &error));
    CHECK_OK(p64_vocabulary_init(&plain, &container, NULL, 0, &error));
    round_trips(&plain);
    CHECK_OK(p64_vocabulary_index_len(&container, &index_len, &error));
    CHECK(index_len > 2 * 1024);
    uint32_t *index = malloc(index_len * sizeof *index);
    CHECK_OK(p64_vocabulary_init(&indexed, &container, index, index_len, &error));
    round_trips(&indexed);
    test_misuse(&container, &indexed);
    CHECK_OK(p64_container_tokenizer(&container, &tokenizer, &error));
    CHECK_OK(p64_vocabulary_is_end(&indexed, tokenizer.eos, &is_end, &error));
    CHECK(is_end == 1);
    memset(&container, 0, sizeof container); /* a vocabulary does not need it */
    p64_vocabulary copy = indexed;
    memset(&indexed, 0, sizeof indexed);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, thread, &copy) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    free(index);
    free(f.data);
    return checks_end("vocabulary");
}
