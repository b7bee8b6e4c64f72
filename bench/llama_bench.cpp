// Prompt and generation speed of llama.cpp, measured as `p64 bench` measures ours: one warm-up, then the repetitions.
//
//   llama_bench MODEL.gguf -p 512 -n 128 -t 1 -r 1
//
// Defaults of the library for everything else: mapped weights that are repacked where ggml repacks, keys and values in f16,
// batches of 512. Prints tokens per second, one line a repetition: `pp 123.4`, `tg 56.7`. The last line is `rss KIB`, the peak
// of the process.

#include <llama.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Free {
    void operator()(llama_model *model) const { llama_model_free(model); }
    void operator()(llama_context *context) const { llama_free(context); }
};

void decode(llama_context *context, llama_token *tokens, int count) {
    if (llama_decode(context, llama_batch_get_one(tokens, count)) != 0) throw std::runtime_error("llama.cpp cannot decode");
}

// Seconds.
double run(llama_context *context, std::vector<llama_token> &tokens, bool together) {
    llama_memory_clear(llama_get_memory(context), true);
    const auto began = std::chrono::steady_clock::now();
    const int step = together ? 512 : 1;
    for (std::size_t at = 0; at < tokens.size(); at += static_cast<std::size_t>(step)) {
        decode(context, &tokens[at], std::min(step, static_cast<int>(tokens.size() - at)));
        if (!together) llama_synchronize(context);
    }
    llama_synchronize(context);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void only_errors(ggml_log_level level, const char *text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

int measure(int argc, char **argv) {
    int prompt = 512, generated = 128, threads = 1, repetitions = 1;
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        int *value = name == "-p" ? &prompt : name == "-n" ? &generated : name == "-t" ? &threads : name == "-r" ? &repetitions : nullptr;
        if (value == nullptr) throw std::runtime_error("no option of this program: " + name);
        *value = std::atoi(argv[i + 1]);
    }
    llama_log_set(only_errors, nullptr);
    llama_backend_init();
    const std::unique_ptr<llama_model, Free> model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    if (!model) throw std::runtime_error("llama.cpp cannot load the model");
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<std::uint32_t>(std::max(prompt, generated));
    params.n_threads = params.n_threads_batch = threads;
    const std::unique_ptr<llama_context, Free> context(llama_init_from_model(model.get(), params));
    if (!context) throw std::runtime_error("llama.cpp gives no context");
    const auto vocabulary = static_cast<std::uint32_t>(llama_vocab_n_tokens(llama_model_get_vocab(model.get())));
    std::uint32_t state = 1;
    for (const bool together : {true, false}) {
        const int count = together ? prompt : generated;
        if (count == 0) continue;
        std::vector<llama_token> tokens(static_cast<std::size_t>(count));
        for (llama_token &token : tokens) {
            state = state * 1664525u + 1013904223u;
            token = static_cast<llama_token>((state >> 8) % vocabulary);
        }
        run(context.get(), tokens, together);
        for (int i = 0; i < repetitions; ++i) {
            std::printf("%s %.2f\n", together ? "pp" : "tg", count / run(context.get(), tokens, together));
        }
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("rss %ld\n", usage.ru_maxrss);
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) {
        std::fputs("usage: llama_bench MODEL.gguf [-p N] [-n N] [-t N] [-r N]\n", stderr);
        return 2;
    }
    try {
        return measure(argc, argv);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
