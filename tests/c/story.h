/* What the tests of tier 0 share: the bundled story model, opened, and memory that nothing but char may stand in. */
#ifndef P64_TESTS_STORY_H
#define P64_TESTS_STORY_H

#include "check.h"

/* Where a pointer is wanted that is aligned but belongs to nothing. */
static inline unsigned char *memory_of_tests(void) {
    static _Alignas(16) unsigned char bytes[4096];
    return bytes;
}

/* A pointer that no type but char may stand at. */
#define CROOKED(type) ((type *)(void *)(memory_of_tests() + 1))

enum { VOCABULARY = 1024 };

#define TEXT(literal) (literal), (sizeof(literal) - 1)

static inline p64_container opened(file f) {
    p64_container container;
    p64_error error;
    CHECK_OK(p64_container_open(&container, f.data, f.len, NULL, &error));
    CHECK(error.status == P64_STATUS_OK && error.offset == UINT64_MAX);
    return container;
}

static inline p64_open_options options(void) {
    p64_open_options o = {0};
    o.struct_size = sizeof o;
    return o;
}

/* Memory for a decoder. */
static inline void *aligned(const p64_decode_memory *need) {
    size_t bytes = (need->bytes + need->alignment - 1) / need->alignment * need->alignment;
    return aligned_alloc(need->alignment, bytes);
}

/* What every program begins with: the arguments that .ci/c_abi.sh gives, and the model in memory. */
static inline file story_model(const char *name, int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: %s MODEL.p64 MODEL.gguf INVALID-FOLDER SCRATCH-FOLDER\n", name);
        exit(2);
    }
    return read_file(argv[1]);
}

#endif
