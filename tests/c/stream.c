/* Streams: a file behind a read function says what the same file says in memory, through buffers of several sizes, also when
 * it is damaged, when reads fail and when calls come in the wrong order.
 *
 *   stream MODEL.p64 MODEL.gguf FOLDER-OF-INVALID-FIXTURES SCRATCH-FOLDER
 */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <pthread.h>

#include "check.h"

static _Alignas(16) unsigned char crooked_bytes[4096];
#define CROOKED(type) ((type *)(void *)(crooked_bytes + 1))
#define TEXT(literal) (literal), (sizeof(literal) - 1)

/* What a read function is given: the file, and after how many reads one fails. */
typedef struct source {
    file f;
    long fail_at;
    long reads;
    size_t longest;
} source;

static int32_t read_source(void *user, uint64_t offset, void *buffer, size_t len) {
    source *s = user;
    if (s->reads++ == s->fail_at) return -5;
    if (len > s->longest) s->longest = len;
    CHECK(offset <= s->f.len && len <= s->f.len - offset);
    memcpy(buffer, s->f.data + offset, len);
    return 0;
}

static p64_reader reader(source *s) {
    p64_reader r = {read_source, s, s->f.len};
    return r;
}

static p64_open_options options(void) {
    p64_open_options o = {0};
    o.struct_size = sizeof o;
    return o;
}

static const size_t SIZES[] = {64, 256, 257, 4096, 1 << 20};

typedef struct findings {
    p64_error warnings[64];
    size_t count;
} findings;

static void remember(void *user, const p64_error *warning) {
    findings *f = user;
    if (f->count < 64) f->warnings[f->count++] = *warning;
}

static int same_error(const p64_error *a, const p64_error *b) {
    return a->status == b->status && a->place == b->place && a->section == b->section && a->index == b->index &&
           a->offset == b->offset && a->expected == b->expected && a->found == b->found;
}

/* Slice and stream agree: the same error at the same place, the same warnings. */
static void agree(file f, p64_policy policy) {
    findings slice = {0};
    p64_open_options o = options();
    p64_container container;
    p64_error want;
    o.policy = policy;
    o.warning = remember;
    o.warning_user = &slice;
    p64_container_open(&container, f.data, f.len, &o, &want);
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        findings streamed = {0};
        source s = {f, -1, 0, 0};
        p64_reader r = reader(&s);
        p64_stream stream;
        p64_error error;
        unsigned char *buffer = malloc(SIZES[i]);
        o.warning_user = &streamed;
        CHECK_STATUS(p64_stream_open(&stream, &r, buffer, SIZES[i], &o, &error), want.status);
        CHECK(same_error(&error, &want));
        CHECK(streamed.count == slice.count);
        for (size_t w = 0; w < slice.count && w < streamed.count; w++) {
            CHECK(same_error(&slice.warnings[w], &streamed.warnings[w]));
        }
        CHECK(s.longest <= SIZES[i]);
        free(buffer);
    }
}

static void test_invalid(const char *folder) {
    DIR *dir = opendir(folder);
    unsigned files = 0;
    CHECK(dir != NULL);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (strstr(entry->d_name, ".p64") == NULL) continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        file f = read_file(path);
        agree(f, P64_POLICY_STRICT);
        agree(f, P64_POLICY_COMPATIBLE);
        free(f.data);
        files += 1;
    }
    if (dir != NULL) closedir(dir);
    CHECK(files > 60);
}

/* Everything a stream says, beside what a container says. */
static void test_answers(file f) {
    p64_container container;
    p64_error error;
    CHECK_OK(p64_container_open(&container, f.data, f.len, NULL, &error));
    p64_name_slot names[512];
    uint8_t verified[512];
    p64_open_options o = options();
    o.names = names;
    o.names_len = 512;
    o.verified = verified;
    o.verified_len = 512;
    for (int lazy = 0; lazy < 2; lazy++) {
        o.integrity = lazy ? P64_INTEGRITY_LAZY : P64_INTEGRITY_FULL;
        source s = {f, -1, 0, 0};
        p64_reader r = reader(&s);
        p64_stream stream;
        unsigned char buffer[256];
        CHECK_OK(p64_stream_open(&stream, &r, buffer, sizeof buffer, lazy ? &o : NULL, &error));
        p64_info info, want_info;
        p64_hparams hparams, want_hparams;
        CHECK_OK(p64_stream_info(&stream, &info, &error));
        CHECK_OK(p64_container_info(&container, &want_info, &error));
        CHECK(memcmp(&info, &want_info, sizeof info) == 0);
        CHECK_OK(p64_stream_hparams(&stream, &hparams, &error));
        CHECK_OK(p64_container_hparams(&container, &want_hparams, &error));
        CHECK(memcmp(&hparams, &want_hparams, sizeof hparams) == 0);
        for (uint32_t layer = 0; layer <= info.n_layer; layer++) {
            p64_layer unit, want_unit;
            p64_manifold place, want_place;
            CHECK_OK(p64_stream_layer(&stream, layer, &unit, &error));
            CHECK_OK(p64_container_layer(&container, layer, &want_unit, &error));
            CHECK(memcmp(&unit, &want_unit, sizeof unit) == 0);
            CHECK_OK(p64_stream_manifold(&stream, layer, &place, &error));
            CHECK_OK(p64_container_manifold(&container, layer, &want_place, &error));
            CHECK(memcmp(&place, &want_place, sizeof place) == 0);
        }
        for (uint32_t i = 0; i < info.tensor_count; i++) {
            p64_tensor tensor, want, found;
            char name[256];
            size_t len = 0;
            CHECK_OK(p64_stream_tensor(&stream, i, &tensor, &error));
            CHECK_OK(p64_container_tensor(&container, i, &want, &error));
            CHECK(tensor.name == NULL && tensor.name_len == 0);
            CHECK_OK(p64_stream_name(&stream, i, name, sizeof name, &len, &error));
            CHECK(len == want.name_len && memcmp(name, want.name, len) == 0);
            CHECK_STATUS(p64_stream_name(&stream, i, name, len - 1, &len, &error), P64_STATUS_BUFFER_TOO_SMALL);
            CHECK(error.expected == want.name_len);
            want.name = NULL;
            want.name_len = 0;
            CHECK(memcmp(&tensor, &want, sizeof tensor) == 0);
            CHECK_OK(p64_stream_find(&stream, name, len, &found, &error));
            CHECK(found.index == i);
            if (tensor.role != P64_ROLE_NONE) {
                CHECK_OK(p64_stream_find_role(&stream, tensor.role, tensor.layer, &found, &error));
                CHECK(found.index == i);
            }
            unsigned char *bytes = malloc((size_t)tensor.size);
            CHECK_OK(p64_stream_read(&stream, i, 0, bytes, (size_t)tensor.size, &error));
            CHECK(memcmp(bytes, f.data + tensor.offset, (size_t)tensor.size) == 0);
            CHECK_OK(p64_stream_read(&stream, i, tensor.size - 1, bytes, 1, &error));
            CHECK(bytes[0] == f.data[tensor.offset + tensor.size - 1]);
            CHECK_OK(p64_stream_read(&stream, i, tensor.size, NULL, 0, &error));
            CHECK_STATUS(p64_stream_read(&stream, i, tensor.size, bytes, 1, &error), P64_STATUS_LENGTH_MISMATCH);
            CHECK_STATUS(p64_stream_read(&stream, i, UINT64_MAX, bytes, 1, &error), P64_STATUS_LENGTH_MISMATCH);
            CHECK_OK(p64_stream_verify(&stream, i, &error));
            free(bytes);
        }
        p64_tensor tensor;
        char left[64], right[64];
        size_t left_len = 0, right_len = 0, len = 0;
        CHECK_STATUS(p64_stream_tensor(&stream, info.tensor_count, &tensor, &error), P64_STATUS_NO_SUCH_TENSOR);
        CHECK_STATUS(p64_stream_name(&stream, UINT32_MAX, left, sizeof left, &len, &error), P64_STATUS_NO_SUCH_TENSOR);
        CHECK_STATUS(p64_stream_verify(&stream, UINT32_MAX, &error), P64_STATUS_NO_SUCH_TENSOR);
        CHECK_STATUS(p64_stream_read(&stream, UINT32_MAX, 0, left, 1, &error), P64_STATUS_NO_SUCH_TENSOR);
        CHECK_STATUS(p64_stream_find(&stream, TEXT("no such name"), &tensor, &error), P64_STATUS_NOT_FOUND);
        CHECK_STATUS(p64_stream_find(&stream, TEXT("\xff"), &tensor, &error), P64_STATUS_NOT_FOUND);
        CHECK_STATUS(p64_stream_find_role(&stream, P64_ROLE_VISION_FC, 0, &tensor, &error), P64_STATUS_NOT_FOUND);
        CHECK_STATUS(p64_stream_find_role(&stream, 0x10000, 0, &tensor, &error), P64_STATUS_BAD_ARGUMENT);
        p64_layer unit;
        p64_manifold place;
        CHECK_STATUS(p64_stream_layer(&stream, info.n_layer + 1, &unit, &error), P64_STATUS_NOT_FOUND);
        CHECK_STATUS(p64_stream_manifold(&stream, info.n_layer + 1, &place, &error), P64_STATUS_NOT_FOUND);
        for (uint32_t id = 0; id < 1024; id += 31) {
            const char *text = NULL;
            CHECK_OK(p64_tokenizer_token(&container, id, &text, &len, &error));
            CHECK_OK(p64_stream_token(&stream, id, left, sizeof left, &left_len, &error));
            CHECK(left_len == len && memcmp(left, text, len) == 0);
        }
        const char *want_left = NULL, *want_right = NULL;
        size_t want_left_len = 0, want_right_len = 0;
        CHECK_OK(p64_tokenizer_merge(&container, 7, &want_left, &want_left_len, &want_right, &want_right_len, &error));
        CHECK_OK(p64_stream_merge(&stream, 7, left, sizeof left, &left_len, right, sizeof right, &right_len, &error));
        CHECK(left_len == want_left_len && memcmp(left, want_left, left_len) == 0);
        CHECK(right_len == want_right_len && memcmp(right, want_right, right_len) == 0);
        CHECK_STATUS(p64_stream_merge(&stream, 7, left, 64, &left_len, left + 32, 32, &right_len, &error), P64_STATUS_BAD_ARGUMENT);
        CHECK_STATUS(p64_stream_merge(&stream, UINT32_MAX, left, 64, &left_len, right, 64, &right_len, &error), P64_STATUS_NOT_FOUND);
        CHECK_STATUS(p64_stream_token(&stream, UINT32_MAX, left, sizeof left, &left_len, &error), P64_STATUS_NOT_FOUND);
        CHECK_STATUS(p64_stream_token(&stream, 300, left, 0, &left_len, &error), P64_STATUS_BUFFER_TOO_SMALL);
    }
}

/* A read that fails is a status of its own; a validation in steps goes on after it. */
static void test_faults(file f) {
    source s = {f, -1, 0, 0};
    p64_reader r = reader(&s);
    p64_stream stream;
    p64_error error;
    p64_info info;
    unsigned char buffer[4096];
    int32_t done = 0;
    CHECK_OK(p64_stream_open(&stream, &r, buffer, sizeof buffer, NULL, &error));
    long reads = s.reads;
    for (long at = 0; at < reads; at += at < 8 ? 1 : 23) {
        s.reads = 0;
        s.fail_at = at;
        CHECK_STATUS(p64_stream_open(&stream, &r, buffer, sizeof buffer, NULL, &error), P64_STATUS_READ_FAILED);
        CHECK((int32_t)(uint32_t)error.found == -5);
        CHECK_STATUS(p64_stream_info(&stream, &info, &error), P64_STATUS_NOT_OPEN);

        s.reads = 0;
        CHECK_OK(p64_stream_begin(&stream, &r, buffer, sizeof buffer, NULL, &error));
        p64_status status = P64_STATUS_OK;
        unsigned failures = 0;
        for (done = 0; !done; failures += status == P64_STATUS_READ_FAILED) {
            status = p64_stream_step(&stream, &done, &error);
            if (status != P64_STATUS_OK && status != P64_STATUS_READ_FAILED) break;
        }
        CHECK(done == 1 && failures == 1);
        CHECK_OK(p64_stream_info(&stream, &info, &error));
        s.fail_at = s.reads;
        CHECK_STATUS(p64_stream_info(&stream, &info, &error), P64_STATUS_READ_FAILED);
        CHECK_OK(p64_stream_info(&stream, &info, &error));
    }
    /* An error of the file stays one. */
    file damaged = {malloc(f.len), f.len};
    memcpy(damaged.data, f.data, f.len);
    damaged.data[40] ^= 0x55;
    source bad = {damaged, -1, 0, 0};
    r = reader(&bad);
    CHECK_OK(p64_stream_begin(&stream, &r, buffer, sizeof buffer, NULL, &error));
    p64_status status = P64_STATUS_OK;
    for (done = 0; !done && status == P64_STATUS_OK;) status = p64_stream_step(&stream, &done, &error);
    CHECK(status != P64_STATUS_OK && status < P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_stream_step(&stream, &done, &error), status);
    free(damaged.data);
}

/* Each function on a stream, with what `want` is to be said. */
static void every_call_with(p64_stream *s, p64_status want) {
    union {
        p64_info info;
        p64_hparams hparams;
        p64_tensor tensor;
        p64_layer layer;
        p64_manifold manifold;
    } out;
    p64_error error;
    char text[8];
    size_t len = 0;
    CHECK_STATUS(p64_stream_info(s, &out.info, &error), want);
    CHECK_STATUS(p64_stream_hparams(s, &out.hparams, &error), want);
    CHECK_STATUS(p64_stream_tensor(s, 0, &out.tensor, &error), want);
    CHECK_STATUS(p64_stream_name(s, 0, text, sizeof text, &len, &error), want);
    CHECK_STATUS(p64_stream_find(s, TEXT("x"), &out.tensor, &error), want);
    CHECK_STATUS(p64_stream_find_role(s, 0, 0, &out.tensor, &error), want);
    CHECK_STATUS(p64_stream_layer(s, 0, &out.layer, &error), want);
    CHECK_STATUS(p64_stream_manifold(s, 0, &out.manifold, &error), want);
    CHECK_STATUS(p64_stream_verify(s, 0, &error), want);
    CHECK_STATUS(p64_stream_read(s, 0, 0, text, 1, &error), want);
    CHECK_STATUS(p64_stream_token(s, 0, text, sizeof text, &len, &error), want);
    CHECK_STATUS(p64_stream_merge(s, 0, text, 4, &len, text + 4, 4, &len, &error), want);
}

#define EACH_PLACE(type, call) \
    do { \
        type *place = NULL; \
        CHECK_STATUS(call, P64_STATUS_NULL_POINTER); \
        place = CROOKED(type); \
        CHECK_STATUS(call, P64_STATUS_MISALIGNED); \
    } while (0)

static void test_misuse(file f) {
    source s = {f, -1, 0, 0};
    p64_reader r = reader(&s), none = {NULL, NULL, 100};
    p64_stream stream;
    p64_stream *st = &stream;
    p64_error error;
    unsigned char buffer[256];
    char text[256];
    int32_t done = 7;
    size_t len = 0;
    memset(&stream, 0, sizeof stream);
    every_call_with(&stream, P64_STATUS_NOT_OPEN);
    memset(&stream, 0xa5, sizeof stream);
    every_call_with(&stream, P64_STATUS_NOT_OPEN);
    CHECK_STATUS(p64_stream_step(&stream, &done, &error), P64_STATUS_NOT_OPEN);
    every_call_with(NULL, P64_STATUS_NULL_POINTER);
    every_call_with(CROOKED(p64_stream), P64_STATUS_MISALIGNED);
    EACH_PLACE(p64_stream, p64_stream_begin(place, &r, buffer, sizeof buffer, NULL, &error));
    EACH_PLACE(p64_stream, p64_stream_open(place, &r, buffer, sizeof buffer, NULL, &error));
    EACH_PLACE(const p64_reader, p64_stream_begin(st, place, buffer, sizeof buffer, NULL, &error));
    EACH_PLACE(const p64_reader, p64_stream_open(st, place, buffer, sizeof buffer, NULL, &error));
    EACH_PLACE(p64_stream, p64_stream_step(place, &done, &error));
    CHECK_STATUS(p64_stream_begin(st, &none, buffer, sizeof buffer, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_stream_begin(st, &r, NULL, sizeof buffer, NULL, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_stream_begin(st, &r, NULL, 0, NULL, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_stream_begin(st, &r, buffer, P64_STREAM_MIN_BUFFER - 1, NULL, &error), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_stream_begin(st, &r, buffer, SIZE_MAX, NULL, &error), P64_STATUS_BAD_ARGUMENT);
    CHECK_STATUS(p64_stream_open(st, &r, buffer, sizeof buffer, CROOKED(p64_open_options), &error), P64_STATUS_MISALIGNED);
    p64_open_options o = options();
    o.struct_size = 4;
    CHECK_STATUS(p64_stream_open(st, &r, buffer, sizeof buffer, &o, &error), P64_STATUS_BAD_STRUCT_SIZE);
    o = options();
    o.policy = 9;
    CHECK_STATUS(p64_stream_open(st, &r, buffer, sizeof buffer, &o, &error), P64_STATUS_BAD_ARGUMENT);
    o = options();
    o.verified = buffer;
    o.verified_len = sizeof buffer;
    CHECK_STATUS(p64_stream_open(st, &r, buffer, sizeof buffer, &o, &error), P64_STATUS_BAD_ARGUMENT);
    uint8_t verified[1];
    o.verified = verified;
    o.verified_len = 1;
    CHECK_STATUS(p64_stream_open(st, &r, buffer, sizeof buffer, &o, &error), P64_STATUS_BUFFER_TOO_SMALL);
    /* Step by step the same, and no later step takes it back. */
    CHECK_OK(p64_stream_begin(st, &r, buffer, sizeof buffer, &o, &error));
    for (done = 0; !done && p64_stream_step(st, &done, &error) == P64_STATUS_OK;) {}
    for (int again = 0; again < 2; again++) {
        CHECK(done == 0 && error.status == P64_STATUS_BUFFER_TOO_SMALL);
        CHECK_STATUS(p64_stream_step(st, &done, &error), P64_STATUS_BUFFER_TOO_SMALL);
    }

    CHECK_OK(p64_stream_begin(st, &r, buffer, sizeof buffer, NULL, &error));
    CHECK(s.reads > 0); /* those of the openings above; beginning read nothing */
    every_call_with(st, P64_STATUS_NOT_VALIDATED);
    EACH_PLACE(int32_t, p64_stream_step(st, place, &error));
    unsigned steps = 0;
    for (done = 0; !done && p64_stream_step(st, &done, &error) == P64_STATUS_OK;) steps += 1;
    CHECK(done == 1 && steps > f.len / sizeof buffer);
    CHECK_OK(p64_stream_step(st, &done, &error)); /* nothing is left to do */
    CHECK(done == 1);
    EACH_PLACE(p64_info, p64_stream_info(st, place, &error));
    EACH_PLACE(p64_hparams, p64_stream_hparams(st, place, &error));
    EACH_PLACE(p64_tensor, p64_stream_tensor(st, 0, place, &error));
    EACH_PLACE(size_t, p64_stream_name(st, 0, text, sizeof text, place, &error));
    EACH_PLACE(p64_tensor, p64_stream_find(st, TEXT("output_norm.weight"), place, &error));
    EACH_PLACE(p64_tensor, p64_stream_find_role(st, P64_ROLE_ATTN_Q, 0, place, &error));
    EACH_PLACE(p64_layer, p64_stream_layer(st, 0, place, &error));
    EACH_PLACE(p64_manifold, p64_stream_manifold(st, 0, place, &error));
    EACH_PLACE(size_t, p64_stream_token(st, 0, text, sizeof text, place, &error));
    EACH_PLACE(size_t, p64_stream_merge(st, 0, text, 64, place, text + 64, 64, &len, &error));
    EACH_PLACE(size_t, p64_stream_merge(st, 0, text, 64, &len, text + 64, 64, place, &error));
    CHECK_STATUS(p64_stream_name(st, 0, NULL, 64, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_stream_read(st, 0, 0, NULL, 1, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_stream_token(st, 0, NULL, 64, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_stream_merge(st, 0, NULL, 64, &len, text, 64, &len, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_stream_find(st, NULL, 4, CROOKED(p64_tensor), &error), P64_STATUS_MISALIGNED);
}

/* A tensor that fails its checksum is not read under lazy integrity. */
static void test_damage(file f) {
    p64_container container;
    p64_tensor t;
    p64_error error;
    CHECK_OK(p64_container_open(&container, f.data, f.len, NULL, &error));
    CHECK_OK(p64_container_find(&container, TEXT("blk.1.ffn_up.weight"), &t, &error));
    file damaged = {malloc(f.len), f.len};
    memcpy(damaged.data, f.data, f.len);
    damaged.data[t.offset + 5] ^= 4;
    agree(damaged, P64_POLICY_STRICT);
    source s = {damaged, -1, 0, 0};
    p64_reader r = reader(&s);
    p64_stream stream;
    unsigned char buffer[300], out[16];
    p64_open_options o = options();
    o.integrity = P64_INTEGRITY_LAZY;
    CHECK_OK(p64_stream_open(&stream, &r, buffer, sizeof buffer, &o, &error));
    CHECK_STATUS(p64_stream_read(&stream, t.index, 32, out, sizeof out, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK_STATUS(p64_stream_verify(&stream, t.index, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK(error.place == P64_PLACE_TENSOR && error.index == t.index);
    CHECK_OK(p64_stream_verify(&stream, t.index + 1, &error));
    free(damaged.data);
}

static void *thread(void *argument) {
    agree(*(const file *)argument, P64_POLICY_STRICT);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: stream MODEL.p64 MODEL.gguf INVALID-FOLDER SCRATCH-FOLDER\n");
        return 2;
    }
    file f = read_file(argv[1]);
    agree(f, P64_POLICY_STRICT);
    agree(f, P64_POLICY_COMPATIBLE);
    test_answers(f);
    test_faults(f);
    test_misuse(f);
    test_damage(f);
    test_invalid(argv[3]);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, thread, &f) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    free(f.data);
    return checks_end("stream");
}
