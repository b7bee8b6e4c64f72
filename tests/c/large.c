/* A file past 4 GiB, of container version 5: written here byte by byte from docs/spec/p64.md, mapped, streamed and opened by
 * tier 1. One tensor is a hole of 4 GiB and 128 bytes; what is looked at lies behind it.
 *
 *   large MODEL.p64 MODEL.gguf FOLDER-OF-INVALID-FIXTURES SCRATCH-FOLDER
 */
#define _DEFAULT_SOURCE
#define _FILE_OFFSET_BITS 64

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

/* Sections as a writer puts them, one layer, two tensors; then the blobs, on pages of 4 KiB. */
enum { HPARAMS = 64, SCHEDULE = 128, ENTRIES = 192, NAMES = 320, MANIFOLD = 384, CHECKSUMS = 512, FRONT = 524, PAGE = 4096 };

static const uint64_t HUGE_LEN = (UINT64_C(1) << 32) + 128, SMALL_AT = (UINT64_C(1) << 32) + 2 * PAGE;
static const uint64_t FILE_LEN = (UINT64_C(1) << 32) + 2 * PAGE + 64;
static const unsigned char SMALL[16] = {0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64};

static void put(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static void put_entry(unsigned char *at, unsigned name, unsigned role, unsigned dtype, unsigned layer) {
    put(at, name, 4);
    put(at + 4, role, 2);
    put(at + 6, dtype, 2);
    put(at + 8, layer, 4);
}

static void put_place(unsigned char *entry, uint64_t offset, uint64_t size) {
    put(entry + 32, offset, 4);
    put(entry + 36, size, 4);
    put(entry + 56, offset >> 32, 4);
    put(entry + 60, size >> 32, 4);
}

static void put_checksum(unsigned char *front) {
    put(front + CHECKSUMS, p64_crc32c_64(NULL, 0, front, CHECKSUMS), 4);
}

static void make_front(unsigned char *front) {
    memset(front, 0, FRONT);
    memcpy(front, "p64", 3);
    put(front + 4, 5, 2);
    put(front + 6, 1 | 2 | 16 | 64, 2); /* little-endian, raw transcode, layer-major, schedule */
    put(front + 8, SCHEDULE, 4);
    put(front + 12, ENTRIES, 4);
    put(front + 16, CHECKSUMS, 4);
    put(front + 20, HPARAMS, 4);
    put(front + 24, NAMES, 4);
    put(front + 28, CHECKSUMS, 4);
    put(front + 32, MANIFOLD, 4);
    put(front + 36, 2, 4);
    put(front + 40, PAGE, 4);
    put(front + HPARAMS, 1, 4);

    put(front + SCHEDULE + 4, PAGE, 4);
    put(front + SCHEDULE + 8, PAGE + HUGE_LEN, 4);
    put(front + SCHEDULE + 12, 1, 2);
    put(front + SCHEDULE + 14, 1 << P64_ROLE_ATTN_Q, 2);
    put(front + SCHEDULE + 20, (PAGE + HUGE_LEN) >> 32, 4);

    unsigned char *entry = front + ENTRIES;
    put_entry(entry, 1, P64_ROLE_ATTN_Q, P64_DTYPE_I8, 0);
    put(entry + 12, 2, 4);
    put(entry + 16, HUGE_LEN / 2, 4);
    put(entry + 20, 2, 4);
    put_place(entry, PAGE, HUGE_LEN);
    entry += 64;
    put_entry(entry, 3, P64_ROLE_OUTPUT_NORM, P64_DTYPE_F32, 1);
    put(entry + 12, 1, 4);
    put(entry + 16, 4, 4);
    put_place(entry, SMALL_AT, sizeof SMALL);
    memcpy(front + NAMES, "\0a\0b", 4);

    put(front + CHECKSUMS + 8, p64_crc32c_64(NULL, 0, SMALL, sizeof SMALL), 4);
    put_checksum(front);
}

static p64_open_options lazy(void) {
    p64_open_options o = {0};
    o.struct_size = sizeof o;
    o.policy = P64_POLICY_STRICT;
    o.integrity = P64_INTEGRITY_LAZY;
    return o;
}

static void check_tensors(const p64_tensor *huge, const p64_tensor *small) {
    CHECK(huge->offset == PAGE && huge->size == HUGE_LEN && huge->dims[0] == HUGE_LEN / 2);
    CHECK(small->offset == SMALL_AT && small->size == sizeof SMALL);
}

static void check_layers(const p64_layer *layer, const p64_layer *globals) {
    CHECK(layer->begin == PAGE && layer->end == PAGE + HUGE_LEN);
    CHECK(globals->begin == SMALL_AT && globals->end == SMALL_AT + sizeof SMALL);
}

static void test_container(const p64_container *container) {
    p64_info info;
    p64_tensor huge, small;
    p64_layer layer, globals;
    p64_error error;
    const uint8_t *data = NULL;
    size_t len = 0;
    CHECK_OK(p64_container_info(container, &info, &error));
    CHECK(info.version == 5 && info.file_len == FILE_LEN && info.tensor_bytes == HUGE_LEN + sizeof SMALL);
    CHECK_OK(p64_container_tensor(container, 0, &huge, &error));
    CHECK_OK(p64_container_find(container, "b", 1, &small, &error));
    check_tensors(&huge, &small);
    CHECK_OK(p64_container_layer(container, 0, &layer, &error));
    CHECK_OK(p64_container_layer(container, 1, &globals, &error));
    check_layers(&layer, &globals);
    CHECK_OK(p64_tensor_data(container, 1, &data, &len, &error));
    CHECK(len == sizeof SMALL && memcmp(data, SMALL, sizeof SMALL) == 0);
}

static int32_t read_file_at(void *user, uint64_t offset, void *buffer, size_t len) {
    return pread(*(int *)user, buffer, len, (off_t)offset) == (ssize_t)len ? 0 : -1;
}

static void test_stream(int fd) {
    p64_reader reader = {read_file_at, &fd, FILE_LEN};
    p64_open_options o = lazy();
    p64_stream stream;
    p64_tensor huge, small;
    p64_layer layer, globals;
    p64_error error;
    unsigned char buffer[256], bytes[8];
    CHECK_OK(p64_stream_open(&stream, &reader, buffer, sizeof buffer, &o, &error));
    CHECK_OK(p64_stream_tensor(&stream, 0, &huge, &error));
    CHECK_OK(p64_stream_find(&stream, "b", 1, &small, &error));
    check_tensors(&huge, &small);
    CHECK_OK(p64_stream_layer(&stream, 0, &layer, &error));
    CHECK_OK(p64_stream_layer(&stream, 1, &globals, &error));
    check_layers(&layer, &globals);
    CHECK_OK(p64_stream_read(&stream, 1, 8, bytes, sizeof bytes, &error));
    CHECK(memcmp(bytes, SMALL + 8, sizeof bytes) == 0);
    CHECK_STATUS(p64_stream_read(&stream, 0, HUGE_LEN - 7, bytes, sizeof bytes, &error), P64_STATUS_LENGTH_MISMATCH);
    CHECK(error.expected == HUGE_LEN && error.found == HUGE_LEN + 1);
}

/* What is said of the file when its high words lie. */
static void test_damage(unsigned char *file) {
    static const struct {
        size_t at;
        uint32_t value;
        p64_status want;
    } cases[] = {
        {4, 4, P64_STATUS_FILE_TOO_LARGE},
        {ENTRIES + 64 + 56, 0, P64_STATUS_BLOB_ORDER},
        {ENTRIES + 64 + 56, 2, P64_STATUS_BLOB_BOUNDS},
        {ENTRIES + 64 + 56, UINT32_MAX, P64_STATUS_BLOB_BOUNDS},
        {ENTRIES + 60, 0, P64_STATUS_BLOB_SIZE},
        {ENTRIES + 64 + 60, 1, P64_STATUS_BLOB_SIZE},
        {SCHEDULE + 16, 1, P64_STATUS_SCHEDULE_BEGIN},
        {SCHEDULE + 20, 0, P64_STATUS_SCHEDULE_END},
        {SCHEDULE + 24, 1, P64_STATUS_SCHEDULE_RESERVED},
    };
    p64_open_options o = lazy();
    p64_container container;
    p64_error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_front(file);
        put(file + cases[i].at, cases[i].value, cases[i].at == 4 ? 2 : 4);
        put_checksum(file);
        CHECK_STATUS(p64_container_open(&container, file, (size_t)FILE_LEN, &o, &error), cases[i].want);
    }
    make_front(file);
    CHECK_OK(p64_container_open(&container, file, (size_t)FILE_LEN, &o, &error));
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: %s MODEL.p64 MODEL.gguf INVALID-FOLDER SCRATCH-FOLDER\n", argv[0]);
        return 2;
    }
    char path[4096];
    unsigned char front[FRONT];
    snprintf(path, sizeof path, "%s/large.p64", argv[4]);
    make_front(front);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)FILE_LEN) != 0 || pwrite(fd, front, FRONT, 0) != FRONT ||
        pwrite(fd, SMALL, sizeof SMALL, (off_t)SMALL_AT) != (ssize_t)sizeof SMALL) {
        perror(path);
        return 2;
    }
    test_stream(fd);
    if (SIZE_MAX > UINT32_MAX) {
        /* A private mapping: what is written to it does not reach the file. */
        void *mapped = mmap(NULL, (size_t)FILE_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
        CHECK(mapped != MAP_FAILED);
        if (mapped != MAP_FAILED) {
            p64_open_options o = lazy();
            p64_container container;
            p64_error error;
            CHECK_OK(p64_container_open(&container, mapped, (size_t)FILE_LEN, &o, &error));
            test_container(&container);
            test_damage(mapped);
            munmap(mapped, (size_t)FILE_LEN);
        }
        p64_map_options o = {0};
        o.struct_size = sizeof o;
        o.policy = P64_POLICY_STRICT;
        o.integrity = P64_INTEGRITY_LAZY;
        p64_file *opened = NULL;
        p64_error error;
        CHECK_OK(p64_file_open(path, &o, &opened, &error));
        test_container(p64_file_container(opened));
        p64_file_free(opened);
    }
    close(fd);
    unlink(path);
    return checks_end("large");
}
