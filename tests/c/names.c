/* Version, statuses, names, sentences and checksums: what needs no container. */
#define _POSIX_C_SOURCE 200809L

#include "story.h"

/* ---- version, statuses, names ---- */

static void test_names(void) {
    CHECK(p64_version() == P64_VERSION);
    CHECK(p64_abi_version() == P64_ABI_VERSION);
    CHECK(strcmp(p64_status_str(P64_STATUS_OK), "ok") == 0);
    CHECK(strcmp(p64_status_str(P64_STATUS_TENSOR_CHECKSUM), "tensor-checksum") == 0);
    CHECK(strcmp(p64_status_str(P64_STATUS_NOT_OPEN), "not-open") == 0);
    CHECK(strcmp(p64_status_str((p64_status)-7), "unknown") == 0);
    CHECK(strcmp(p64_dtype_name(P64_DTYPE_Q8_0), "Q8_0") == 0);
    CHECK(strcmp(p64_dtype_name(99999), "unknown") == 0);
    CHECK(strcmp(p64_role_name(P64_ROLE_FFN_GATE), "ffn_gate") == 0);
    CHECK(strcmp(p64_role_name(UINT32_MAX), "unknown") == 0);

    uint32_t elements = 0, bytes = 0;
    p64_error error;
    CHECK_OK(p64_dtype_block(P64_DTYPE_Q4_K, &elements, &bytes, &error));
    CHECK(elements == 256 && bytes == 144);
    CHECK_STATUS(p64_dtype_block(P64_DTYPE_TERNARY, &elements, &bytes, &error), P64_STATUS_UNSUPPORTED_DTYPE);
    CHECK_STATUS(p64_dtype_block(UINT32_MAX, &elements, &bytes, &error), P64_STATUS_UNSUPPORTED_DTYPE);
    CHECK_STATUS(p64_dtype_block(0, NULL, &bytes, &error), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_dtype_block(0, &elements, CROOKED(uint32_t), NULL), P64_STATUS_MISALIGNED);
}

static void test_error_format(void) {
    p64_error error = {P64_STATUS_BLOB_ALIGNMENT, P64_PLACE_TENSOR, P64_SECTION_NONE, 7, UINT64_MAX, 0x4000, 0x1f40};
    const char *want = "tensor 7: blob offset 0x1f40 is not a multiple of 0x4000 (\xc2\xa7" "14.12)";
    char text[128];
    size_t needed = 0;
    CHECK_OK(p64_error_format(&error, text, sizeof text, &needed));
    CHECK(strcmp(text, want) == 0 && needed == strlen(want) + 1);
    CHECK_OK(p64_error_format(&error, text, needed, NULL));
    CHECK_STATUS(p64_error_format(&error, text, 9, &needed), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK(strcmp(text, "tensor 7") == 0);
    CHECK_STATUS(p64_error_format(&error, NULL, 0, &needed), P64_STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(p64_error_format(&error, NULL, 8, &needed), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_error_format(NULL, text, sizeof text, &needed), P64_STATUS_NULL_POINTER);
    CHECK_STATUS(p64_error_format(CROOKED(p64_error), text, sizeof text, &needed), P64_STATUS_MISALIGNED);
    CHECK_STATUS(p64_error_format(&error, text, sizeof text, CROOKED(size_t)), P64_STATUS_MISALIGNED);
    /* Numbers that no library wrote. */
    memset(&error, 0xff, sizeof error);
    CHECK_OK(p64_error_format(&error, text, sizeof text, &needed));
    error.status = P64_STATUS_TOO_SHORT;
    CHECK_OK(p64_error_format(&error, text, sizeof text, &needed));
    error.place = P64_PLACE_SECTION;
    CHECK_OK(p64_error_format(&error, text, sizeof text, &needed));
}

/* ---- CRC-32C ---- */

typedef struct counter {
    unsigned calls;
    size_t bytes;
} counter;

static uint32_t counting(void *user, uint32_t crc, const uint8_t *data, size_t len) {
    counter *seen = user;
    seen->calls += 1;
    seen->bytes += len;
    return p64_crc32c_8k(NULL, crc, data, len);
}

static uint32_t wrong(void *user, uint32_t crc, const uint8_t *data, size_t len) {
    (void)user;
    (void)data;
    return crc + (uint32_t)len;
}

static void test_crc(file f) {
    const uint8_t *digits = (const uint8_t *)"123456789";
    uint32_t (*const tables[])(void *, uint32_t, const uint8_t *, size_t) = {p64_crc32c_64, p64_crc32c_1k, p64_crc32c_8k,
                                                                             p64_crc32c_16k};
    for (size_t i = 0; i < 4; i++) {
        CHECK(tables[i](NULL, 0, digits, 9) == 0xe3069283u);
        CHECK(tables[i](NULL, tables[i](NULL, 0, digits, 4), digits + 4, 5) == 0xe3069283u);
        CHECK(tables[i](NULL, 17, NULL, 0) == 17);
        CHECK(tables[i](NULL, 17, NULL, 5) == 17);
        p64_container container;
        p64_crc32c crc = {tables[i], NULL};
        p64_open_options o = options();
        o.crc32c = &crc;
        CHECK_OK(p64_container_open(&container, f.data, f.len, &o, NULL));
    }
    counter seen = {0, 0};
    p64_crc32c crc = {counting, &seen};
    p64_open_options o = options();
    o.crc32c = &crc;
    o.integrity = P64_INTEGRITY_LAZY;
    p64_container container;
    CHECK_OK(p64_container_open(&container, f.data, f.len, &o, NULL));
    CHECK(seen.calls > 0 && seen.bytes > 0 && seen.bytes < f.len);
    size_t before = seen.bytes;
    CHECK_OK(p64_container_verify_all(&container, NULL));
    CHECK(seen.bytes > before);

    p64_error error;
    crc.update = wrong;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_METADATA_CHECKSUM);
    CHECK(error.place == P64_PLACE_SECTION && error.section == P64_SECTION_CHECKSUMS);
    crc.update = NULL;
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_NULL_POINTER);
    o.crc32c = CROOKED(p64_crc32c);
    CHECK_STATUS(p64_container_open(&container, f.data, f.len, &o, &error), P64_STATUS_MISALIGNED);
}

int main(int argc, char **argv) {
    file f = story_model("names", argc, argv);
    test_names();
    test_error_format();
    test_crc(f);
    free(f.data);
    return checks_end("names");
}
