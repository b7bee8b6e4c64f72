/* Validates a P64 file through reads of 256 bytes, as firmware does with a model behind a bus, and shows how far it is.
 *
 *   cc -std=c11 stream.c $(pkg-config --cflags --libs p64) -o stream && ./stream model.p64
 */
#define _POSIX_C_SOURCE 200809L

#include <p64.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct flash {
    int file;
    unsigned long reads;
};

/* A driver: all of the bytes, or a number that says why not. */
static int32_t read_flash(void *user, uint64_t offset, void *buffer, size_t len) {
    struct flash *flash = user;
    flash->reads++;
    ssize_t got = pread(flash->file, buffer, len, (off_t)offset);
    return got == (ssize_t)len ? 0 : got < 0 ? errno : -1;
}

int main(int argc, char **argv) {
    struct stat stat;
    struct flash flash = {argc == 2 ? open(argv[1], O_RDONLY) : -1, 0};
    if (flash.file < 0 || fstat(flash.file, &stat) != 0) {
        fprintf(stderr, "usage: stream MODEL.p64\n");
        return 2;
    }

    static unsigned char buffer[256]; /* all the memory that the validation has */
    static p64_stream stream;
    const p64_reader reader = {read_flash, &flash, (uint64_t)stat.st_size};
    p64_error error;
    int32_t done = 0;
    unsigned long steps = 0;

    p64_status status = p64_stream_begin(&stream, &reader, buffer, sizeof buffer, NULL, &error);
    for (; status == P64_STATUS_OK && !done; ++steps) {
        /* Here a watchdog is fed, a radio served. */
        status = p64_stream_step(&stream, &done, &error);
    }
    p64_info info;
    if (status != P64_STATUS_OK || p64_stream_info(&stream, &info, &error) != P64_STATUS_OK) {
        char sentence[256];
        p64_error_format(&error, sentence, sizeof sentence, NULL);
        fprintf(stderr, "%s: %s\n", p64_status_str(error.status), sentence);
        return error.status == P64_STATUS_READ_FAILED ? 2 : 1;
    }
    printf("valid: %" PRIu32 " tensors in %" PRIu64 " bytes, in %lu steps and %lu reads of at most %zu bytes\n",
           info.tensor_count, info.file_len, steps, flash.reads, sizeof buffer);
    close(flash.file);
    return 0;
}
