/* Validates a P64 file and says what it is, without a heap: what firmware does with a model in its flash.
 *
 *   cc -std=c11 validate.c $(pkg-config --cflags --libs p64) -o validate && ./validate model.p64
 */
#define _POSIX_C_SOURCE 200809L

#include <p64.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The whole of it: the container lives on the stack, and refers to `file`. */
static int validate(const void *file, size_t len) {
    p64_container container;
    p64_error error;
    p64_info info;

    if (p64_container_open(&container, file, len, NULL, &error) != P64_STATUS_OK ||
        p64_container_info(&container, &info, &error) != P64_STATUS_OK) {
        char sentence[256]; /* what does not fit is cut off */
        p64_error_format(&error, sentence, sizeof sentence, NULL);
        fprintf(stderr, "%s: %s\n", p64_status_str(error.status), sentence);
        return 1;
    }
    printf("valid: version %" PRIu32 ", %" PRIu32 " tensors in %" PRIu32 " layers, %" PRIu64 " bytes of weights\n",
           info.version, info.tensor_count, info.n_layer, info.tensor_bytes);
    return 0;
}

int main(int argc, char **argv) {
    struct stat stat;
    int file = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &stat) != 0) {
        fprintf(stderr, "usage: validate MODEL.p64\n");
        return 2;
    }
    size_t len = (size_t)stat.st_size;
    void *data = len > 0 ? mmap(NULL, len, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
    close(file);
    if (data == MAP_FAILED) {
        perror(argv[1]);
        return 2;
    }
    int status = validate(data, len);
    if (data != NULL) munmap(data, len);
    return status;
}
