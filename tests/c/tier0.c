/* Every function of tier 0: with good input, NULL, misaligned pointers, lengths that are wrong, calls in the wrong order,
 * damaged files, and from eight threads at once.
 *
 *   tier0 MODEL.p64 MODEL.gguf FOLDER-OF-INVALID-FIXTURES SCRATCH-FOLDER
 *
 * The model is the bundled story model, converted; its answers were computed by numpy (tests/data/tiny). */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <math.h>
#include <pthread.h>

#include "check.h"

enum { CONTEXT = 64, BATCH = 4, GENERATED = 32, THREADS = 8, VOCABULARY = 1024 };

static const char *const PROMPT = "Once upon a time";
static const uint32_t PROMPT_IDS[] = {1, 427, 537, 260, 450};
static const uint32_t GENERATED_IDS[GENERATED] = {15,  412, 288, 260, 540, 423, 319, 714, 17,  406, 321,
                                                  318, 260, 872, 871, 328, 260, 462, 662, 17,  714, 442,
                                                  260, 462, 618, 17,  406, 902, 595, 295, 411, 615};

/* A pointer that no type but char may stand at. */
static _Alignas(16) unsigned char crooked_bytes[4096];
#define CROOKED(type) ((type *)(void *)(crooked_bytes + 1))

#define TEXT(literal) (literal), (sizeof(literal) - 1)

static p64_container opened(file f) {
    p64_container container;
    p64_error error;
    CHECK_OK(p64_container_open(&container, f.data, f.len, NULL, &error));
    CHECK(error.status == P64_STATUS_OK && error.offset == UINT64_MAX);
    return container;
}

static p64_open_options options(void) {
    p64_open_options o = {0};
    o.struct_size = sizeof o;
    return o;
}

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
    memcpy(&error, crooked_bytes + 1, sizeof error);
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

static void *aligned(const p64_decode_memory *need) {
    size_t bytes = (need->bytes + need->alignment - 1) / need->alignment * need->alignment;
    return aligned_alloc(need->alignment, bytes);
}

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
        CHECK_STATUS(p64_decoder_init(&out.decoder, c, 1, 1, crooked_bytes, 16, &error), want);
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

/* ---- damaged files ---- */

static void remember(void *user, const p64_error *warning) {
    p64_status *first = user;
    if (*first == P64_STATUS_OK) *first = warning->status;
}

/* What a strict reader finds first in a file. */
static p64_status first_finding(const char *path, p64_policy policy) {
    file f = read_file(path);
    p64_status warned = P64_STATUS_OK, status;
    p64_open_options o = options();
    p64_container container;
    p64_metadata area;
    p64_error error;
    uint32_t count = 0;
    o.policy = policy;
    o.warning = remember;
    o.warning_user = &warned;
    status = p64_container_open(&container, f.data, f.len, &o, &error);
    for (uint32_t a = P64_AREA_SOURCE; status == P64_STATUS_OK && a <= P64_AREA_PROVENANCE; a++) {
        status = p64_container_metadata(&container, a, &area, &error);
        if (status == P64_STATUS_NOT_FOUND) status = P64_STATUS_OK;
    }
    if (status == P64_STATUS_OK) status = p64_container_tensor_count(&container, &count, &error);
    for (uint32_t i = 0; status == P64_STATUS_OK && i < count; i++) {
        p64_tensor t;
        CHECK_OK(p64_container_tensor(&container, i, &t, &error));
        uint64_t rows = 1;
        for (uint32_t d = 1; d < t.rank; d++) rows *= t.dims[d];
        size_t len = (size_t)(rows * t.dims[0]);
        float *values = malloc(len * sizeof *values + 1);
        status = p64_tensor_dequantize(&container, i, 0, rows, values, len, &error);
        if (status == P64_STATUS_UNSUPPORTED_DTYPE) status = P64_STATUS_OK;
        free(values);
    }
    free(f.data);
    return status != P64_STATUS_OK ? status : warned;
}

static void test_invalid(const char *folder) {
    DIR *dir = opendir(folder);
    unsigned files = 0;
    CHECK(dir != NULL);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char *end = NULL;
        p64_status want = (p64_status)strtol(entry->d_name, &end, 10);
        if (*end != '-') continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        /* The strict policy refuses container version 3 before it looks at its flags. */
        p64_policy policy = want == P64_STATUS_VERSION_3_FLAGS ? P64_POLICY_COMPATIBLE : P64_POLICY_STRICT;
        p64_status found = first_finding(path, policy);
        if (found != want) fprintf(stderr, "%s: %s\n", entry->d_name, p64_status_str(found));
        CHECK(found == want);
        CHECK(strncmp(end + 1, p64_status_str(want), strlen(p64_status_str(want))) == 0);
        files += 1;
    }
    if (dir != NULL) closedir(dir);
    CHECK(files > 60);
}

static void test_damage(file f) {
    p64_container container = opened(f);
    p64_tensor t;
    CHECK_OK(p64_container_find(&container, TEXT("blk.0.attn_q.weight"), &t, NULL));
    file damaged = {malloc(f.len), f.len};
    memcpy(damaged.data, f.data, f.len);
    damaged.data[t.offset + t.size / 2] ^= 1;
    p64_error error;
    CHECK_STATUS(p64_container_open(&container, damaged.data, damaged.len, NULL, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK(error.place == P64_PLACE_TENSOR && error.index == t.index && error.expected != error.found);
    uint8_t verified[512];
    p64_open_options o = options();
    o.integrity = P64_INTEGRITY_LAZY;
    o.verified = verified;
    o.verified_len = sizeof verified;
    CHECK_OK(p64_container_open(&container, damaged.data, damaged.len, &o, &error));
    const uint8_t *data = NULL;
    size_t len = 0, scratch_len = 0;
    float number = 0;
    p64_decoder decoder;
    p64_decode_memory need;
    CHECK_STATUS(p64_tensor_data(&container, t.index, &data, &len, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK_STATUS(p64_tensor_data(&container, t.index, &data, &len, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK(data == NULL && len == 0);
    CHECK_STATUS(p64_tensor_verify(&container, t.index, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK_STATUS(p64_container_verify_all(&container, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK_STATUS(p64_tensor_dequantize(&container, t.index, 0, 0, &number, 0, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK_OK(p64_tensor_gemv_required(&container, t.index, &scratch_len, &error));
    CHECK_STATUS(p64_tensor_gemv(&container, t.index, &number, 1, NULL, 0, NULL, 0, 0, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK_OK(p64_decode_required(&container, 4, 1, &need, &error));
    void *memory = aligned(&need);
    CHECK_STATUS(p64_decoder_init(&decoder, &container, 4, 1, memory, need.bytes, &error), P64_STATUS_TENSOR_CHECKSUM);
    CHECK_OK(p64_tensor_data(&container, t.index + 1, &data, &len, &error));
    free(memory);
    free(damaged.data);
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
    if (argc != 5) {
        fprintf(stderr, "usage: tier0 MODEL.p64 MODEL.gguf INVALID-FOLDER SCRATCH-FOLDER\n");
        return 2;
    }
    (void)PROMPT;
    file f = read_file(argv[1]);
    test_names();
    test_error_format();
    test_crc(f);
    test_open(f);
    test_tensors(f);
    test_metadata(f);
    test_tokenizer(f);
    test_kernels(f);
    test_decoder(f);
    test_misuse(f);
    test_invalid(argv[3]);
    test_damage(f);
    test_threads(f);
    free(f.data);
    return checks_end("tier0");
}
