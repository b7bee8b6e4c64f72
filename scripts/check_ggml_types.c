// Compares the golden values of weight formats with what ggml's own decoders make of the golden blocks.
//
//     check_ggml_types DIR        DIR holds NAME.blocks and NAME.f32 (tests/data/quant)
//
// One line a type: its name, its blocks, its values. Exit status 0: all are equal, bit for bit; where the golden is NaN,
// ggml's value has to be NaN, of any sign and payload.
#include "ggml.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void * read_file(const char * folder, const char * name, const char * suffix, size_t * size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
    FILE * file = fopen(path, "rb");
    if (!file) {
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    *size = (size_t) ftell(file);
    rewind(file);
    void * bytes = malloc(*size + 1);
    if (!bytes || fread(bytes, 1, *size, file) != *size) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    return bytes;
}

// Values that differ.
static size_t differences(const char * name, const float * ours, const float * theirs, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; ++i) {
        unsigned a, b;
        memcpy(&a, &ours[i], sizeof a);
        memcpy(&b, &theirs[i], sizeof b);
        if (a == b || (isnan(ours[i]) && isnan(theirs[i]))) {
            continue;
        }
        if (found++ == 0) {
            fprintf(stderr, "%s: element %zu: golden %g (%08x), ggml %g (%08x)\n", name, i, ours[i], a, theirs[i], b);
        }
    }
    return found;
}

int main(int argc, char ** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: check_ggml_types DIR\n");
        return 2;
    }
    int types = 0, failed = 0;
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const struct ggml_type_traits * traits = ggml_get_type_traits((enum ggml_type) type);
        if (!traits->type_name || !traits->to_float) {
            continue;
        }
        char name[32] = {0};
        for (size_t i = 0; traits->type_name[i] && i + 1 < sizeof name; ++i) {
            name[i] = (char) tolower((unsigned char) traits->type_name[i]);
        }
        size_t packed = 0, plain = 0;
        void * blocks = read_file(argv[1], name, "blocks", &packed);
        float * golden = read_file(argv[1], name, "f32", &plain);
        if (!blocks || !golden) {
            // Activation types are no weights; a weight type without a golden is for the tests to find.
            printf("%-8s no golden\n", name);
            continue;
        }
        size_t count = plain / sizeof(float), n_blocks = packed / traits->type_size;
        if (count != n_blocks * (size_t) traits->blck_size) {
            fprintf(stderr, "%s: %zu values for %zu blocks\n", name, count, n_blocks);
            return 1;
        }
        float * values = malloc(plain + 1);
        traits->to_float(blocks, values, (int64_t) count);
        size_t found = differences(name, golden, values, count);
        printf("%-8s %5zu blocks, %6zu values: %s\n", name, n_blocks, count, found ? "DIFFERENT" : "equal");
        types++;
        failed += found != 0;
        free(values);
        free(golden);
        free(blocks);
    }
    printf("%d types compared, %d different\n", types, failed);
    return types > 0 && !failed ? 0 : 1;
}
