/* Every function of tier 1: with good input, NULL, misaligned pointers, wrong options, calls in the wrong order, files that
 * are none, and from eight threads at once.
 *
 *   tier1 MODEL.p64 MODEL.gguf INVALID-FOLDER SCRATCH-FOLDER
 *
 * The model is the bundled story model; its answers were computed by numpy (tests/data/tiny). Only the GGUF is read, and
 * what is written goes to the scratch folder; the other arguments are there because all tests of this folder are called alike. */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <pthread.h>

#include "check.h"

enum { CONTEXT = 96, GENERATED = 48, THREADS = 8, VOCABULARY = 1024 };

static const char PROMPT[] = "Once upon a time";
static const uint32_t PROMPT_IDS[] = {1, 427, 537, 260, 450};
enum { PROMPT_LEN = sizeof PROMPT_IDS / sizeof PROMPT_IDS[0] };
static const uint32_t GENERATED_IDS[GENERATED] = {15,  412, 288, 260, 540, 423, 319, 714, 17,  406, 321, 318, 260, 872, 871, 328,
                                                  260, 462, 662, 17,  714, 442, 260, 462, 618, 17,  406, 902, 595, 295, 411, 615,
                                                  276, 648, 17,  202, 202, 354, 615, 15,  295, 288, 408, 788, 17,  714, 576, 260};
static const char GENERATED_TEXT[] = ", there was a small boy named Adam. He lived in a cozy cottage on a green hill. Adam had a green "
                                     "lamp. He read beside it at night and smiled.\n\nOne night, it was very dark. Adam heard a";

static char gguf_path[4096], p64_path[4096], back_path[4096];

/* A pointer that no type but char may stand at. */
static _Alignas(16) unsigned char crooked_bytes[4096];
#define CROOKED(type) ((type *)(void *)(crooked_bytes + 1))

#define CHECK_SAYS(text) CHECK(strstr(p64_error_message(), text) != NULL)

static p64_map_options map_options(void) {
    p64_map_options o = {0};
    o.struct_size = sizeof o;
    return o;
}

static p64_session_options session_options(void) {
    p64_session_options o = {0};
    o.struct_size = sizeof o;
    o.context = CONTEXT;
    o.threads = 1;
    return o;
}

static p64_model *model_of(const char *path) {
    p64_model *model = NULL;
    CHECK_OK(p64_model_open(path, NULL, &model, NULL));
    return model;
}

static p64_session *session_of(const p64_model *model) {
    p64_session_options o = session_options();
    p64_session *session = NULL;
    CHECK_OK(p64_session_new(model, &o, &session, NULL));
    return session;
}

/* ---- conversion ---- */

typedef struct steps {
    unsigned calls, phases;
    uint64_t last[3];
} steps;

static void on_progress(void *user, uint32_t phase, uint64_t done, uint64_t total) {
    steps *s = user;
    CHECK(phase <= P64_PHASE_COMPARE && done <= total && done >= s->last[phase]);
    s->calls++;
    s->phases |= 1u << phase;
    s->last[phase] = done;
}

static void test_convert(void) {
    p64_error error;
    p64_written written;
    steps s = {0};
    CHECK_OK(p64_convert(gguf_path, p64_path, NULL, on_progress, &s, &written, &error));
    CHECK(error.status == P64_STATUS_OK);
    CHECK(s.calls >= 2 && s.phases == (1u << P64_PHASE_DIGEST | 1u << P64_PHASE_WRITE));
    CHECK(written.files == 1 && written.identical == 2 && written.tensors > 0 && written.source_bytes > 0);
    file out = read_file(p64_path), source = read_file(gguf_path);
    CHECK(written.bytes == out.len && written.source_bytes == source.len && written.seconds > 0);

    s = (steps){0};
    CHECK_OK(p64_export(p64_path, back_path, on_progress, &s, &written, &error));
    CHECK(written.identical == 1 && written.files == 1 && s.phases == 1u << P64_PHASE_WRITE);
    file back = read_file(back_path);
    CHECK(written.bytes == back.len && back.len == source.len && memcmp(back.data, source.data, back.len) == 0);
    free(back.data);

    p64_convert_options o = {0};
    o.struct_size = sizeof o;
    o.page_size = 256;
    o.no_layer_major = 1;
    CHECK_OK(p64_convert(gguf_path, back_path, &o, NULL, NULL, NULL, NULL));
    file small = read_file(back_path);
    CHECK(small.len < out.len);
    free(small.data);
    free(out.data);
    free(source.data);

    o.page_size = 300; /* no power of two */
    CHECK_STATUS(p64_convert(gguf_path, back_path, &o, NULL, NULL, NULL, &error), P64_STATUS_BAD_ARGUMENT);
    o.struct_size = 4;
    CHECK_STATUS(p64_convert(gguf_path, back_path, &o, NULL, NULL, NULL, &error), P64_STATUS_BAD_STRUCT_SIZE);
    CHECK_STATUS(p64_convert(gguf_path, gguf_path, NULL, NULL, NULL, NULL, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_SAYS("same file");
    CHECK_STATUS(p64_convert("/no/such/file", back_path, NULL, NULL, NULL, NULL, &error), P64_STATUS_IO);
    CHECK(error.found == 2); /* ENOENT */
    CHECK_SAYS("/no/such/file");
    CHECK_STATUS(p64_convert(p64_path, back_path, NULL, NULL, NULL, NULL, &error), P64_STATUS_NOT_A_MODEL);
    CHECK_STATUS(p64_convert(NULL, back_path, NULL, NULL, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_SAYS("NULL");
    CHECK_STATUS(p64_convert(gguf_path, NULL, NULL, NULL, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_convert(gguf_path, back_path, CROOKED(p64_convert_options), NULL, NULL, NULL, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_convert(gguf_path, back_path, NULL, NULL, NULL, CROOKED(p64_written), &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_export(gguf_path, back_path, NULL, NULL, NULL, &error), P64_STATUS_NOT_A_MODEL);
    CHECK_STATUS(p64_export(NULL, back_path, NULL, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_export(p64_path, NULL, NULL, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_export(p64_path, "/no/such/folder/x.gguf", NULL, NULL, NULL, &error), P64_STATUS_IO);
}

/* ---- files and models ---- */

static void count_warning(void *user, const p64_error *warning) {
    CHECK(warning->status != P64_STATUS_OK);
    ++*(unsigned *)user;
}

static void test_file(void) {
    p64_error error;
    p64_file *opened = NULL;
    unsigned warnings = 0;
    p64_map_options o = map_options();
    o.policy = P64_POLICY_STRICT;
    o.integrity = P64_INTEGRITY_LAZY;
    o.threads = 2;
    o.warning = count_warning;
    o.warning_user = &warnings;
    CHECK_OK(p64_file_open(p64_path, &o, &opened, &error));
    CHECK(warnings == 0);
    const p64_container *container = p64_file_container(opened);
    p64_tensor t;
    const uint8_t *data = NULL;
    size_t len = 0;
    CHECK_OK(p64_container_find(container, "token_embd.weight", 17, &t, &error));
    CHECK_OK(p64_tensor_data(container, t.index, &data, &len, &error));
    CHECK(len == t.size && data != NULL);
    p64_file_free(opened);
    p64_file_free(NULL);
    CHECK(p64_file_container(NULL) == NULL);

    CHECK_STATUS(p64_file_open(gguf_path, NULL, &opened, &error), P64_STATUS_NOT_A_MODEL);
    CHECK_SAYS("GGUF");
    CHECK_STATUS(p64_file_open("/", NULL, &opened, &error), P64_STATUS_NOT_A_MODEL);
    CHECK_STATUS(p64_file_open("/no/such/file", NULL, &opened, &error), P64_STATUS_IO);
    CHECK_STATUS(p64_file_open(NULL, NULL, &opened, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_file_open(p64_path, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_file_open(p64_path, NULL, CROOKED(p64_file *), &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_file_open(p64_path, CROOKED(p64_map_options), &opened, &error), P64_STATUS_MISALIGNED);
    o = map_options();
    o.integrity = 2;
    CHECK_STATUS(p64_file_open(p64_path, &o, &opened, &error), P64_STATUS_BAD_ARGUMENT);
    o = map_options();
    o.policy = 2;
    CHECK_STATUS(p64_file_open(p64_path, &o, &opened, &error), P64_STATUS_BAD_ARGUMENT);
    o = map_options();
    o.struct_size--;
    CHECK_STATUS(p64_file_open(p64_path, &o, &opened, &error), P64_STATUS_BAD_STRUCT_SIZE);
    CHECK(error.expected == sizeof o && error.found == sizeof o - 1);

    /* One bit of a tensor's bytes: refused when everything is verified, and when that tensor is asked for. */
    file bytes = read_file(p64_path);
    bytes.data[t.offset + 5] ^= 1;
    FILE *damaged = fopen(back_path, "wb");
    CHECK(damaged != NULL && fwrite(bytes.data, 1, bytes.len, damaged) == bytes.len && fclose(damaged) == 0);
    free(bytes.data);
    CHECK_STATUS(p64_file_open(back_path, NULL, &opened, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK(error.place == P64_PLACE_TENSOR && error.index == t.index);
    o = map_options();
    o.integrity = P64_INTEGRITY_LAZY;
    CHECK_OK(p64_file_open(back_path, &o, &opened, &error));
    data = NULL;
    CHECK_STATUS(p64_tensor_data(p64_file_container(opened), t.index, &data, &len, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK(data == NULL);
    p64_file_free(opened);
    p64_model *model = NULL;
    CHECK_STATUS(p64_model_open(back_path, NULL, &model, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK(model == NULL);
}

static void test_model(const char *path, int is_p64) {
    p64_error error;
    p64_model *model = model_of(path);
    p64_model_info info;
    CHECK_OK(p64_model_describe(model, &info, &error));
    CHECK(info.vocabulary == VOCABULARY && info.layers > 0 && info.context > 0 && info.parameters > 0);
    CHECK((int)info.is_p64 == is_p64 && info.weight_bytes_per_token > 0 && info.file_size > info.weight_bytes_per_token);
    CHECK((p64_model_container(model) != NULL) == is_p64);
    if (is_p64) {
        p64_info header;
        CHECK_OK(p64_container_info(p64_model_container(model), &header, &error));
        CHECK(header.n_layer == info.layers && header.file_len == info.file_size);
    }

    char text[256];
    size_t len = 0;
    CHECK_OK(p64_model_description(model, text, sizeof text, &len, &error));
    CHECK(len > 10 && memcmp(text, "llama, ", 7) == 0);
    CHECK_STATUS(p64_model_description(model, text, 3, &len, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK(error.expected == len && error.found == 3);

    uint32_t ids[64];
    CHECK_OK(p64_model_encode(model, PROMPT, sizeof PROMPT - 1, P64_TEXT_ADD_SPECIAL, ids, 64, &len, &error));
    CHECK(len == PROMPT_LEN && memcmp(ids, PROMPT_IDS, sizeof PROMPT_IDS) == 0);
    CHECK_OK(p64_model_encode(model, PROMPT, sizeof PROMPT - 1, P64_TEXT_PLAIN, ids, 64, &len, &error));
    CHECK(len == PROMPT_LEN - 1 && ids[0] == PROMPT_IDS[1]);
    CHECK_OK(p64_model_encode(model, NULL, 0, P64_TEXT_PLAIN, NULL, 0, &len, &error));
    CHECK(len == 0);
    CHECK_STATUS(p64_model_encode(model, PROMPT, sizeof PROMPT - 1, 0, NULL, 0, &len, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK(error.expected == PROMPT_LEN - 1);
    CHECK_STATUS(p64_model_encode(model, PROMPT, 4, 4, ids, 64, &len, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_OK(p64_model_decode(model, GENERATED_IDS, GENERATED, 0, text, sizeof text, &len, &error));
    CHECK(len == sizeof GENERATED_TEXT - 1 && memcmp(text, GENERATED_TEXT, len) == 0);
    const char end[] = "<|im_end|>";
    CHECK_OK(p64_model_encode(model, end, sizeof end - 1, P64_TEXT_SPECIAL, ids, 64, &len, &error));
    CHECK(len == 1);
    uint32_t ends = 7;
    CHECK_OK(p64_model_is_end(model, ids[0], &ends, &error));
    CHECK(ends == 1);
    CHECK_OK(p64_model_is_end(model, 427, &ends, &error));
    CHECK(ends == 0);
    CHECK_OK(p64_model_decode(model, ids, 1, P64_TEXT_SPECIAL, text, sizeof text, &len, &error));
    CHECK(len == sizeof end - 1 && memcmp(text, end, len) == 0);
    CHECK_OK(p64_model_decode(model, ids, 1, P64_TEXT_PLAIN, text, sizeof text, &len, &error));
    CHECK(len == 0);

    const p64_message talk[] = {{{"user", 4}, {"Tell me a story about a fox named Pip.", 38}}};
    const char wanted[] = "<|im_start|>user\nTell me a story about a fox named Pip.<|im_end|>\n<|im_start|>assistant\n";
    uint32_t same[64];
    size_t same_len = 0;
    CHECK_OK(p64_model_chat(model, talk, 1, ids, 64, &len, &error));
    CHECK_OK(p64_model_encode(model, wanted, sizeof wanted - 1, P64_TEXT_ADD_SPECIAL | P64_TEXT_SPECIAL, same, 64, &same_len, &error));
    CHECK(len == same_len && memcmp(ids, same, len * sizeof *ids) == 0);
    const p64_message broken[] = {{{"user", 4}, {"\xff", 1}}};
    CHECK_STATUS(p64_model_chat(model, broken, 1, ids, 64, &len, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_SAYS("UTF-8");
    CHECK_STATUS(p64_model_chat(model, talk, 1, ids, 2, &len, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_model_chat(model, NULL, 1, ids, 64, &len, &error), P64_STATUS_NULL_POINTER);

    CHECK_STATUS(p64_model_describe(NULL, &info, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_describe(model, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_describe(model, CROOKED(p64_model_info), &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_model_describe(CROOKED(p64_model), &info, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_model_description(NULL, text, 8, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_encode(NULL, PROMPT, 1, 0, ids, 64, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_encode(model, NULL, 1, 0, ids, 64, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_encode(model, PROMPT, 1, 0, NULL, 64, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_encode(model, PROMPT, 1, 0, ids, 64, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_encode(model, PROMPT, SIZE_MAX, 0, ids, 64, &len, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_model_decode(NULL, ids, 1, 0, text, 8, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_decode(model, NULL, 1, 0, text, 8, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_decode(model, CROOKED(uint32_t), 1, 0, text, 8, &len, &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_model_decode(model, ids, 1, 8, text, 8, &len, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_model_is_end(NULL, 1, &ends, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_is_end(model, 1, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_chat(NULL, talk, 1, ids, 64, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK(p64_model_container(NULL) == NULL);
    p64_model_free(model);
    p64_model_free(NULL);
}

static void test_model_refusals(void) {
    p64_error error;
    p64_model *model = NULL;
    CHECK_STATUS(p64_model_open("/no/such/file", NULL, &model, &error), P64_STATUS_IO);
    CHECK_STATUS(p64_model_open("/", NULL, &model, &error), P64_STATUS_NOT_A_MODEL);
    CHECK_STATUS(p64_model_open(NULL, NULL, &model, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_model_open(p64_path, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    FILE *text = fopen(back_path, "wb");
    CHECK(text != NULL && fputs("this is no model", text) >= 0 && fclose(text) == 0);
    CHECK_STATUS(p64_model_open(back_path, NULL, &model, &error), P64_STATUS_NOT_A_MODEL);
    CHECK_SAYS(back_path);
    CHECK(model == NULL);
}

/* ---- sessions ---- */

static void test_tokens_one_by_one(const p64_model *model) {
    p64_error error;
    p64_session *session = session_of(model);
    uint32_t id = 0;
    static float logits[VOCABULARY];
    size_t position = 7, context = 7;
    CHECK_STATUS(p64_session_next(session, &id, &error), P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_session_logits(session, logits, VOCABULARY, &error), P64_STATUS_NOT_OPEN);
    CHECK_OK(p64_session_position(session, &position, &context, &error));
    CHECK(position == 0 && context == CONTEXT);

    CHECK_OK(p64_session_prompt(session, PROMPT_IDS, PROMPT_LEN, &error));
    for (int i = 0; i < GENERATED; i++) {
        uint32_t best = 0;
        CHECK_OK(p64_session_logits(session, logits, VOCABULARY, &error));
        CHECK_OK(p64_argmax(logits, VOCABULARY, &best, &error));
        CHECK_OK(p64_session_next(session, &id, &error));
        CHECK(id == GENERATED_IDS[i] && best == id);
    }
    CHECK_OK(p64_session_position(session, &position, NULL, NULL));
    CHECK(position == PROMPT_LEN + GENERATED);
    uint32_t all[CONTEXT];
    size_t len = 0;
    CHECK_OK(p64_session_tokens(session, all, CONTEXT, &len, &error));
    CHECK(len == position && memcmp(all + PROMPT_LEN, GENERATED_IDS, sizeof GENERATED_IDS) == 0);
    CHECK_STATUS(p64_session_tokens(session, all, 3, &len, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK(error.expected == position);

    /* Back to the middle, with the same tokens as a prompt: the same goes on. */
    CHECK_STATUS(p64_session_truncate(session, position + 1, &error), P64_STATUS_LENGTH_MISMATCH);
    CHECK_OK(p64_session_truncate(session, position, &error));
    CHECK_OK(p64_session_truncate(session, PROMPT_LEN, &error));
    CHECK_STATUS(p64_session_next(session, &id, &error), P64_STATUS_NOT_OPEN);
    CHECK_OK(p64_session_prompt(session, GENERATED_IDS, 8, &error));
    CHECK_OK(p64_session_next(session, &id, &error));
    CHECK(id == GENERATED_IDS[8]);

    const uint32_t outside[] = {5, VOCABULARY};
    CHECK_STATUS(p64_session_prompt(session, outside, 2, &error), P64_STATUS_TOKEN_RANGE);
    CHECK(error.place == P64_PLACE_TOKEN && error.index == 1);
    CHECK_STATUS(p64_session_prompt(session, NULL, 0, &error), P64_STATUS_LENGTH_MISMATCH);
    static uint32_t many[CONTEXT];
    CHECK_STATUS(p64_session_prompt(session, many, CONTEXT, &error), P64_STATUS_CONTEXT_FULL);
    CHECK_OK(p64_session_next(session, &id, &error)); /* it stands where it stood */
    CHECK(id == GENERATED_IDS[9]);

    CHECK_OK(p64_session_reset(session, &error));
    CHECK_OK(p64_session_position(session, &position, NULL, NULL));
    CHECK(position == 0);
    CHECK_OK(p64_session_prompt(session, PROMPT_IDS, PROMPT_LEN, &error));
    CHECK_OK(p64_session_next(session, &id, &error));
    CHECK(id == GENERATED_IDS[0]);

    CHECK_STATUS(p64_session_logits(session, logits, VOCABULARY - 1, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_session_logits(session, NULL, VOCABULARY, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_logits(NULL, logits, VOCABULARY, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_next(NULL, &id, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_next(session, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_next(session, CROOKED(uint32_t), &error), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_session_prompt(NULL, PROMPT_IDS, 1, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_prompt(session, NULL, 1, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_tokens(NULL, all, CONTEXT, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_tokens(session, all, CONTEXT, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_position(NULL, &position, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_truncate(NULL, 0, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_reset(NULL, &error), P64_STATUS_NULL_POINTER);
    p64_session_free(session);
    p64_session_free(NULL);
}

typedef struct shown {
    char text[512];
    size_t len;
    unsigned calls, until;
} shown;

static int on_text(void *user, const char *text, size_t len) {
    shown *s = user;
    CHECK(len > 0 && s->len + len < sizeof s->text);
    memcpy(s->text + s->len, text, len);
    s->len += len;
    s->calls++;
    return s->calls == s->until;
}

static void test_generate(const p64_model *model) {
    p64_error error;
    p64_session *session = session_of(model);
    p64_generate_options o = {0};
    o.struct_size = sizeof o;
    o.max_tokens = GENERATED;
    o.ignore_end = 1;
    p64_generation done;
    shown s = {0};
    CHECK_OK(p64_session_generate(session, PROMPT_IDS, PROMPT_LEN, &o, on_text, &s, &done, &error));
    CHECK(s.len == sizeof GENERATED_TEXT - 1 && memcmp(s.text, GENERATED_TEXT, s.len) == 0);
    CHECK(done.stop == P64_STOP_LENGTH && done.generated_tokens == GENERATED && done.prompt_tokens == PROMPT_LEN);
    CHECK(done.prompt_seconds > 0 && done.generate_seconds > 0);
    uint32_t all[CONTEXT];
    size_t len = 0;
    CHECK_OK(p64_session_tokens(session, all, CONTEXT, &len, &error));
    CHECK(len == PROMPT_LEN + GENERATED && memcmp(all + PROMPT_LEN, GENERATED_IDS, sizeof GENERATED_IDS) == 0);
    uint32_t id = 0;
    CHECK_OK(p64_session_next(session, &id, &error));
    CHECK(id == 793); /* the recorded one after those */

    const p64_text stops[] = {{" named", 6}, {"never", 5}};
    o.stops = stops;
    o.stops_len = 2;
    s = (shown){0};
    CHECK_OK(p64_session_reset(session, NULL));
    CHECK_OK(p64_session_generate(session, PROMPT_IDS, PROMPT_LEN, &o, on_text, &s, &done, &error));
    CHECK(done.stop == P64_STOP_TEXT && s.len == 23 && memcmp(s.text, ", there was a small boy", 23) == 0);

    o.stops_len = 0;
    o.stops = NULL;
    s = (shown){0};
    s.until = 3;
    CHECK_OK(p64_session_reset(session, NULL));
    CHECK_OK(p64_session_generate(session, PROMPT_IDS, PROMPT_LEN, &o, on_text, &s, &done, &error));
    CHECK(done.stop == P64_STOP_CANCELLED && s.calls == 3);

    o.max_tokens = 1000;
    CHECK_OK(p64_session_reset(session, NULL));
    CHECK_OK(p64_session_generate(session, PROMPT_IDS, PROMPT_LEN, &o, NULL, NULL, &done, NULL));
    CHECK(done.stop == P64_STOP_CONTEXT);
    CHECK_STATUS(p64_session_next(session, &id, &error), P64_STATUS_CONTEXT_FULL);

    /* A story ends by itself; NULL stands for the defaults. */
    p64_session_free(session);
    CHECK_OK(p64_session_new(model, NULL, &session, &error));
    CHECK_OK(p64_session_generate(session, PROMPT_IDS, PROMPT_LEN, NULL, NULL, NULL, &done, &error));
    CHECK(done.stop == P64_STOP_END || done.stop == P64_STOP_LENGTH);
    CHECK(done.generated_tokens <= 256);

    CHECK_STATUS(p64_session_generate(session, PROMPT_IDS, 0, NULL, NULL, NULL, NULL, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_session_generate(session, NULL, 1, NULL, NULL, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_generate(NULL, PROMPT_IDS, 1, NULL, NULL, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_generate(session, PROMPT_IDS, 1, CROOKED(p64_generate_options), NULL, NULL, NULL, &error),
                 P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_session_generate(session, PROMPT_IDS, 1, NULL, NULL, NULL, CROOKED(p64_generation), &error),
                 P64_STATUS_MISALIGNED);
    o.stops_len = 1;
    CHECK_STATUS(p64_session_generate(session, PROMPT_IDS, 1, &o, NULL, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    const p64_text broken[] = {{"\xc3", 1}};
    o.stops = broken;
    CHECK_STATUS(p64_session_generate(session, PROMPT_IDS, 1, &o, NULL, NULL, NULL, &error), P64_STATUS_BAD_ARGUMENT);
    o.struct_size = 0;
    CHECK_STATUS(p64_session_generate(session, PROMPT_IDS, 1, &o, NULL, NULL, NULL, &error), P64_STATUS_BAD_STRUCT_SIZE);
    p64_session_free(session);
}

/* The same seed draws the same, another one something else; what is out of range is refused. */
static void test_sampling(const p64_model *model) {
    p64_error error;
    p64_session_options o = session_options();
    o.temperature = 1.5f;
    o.repeat_penalty = 1.1f;
    uint32_t drawn[3][24];
    for (int run = 0; run < 3; run++) {
        p64_session *session = NULL;
        o.seed = run == 2 ? 43 : 42;
        CHECK_OK(p64_session_new(model, &o, &session, &error));
        CHECK_OK(p64_session_prompt(session, PROMPT_IDS, PROMPT_LEN, &error));
        for (int i = 0; i < 24; i++) CHECK_OK(p64_session_next(session, &drawn[run][i], &error));
        p64_session_free(session);
    }
    CHECK(memcmp(drawn[0], drawn[1], sizeof drawn[0]) == 0);
    CHECK(memcmp(drawn[0], drawn[2], sizeof drawn[0]) != 0);

    p64_session *session = NULL;
#define REFUSED(field, value, want) \
    do { \
        o = session_options(); \
        o.field = (value); \
        CHECK_STATUS(p64_session_new(model, &o, &session, &error), want); \
        CHECK(session == NULL); \
    } while (0)
    REFUSED(temperature, -1.0f, P64_STATUS_BAD_ARGUMENT);
    REFUSED(temperature, NAN, P64_STATUS_BAD_ARGUMENT);
    REFUSED(top_p, 2.0f, P64_STATUS_BAD_ARGUMENT);
    CHECK_SAYS("top_p");
    REFUSED(min_p, -0.5f, P64_STATUS_BAD_ARGUMENT);
    REFUSED(repeat_penalty, -1.0f, P64_STATUS_BAD_ARGUMENT);
    REFUSED(activations, 2, P64_STATUS_BAD_ARGUMENT);
    REFUSED(kv_type, 3, P64_STATUS_BAD_ARGUMENT);
    REFUSED(threads, 5000, P64_STATUS_BAD_ARGUMENT);
    REFUSED(context, SIZE_MAX / 64, P64_STATUS_BAD_ARGUMENT);
    REFUSED(struct_size, 8, P64_STATUS_BAD_STRUCT_SIZE);
    CHECK_STATUS(p64_session_new(NULL, NULL, &session, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_new(model, NULL, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_session_new(model, CROOKED(p64_session_options), &session, &error), P64_STATUS_MISALIGNED);
}

/* What a rounded cache gives begins as what an exact one does: the first words are certain enough. */
static void test_rounded_caches(const p64_model *model) {
    p64_error error;
    p64_session_options o = session_options();
    uint32_t drawn[3][4];
    for (uint32_t kind = 0; kind < 3; kind++) {
        p64_session *session = NULL;
        o.kv_type = kind;
        CHECK_OK(p64_session_new(model, &o, &session, &error));
        CHECK_OK(p64_session_prompt(session, PROMPT_IDS, PROMPT_LEN, &error));
        for (int i = 0; i < 4; i++) CHECK_OK(p64_session_next(session, &drawn[kind][i], &error));
        p64_session_free(session);
    }
    CHECK(memcmp(drawn[P64_KV_F32], drawn[P64_KV_F16], sizeof drawn[0]) == 0);
    CHECK(memcmp(drawn[P64_KV_F32], drawn[P64_KV_Q8_0], sizeof drawn[0]) == 0);
}

/* A session goes on after its model was given back. */
static void test_order_of_freeing(void) {
    p64_model *model = model_of(p64_path);
    p64_session *session = session_of(model);
    p64_model_free(model);
    uint32_t id = 0;
    CHECK_OK(p64_session_prompt(session, PROMPT_IDS, PROMPT_LEN, NULL));
    CHECK_OK(p64_session_next(session, &id, NULL));
    CHECK(id == GENERATED_IDS[0]);
    p64_session_free(session);
}

/* ---- eight threads ---- */

static void *thread(void *user) {
    const p64_model *model = user;
    p64_session *session = session_of(model);
    uint32_t id = 0, ids[8];
    size_t len = 0;
    CHECK(p64_error_message()[0] == 0); /* each thread's own */
    CHECK_OK(p64_model_encode(model, PROMPT, sizeof PROMPT - 1, P64_TEXT_ADD_SPECIAL, ids, 8, &len, NULL));
    CHECK_OK(p64_session_prompt(session, ids, len, NULL));
    for (int i = 0; i < GENERATED; i++) {
        CHECK_OK(p64_session_next(session, &id, NULL));
        CHECK(id == GENERATED_IDS[i]);
    }
    CHECK_STATUS(p64_session_next(session, NULL, NULL), P64_STATUS_NULL_POINTER);
    CHECK_SAYS("NULL");
    p64_session_free(session);
    return NULL;
}

static void test_threads(p64_model *model) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, thread, model) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: tier1 MODEL.p64 MODEL.gguf INVALID-FOLDER SCRATCH-FOLDER\n");
        return 2;
    }
    snprintf(gguf_path, sizeof gguf_path, "%s", argv[2]);
    snprintf(p64_path, sizeof p64_path, "%s/tier1.p64", argv[4]);
    snprintf(back_path, sizeof back_path, "%s/tier1.other", argv[4]);
    CHECK(p64_error_message()[0] == 0);
    test_convert();
    test_file();
    test_model(p64_path, 1);
    test_model(gguf_path, 0);
    test_model_refusals();
    p64_model *model = model_of(p64_path);
    test_tokens_one_by_one(model);
    test_generate(model);
    test_sampling(model);
    test_rounded_caches(model);
    test_threads(model);
    p64_model_free(model);
    test_order_of_freeing();
    remove(p64_path);
    remove(back_path);
    return checks_end("tier1");
}
