/* Files that are broken: every fixture has the status of its name, and a flipped byte exposes nothing. */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>

#include "story.h"

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

int main(int argc, char **argv) {
    file f = story_model("damage", argc, argv);
    test_invalid(argv[3]);
    test_damage(f);
    free(f.data);
    return checks_end("damage");
}
