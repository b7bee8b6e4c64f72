/*
 * A language model on a Cortex-M4F through p64.h: validated in flash as a slice and through reads of 256 bytes, decoded in
 * static memory. No heap, no C library. The Rust example beside it tells the same story.
 */
#include "board.h"
#include "p64.h"

enum { CONTEXT = 40, TOKENS = 32, VOCABULARY = 1024, TEXT = 8 * TOKENS };

static const char PROMPT[] = "Once upon a time";
enum { PROMPT_LEN = sizeof PROMPT - 1, PROMPT_TOKENS = PROMPT_LEN + 2 }; /* a token has at least a byte */

/* The file in its partition, from the linker script. */
extern const uint8_t model_begin[], model_end[];

static p64_container container;
static p64_vocabulary vocabulary;
static p64_slot slots[PROMPT_LEN];
static p64_decoder decoder;
static p64_stream stream;
static uint8_t window[256];
static _Alignas(16) uint8_t memory[94 * 1024];
static float logits[VOCABULARY];

static const p64_crc32c smallest_table = {.update = p64_crc32c_64, .user = NULL};
static const p64_open_options options = {.struct_size = sizeof options, .crc32c = &smallest_table};

/* Flash behind a bus: the copy stands for the transfer. */
static int32_t read_flash(void *user, uint64_t offset, void *buffer, size_t len) {
    const uint8_t *from = (const uint8_t *)user + (size_t)offset;
    uint8_t *to = buffer;
    for (size_t at = 0; at < len; ++at) {
        to[at] = from[at];
    }
    return 0;
}

static __attribute__((noinline)) p64_status validate_slice(p64_error *error) {
    return p64_container_open(&container, model_begin, (size_t)(model_end - model_begin), &options, error);
}

static __attribute__((noinline)) p64_status validate_stream(p64_error *error) {
    const p64_reader reader = {
        .read = read_flash, .user = (void *)(uintptr_t)model_begin, .len = (uint64_t)(model_end - model_begin)};
    p64_status status = p64_stream_begin(&stream, &reader, window, sizeof window, &options, error);
    for (int32_t done = 0; status == P64_STATUS_OK && !done;) {
        status = p64_stream_step(&stream, &done, error); /* a watchdog would be fed here */
    }
    return status;
}

static __attribute__((noinline)) p64_status tell(uint32_t ids[TOKENS], uint32_t *logits_crc, p64_error *error) {
    uint32_t prompt[PROMPT_TOKENS];
    size_t count = 0;
    /* No index of the vocabulary: looking a token up walks it, which a prompt of this length can afford. */
    p64_status status = p64_vocabulary_init(&vocabulary, &container, NULL, 0, error);
    if (status == P64_STATUS_OK) {
        status = p64_vocabulary_encode(&vocabulary, PROMPT, PROMPT_LEN, P64_TEXT_ADD_SPECIAL, slots, PROMPT_LEN, prompt,
                                       PROMPT_TOKENS, &count, error);
    }
    if (status == P64_STATUS_OK) {
        status = p64_decoder_init(&decoder, &container, CONTEXT, 1, memory, sizeof memory, error);
    }
    const uint32_t *next = prompt;
    *logits_crc = 0;
    for (size_t at = 0; status == P64_STATUS_OK && at < TOKENS; ++at) {
        status = p64_decoder_step(&decoder, next, count, logits, VOCABULARY, error);
        if (status == P64_STATUS_OK) {
            *logits_crc = p64_crc32c_64(NULL, *logits_crc, (const uint8_t *)logits, sizeof logits);
            status = p64_argmax(logits, VOCABULARY, &ids[at], error);
        }
        next = &ids[at];
        count = 1;
    }
    return status;
}

/* What the tokens spell; `len` is its length. */
static p64_status spell(const uint32_t ids[TOKENS], char text[TEXT], size_t *len, p64_error *error) {
    *len = 0;
    for (size_t at = 0; at < TOKENS; ++at) {
        size_t piece = 0;
        p64_status status = p64_vocabulary_decode(&vocabulary, ids[at], 0, text + *len, TEXT - *len, &piece, error);
        if (status != P64_STATUS_OK) {
            return status;
        }
        *len += piece;
    }
    return P64_STATUS_OK;
}

static int failed(const char *what, const p64_error *error) {
    console_text(what);
    console_text(": ");
    console_text(p64_status_str(error->status));
    console_line(" at", (uint32_t)error->offset);
    return 1;
}

int main(void) {
    p64_error error;
    console_line("file_bytes", (uint32_t)(model_end - model_begin));

    stack_paint();
    p64_status status = validate_slice(&error);
    console_line("stack_open", stack_used());
    if (status != P64_STATUS_OK) {
        return failed("slice", &error);
    }

    stack_paint();
    status = validate_stream(&error);
    console_line("stack_stream", stack_used());
    if (status != P64_STATUS_OK) {
        return failed("stream", &error);
    }

    uint32_t ids[TOKENS], logits_crc;
    stack_paint();
    status = tell(ids, &logits_crc, &error);
    console_line("stack_decode", stack_used());
    if (status != P64_STATUS_OK) {
        return failed("decode", &error);
    }

    console_text("ids");
    for (size_t at = 0; at < TOKENS; ++at) {
        console_text(" ");
        console_number(ids[at]);
    }
    char text[TEXT];
    size_t len;
    if (spell(ids, text, &len, &error) != P64_STATUS_OK) {
        return failed("\ntext", &error);
    }
    console_text("\ntext ");
    console_bytes(text, len);
    console_text("\nlogits ");
    console_hex(logits_crc);
    console_text("\n");
    return 0;
}
