// Prompt and generation speed of llama.cpp, measured as `p64 bench` measures ours: one warm-up, then the repetitions.
//
//   llama_bench MODEL.gguf -p 512 -n 128 -d 0 -t 1 -r 1
//
// Defaults of the library for everything else: mapped weights that are repacked where ggml repacks, keys and values in f16,
// batches of 512. With `-d` both are measured behind that many tokens, as llama-bench has it. Prints tokens per second, one line a
// repetition: `pp 123.4`, `tg 56.7`. The last line is `rss KIB`, the peak of this program.

#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
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

void decode_all(llama_context *context, std::vector<llama_token> &tokens, int step) {
    for (std::size_t at = 0; at < tokens.size(); at += static_cast<std::size_t>(step)) {
        decode(context, &tokens[at], std::min(step, static_cast<int>(tokens.size() - at)));
        if (step == 1) llama_synchronize(context);
    }
    llama_synchronize(context);
}

// Seconds. What stands before is kept from the last run where the cache can forget the rest.
double run(llama_context *context, std::vector<llama_token> &before, std::vector<llama_token> &tokens, bool together) {
    llama_memory_t memory = llama_get_memory(context);
    const auto depth = static_cast<llama_pos>(before.size());
    const bool there = depth > 0 && llama_memory_seq_pos_max(memory, 0) >= depth - 1;
    if (!there || !llama_memory_seq_rm(memory, 0, depth, -1)) {
        llama_memory_clear(memory, true);
        decode_all(context, before, 512);
    }
    const auto began = std::chrono::steady_clock::now();
    decode_all(context, tokens, together ? 512 : 1);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// KiB, of what this program mapped and allocated. The peak that getrusage() tells begins with that of the process it was forked from.
long peak_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        long kib = 0;
        if (std::sscanf(line.c_str(), "VmHWM: %ld kB", &kib) == 1) return kib;
    }
    return 0;
}

void only_errors(ggml_log_level level, const char *text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

int measure(int argc, char **argv) {
    int prompt = 512, generated = 128, depth = 0, threads = 1, repetitions = 1;
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        int *value = nullptr;
        if (name == "-p") value = &prompt;
        if (name == "-n") value = &generated;
        if (name == "-d") value = &depth;
        if (name == "-t") value = &threads;
        if (name == "-r") value = &repetitions;
        if (value == nullptr) throw std::runtime_error("no option of this program: " + name);
        *value = std::atoi(argv[i + 1]);
    }
    llama_log_set(only_errors, nullptr);
    llama_backend_init();
    const std::unique_ptr<llama_model, Free> model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    if (!model) throw std::runtime_error("llama.cpp cannot load the model");
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<std::uint32_t>(depth + std::max(prompt, generated));
    params.n_threads = params.n_threads_batch = threads;
    const std::unique_ptr<llama_context, Free> context(llama_init_from_model(model.get(), params));
    if (!context) throw std::runtime_error("llama.cpp gives no context");
    const auto vocabulary = static_cast<std::uint32_t>(llama_vocab_n_tokens(llama_model_get_vocab(model.get())));
    std::uint32_t state = 1;
    const auto random = [&](int count) {
        std::vector<llama_token> tokens(static_cast<std::size_t>(count));
        for (llama_token &token : tokens) {
            state = state * 1664525u + 1013904223u;
            token = static_cast<llama_token>((state >> 8) % vocabulary);
        }
        return tokens;
    };
    std::vector<llama_token> before = random(depth);
    for (const bool together : {true, false}) {
        const int count = together ? prompt : generated;
        if (count == 0) continue;
        std::vector<llama_token> tokens = random(count);
        run(context.get(), before, tokens, together);
        for (int i = 0; i < repetitions; ++i) {
            std::printf("%s %.2f\n", together ? "pp" : "tg", count / run(context.get(), before, tokens, together));
        }
    }
    std::printf("rss %ld\n", peak_memory());
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) {
        std::fputs("usage: llama_bench MODEL.gguf [-p N] [-n N] [-d N] [-t N] [-r N]\n", stderr);
        return 2;
    }
    try {
        return measure(argc, argv);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
