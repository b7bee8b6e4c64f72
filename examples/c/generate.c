/* Lets a model write, and shows the text as it comes.
 *
 *   cc -std=c11 generate.c $(pkg-config --cflags --libs p64) -o generate && ./generate MODEL [PROMPT]
 *
 * MODEL is a .p64 or a GGUF. A model that was trained for conversations is asked, another one goes on with the prompt. Ctrl-C
 * ends the text, not the program. */
#include <p64.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 256 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

static int show(void *user, const char *text, size_t len) {
    (void)user;
    fwrite(text, 1, len, stdout);
    fflush(stdout);
    return interrupted; /* anything but 0 ends the generation */
}

static void need(p64_status status) {
    if (status == P64_STATUS_OK) return;
    fprintf(stderr, "generate: %s\n", p64_error_message());
    exit(1);
}

/* The tokens of the prompt: the first call asks how many there are. */
static uint32_t *encode(const p64_model *model, const char *prompt, size_t *len) {
    const p64_message turn = {{"user", 4}, {prompt, strlen(prompt)}};
    p64_error error;
    /* REFUSED: the model has no template for conversations. */
    int chat = p64_model_chat(model, &turn, 1, NULL, 0, len, &error) != P64_STATUS_REFUSED;
    if (!chat) p64_model_encode(model, prompt, strlen(prompt), P64_TEXT_ADD_SPECIAL, NULL, 0, len, &error);
    if (error.status != P64_STATUS_BUFFER_TOO_SMALL) need(error.status);
    size_t room = (size_t)error.expected;
    uint32_t *ids = malloc((room + 1) * sizeof *ids);
    if (ids == NULL) abort();
    need(chat ? p64_model_chat(model, &turn, 1, ids, room, len, NULL)
              : p64_model_encode(model, prompt, strlen(prompt), P64_TEXT_ADD_SPECIAL, ids, room, len, NULL));
    return ids;
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: generate MODEL [PROMPT]\n");
        return 2;
    }
    p64_model *model = NULL;
    p64_session *session = NULL;
    p64_generation done;
    p64_session_options how = {0};
    p64_generate_options until = {0};
    size_t len = 0;

    how.struct_size = sizeof how; /* every other field at 0: the highest logit, one thread per core */
    until.struct_size = sizeof until;
    until.max_tokens = MAX_TOKENS;
    need(p64_model_open(argv[1], NULL, &model, NULL));
    need(p64_session_new(model, &how, &session, NULL));
    uint32_t *ids = encode(model, argc == 3 ? argv[2] : "Once upon a time", &len);
    signal(SIGINT, on_interrupt);
    need(p64_session_generate(session, ids, len, &until, show, NULL, &done, NULL));

    const double rate = done.generate_seconds > 0 ? (double)(done.generated_tokens - 1) / done.generate_seconds : 0;
    fprintf(stderr, "\n%zu tokens read in %.3f s, %zu written at %.1f a second\n", done.prompt_tokens, done.prompt_seconds,
            done.generated_tokens, rate);
    free(ids);
    p64_session_free(session);
    p64_model_free(model);
    return 0;
}
