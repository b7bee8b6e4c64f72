/* Lists what a P64 file holds: dimensions, metadata, layers, tensors. Nothing is verified but what is shown: tensors' checksums
 * are left for when somebody uses them (P64_INTEGRITY_LAZY).
 *
 *   cc -std=c11 inspect.c $(pkg-config --cflags --libs p64) -o inspect && ./inspect model.p64
 */
#include <p64.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const p64_error *error) {
    char sentence[256];
    p64_error_format(error, sentence, sizeof sentence, NULL);
    fprintf(stderr, "inspect: %s\n", sentence);
    exit(1);
}

#define TRY(call) \
    do { \
        if ((call) != P64_STATUS_OK) fail(&error); \
    } while (0)

static void *read_file(const char *path, size_t *len) {
    FILE *in = fopen(path, "rb");
    long size = in != NULL && fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
    void *data = size > 0 ? malloc((size_t)size) : NULL;
    if (data == NULL || fseek(in, 0, SEEK_SET) != 0 || fread(data, 1, (size_t)size, in) != (size_t)size) {
        perror(path);
        exit(2);
    }
    fclose(in);
    *len = (size_t)size;
    return data;
}

static void print_value(const p64_value *value) {
    uint64_t unsigned_number;
    int64_t number;
    double real;
    if (value->kind == P64_KIND_STRING) {
        int shown = value->data_len > 60 ? 60 : (int)value->data_len;
        printf("%.*s%s", shown, (const char *)value->data, value->data_len > 60 ? "..." : "");
    } else if (value->kind == P64_KIND_ARRAY) {
        printf("array of %" PRIu64, value->count);
    } else if (p64_value_i64(value, &number, NULL) == P64_STATUS_OK) {
        printf("%" PRId64, number);
    } else if (p64_value_u64(value, &unsigned_number, NULL) == P64_STATUS_OK) {
        printf("%" PRIu64, unsigned_number);
    } else if (p64_value_f64(value, &real, NULL) == P64_STATUS_OK) {
        printf("%g", real);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: inspect MODEL.p64\n");
        return 2;
    }
    size_t len;
    void *data = read_file(argv[1], &len);
    p64_open_options options = {.struct_size = sizeof options, .integrity = P64_INTEGRITY_LAZY};
    p64_container container;
    p64_metadata metadata;
    p64_error error;
    p64_info info;
    TRY(p64_container_open(&container, data, len, &options, &error));
    TRY(p64_container_info(&container, &info, &error));
    printf("%" PRIu64 " bytes, of them %" PRIu64 " padding\n", info.file_len, info.padding_bytes);

    if (p64_container_metadata(&container, P64_AREA_SOURCE, &metadata, &error) == P64_STATUS_OK) {
        const char *key;
        size_t key_len;
        p64_value value;
        while (p64_metadata_next(&metadata, &key, &key_len, &value, &error) == P64_STATUS_OK) {
            printf("  %-45.*s ", (int)key_len, key);
            print_value(&value);
            printf("\n");
        }
    }
    for (uint32_t i = 0; i < info.n_layer; i++) {
        p64_layer layer;
        TRY(p64_container_layer(&container, i, &layer, &error));
        printf("layer %" PRIu32 ": %" PRIu32 " tensors in bytes %#" PRIx64 " to %#" PRIx64 "\n", i, layer.tensor_count, layer.begin,
               layer.end);
    }
    for (uint32_t i = 0; i < info.tensor_count; i++) {
        p64_tensor tensor;
        TRY(p64_container_tensor(&container, i, &tensor, &error));
        printf("  %-28.*s %-8s %-12s", (int)tensor.name_len, tensor.name, p64_dtype_name(tensor.dtype), p64_role_name(tensor.role));
        for (uint32_t d = 0; d < tensor.rank; d++) printf("%s%" PRIu32, d == 0 ? " " : " x ", tensor.dims[d]);
        printf("\n");
    }
    free(data);
    return 0;
}
