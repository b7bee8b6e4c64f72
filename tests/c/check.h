/* What the C tests share: counted checks and files in memory. */
#ifndef P64_TESTS_CHECK_H
#define P64_TESTS_CHECK_H

#ifdef __cplusplus
#include <atomic>
using std::atomic_uint;
#else
#include <stdatomic.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "p64.h"

static atomic_uint checks_done, checks_failed;

#define CHECK(condition) check_((condition) != 0, #condition, __FILE__, __LINE__)
#define CHECK_STATUS(call, want) check_status_((call), (want), #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_STATUS(call, P64_STATUS_OK)

static inline void check_(int holds, const char *what, const char *file, int line) {
    atomic_fetch_add(&checks_done, 1);
    if (!holds) {
        atomic_fetch_add(&checks_failed, 1);
        fprintf(stderr, "%s:%d: %s\n", file, line, what);
    }
}

static inline void check_status_(p64_status status, p64_status want, const char *what, const char *file, int line) {
    atomic_fetch_add(&checks_done, 1);
    if (status != want) {
        atomic_fetch_add(&checks_failed, 1);
        fprintf(stderr, "%s:%d: %s is %d (%s), not %d (%s)\n", file, line, what, (int)status, p64_status_str(status),
                (int)want, p64_status_str(want));
    }
}

/* How a test program ends: what it counted, and whether all of it held. */
static inline int checks_end(const char *name) {
    unsigned done = atomic_load(&checks_done), failed = atomic_load(&checks_failed);
    printf("%s: %u checks, %u failed\n", name, done, failed);
    return failed != 0 || done == 0;
}

typedef struct file {
    unsigned char *data;
    size_t len;
} file;

/* A whole file on the heap, so that a sanitizer sees every byte read past its end. */
static inline file read_file(const char *path) {
    file out = {NULL, 0};
    FILE *in = fopen(path, "rb");
    if (in == NULL || fseek(in, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    out.len = (size_t)ftell(in);
    rewind(in);
    out.data = (unsigned char *)malloc(out.len ? out.len : 1);
    if (out.data == NULL || fread(out.data, 1, out.len, in) != out.len) {
        perror(path);
        exit(2);
    }
    fclose(in);
    return out;
}

#endif
