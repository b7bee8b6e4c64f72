// Generates with llama.cpp from a .p64, and compares it with what llama.cpp makes of the GGUF.
//
//   p64-llama MODEL.p64 [-n TOKENS] [-g MODEL.gguf] [-r REPEATS] PROMPT...
//
// Prints one line for each prompt: its ids, `->`, and the ids generated (greedily; ties go to the lowest id). With -g the same
// is done with the GGUF; ids that differ are an error, and the time of loading is compared.

#include "p64_llama.hpp"

#include <ggml-backend.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

using Ids = std::vector<llama_token>;

struct Arguments {
    const char *container = nullptr;
    const char *gguf = nullptr;
    int tokens = 32;
    int repeats = 5;
    std::vector<std::string> prompts;
};

Arguments read_arguments(int argc, char **argv) {
    Arguments out;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
        if (word == "-g") {
            out.gguf = next();
        } else if (word == "-n") {
            out.tokens = std::atoi(next());
        } else if (word == "-r") {
            out.repeats = std::atoi(next());
        } else if (out.container == nullptr) {
            out.container = argv[i];
        } else {
            out.prompts.emplace_back(word);
        }
    }
    if (out.container == nullptr || out.prompts.empty() || out.tokens < 1 || out.repeats < 1) {
        std::fprintf(stderr, "usage: p64-llama MODEL.p64 [-n TOKENS] [-g MODEL.gguf] [-r REPEATS] PROMPT...\n");
        std::exit(2);
    }
    return out;
}

/// The model as llama.cpp loads it from a P64: mapped, its tensors verified on the way into llama.cpp's buffers.
p64_llama::Model load_p64(const char *path, const llama_model_params &params) {
    p64_map_options options = {};
    options.struct_size = sizeof options;
    options.integrity = P64_INTEGRITY_LAZY;
    p64_file *file = nullptr;
    if (p64_file_open(path, &options, &file, nullptr) != P64_STATUS_OK) throw std::runtime_error(p64_error_message());
    const std::unique_ptr<p64_file, void (*)(p64_file *)> owner(file, p64_file_free);
    return p64_llama::load(p64_file_container(file), params);
}

p64_llama::Model load_gguf(const char *path, const llama_model_params &params) {
    p64_llama::Model model(llama_model_load_from_file(path, params));
    if (!model) throw std::runtime_error(std::string(path) + ": llama.cpp cannot load it");
    return model;
}

Ids tokenize(const llama_model *model, const std::string &text) {
    Ids ids(text.size() + 2);
    const int count = llama_tokenize(llama_model_get_vocab(model), text.data(), static_cast<int>(text.size()), ids.data(),
                                     static_cast<int>(ids.size()), true, false);
    if (count <= 0) throw std::runtime_error("the prompt has no tokens");
    ids.resize(static_cast<std::size_t>(count));
    return ids;
}

/// One thread, no flash attention, F32 keys and values, the whole prompt in one batch: the arithmetic of the recorded results.
p64_llama::Context make_context(llama_model *model, std::size_t positions) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = static_cast<std::uint32_t>(positions);
    params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = GGML_TYPE_F32;
    p64_llama::Context context(llama_init_from_model(model, params));
    if (!context) throw std::runtime_error("llama.cpp cannot make a context");
    return context;
}

llama_token step(llama_context *context, Ids ids, int vocabulary) {
    if (llama_decode(context, llama_batch_get_one(ids.data(), static_cast<int>(ids.size()))) != 0) {
        throw std::runtime_error("llama.cpp cannot decode");
    }
    const float *logits = llama_get_logits_ith(context, -1);
    return static_cast<llama_token>(std::max_element(logits, logits + vocabulary) - logits);
}

Ids generate(llama_model *model, const Ids &prompt, int tokens) {
    const p64_llama::Context context = make_context(model, prompt.size() + static_cast<std::size_t>(tokens));
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    Ids out, next = prompt;
    while (static_cast<int>(out.size()) < tokens) {
        out.push_back(step(context.get(), next, vocabulary));
        next = {out.back()};
    }
    return out;
}

std::string text_of(const Ids &ids) {
    std::string text;
    for (llama_token id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
    return text;
}

struct Times {
    double load;
    /// Until the first token: what a mapping puts off is in it.
    double first;
};

Times measure(const std::function<p64_llama::Model()> &load, const Ids &prompt) {
    const auto begin = std::chrono::steady_clock::now();
    const auto since = [&] { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count(); };
    const p64_llama::Model model = load();
    const double loaded = since();
    generate(model.get(), prompt, 1);
    return {loaded, since()};
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Loads in turns, so that what else the machine does meets all of them alike.
void compare_load_times(const Arguments &args, const Ids &prompt, llama_model_params params) {
    struct Way {
        const char *name;
        std::function<p64_llama::Model()> load;
        std::vector<double> loads, firsts;
    };
    llama_model_params reading = params, mapping = params;
    reading.load_mode = LLAMA_LOAD_MODE_NONE;
    mapping.load_mode = LLAMA_LOAD_MODE_MMAP;
    Way ways[] = {
        {"P64, every checksum verified", [&] { return load_p64(args.container, params); }, {}, {}},
        {"GGUF, read", [&] { return load_gguf(args.gguf, reading); }, {}, {}},
        {"GGUF, mapped", [&] { return load_gguf(args.gguf, mapping); }, {}, {}},
    };
    for (int repeat = 0; repeat < args.repeats; ++repeat) {
        for (Way &way : ways) {
            const Times times = measure(way.load, prompt);
            way.loads.push_back(times.load);
            way.firsts.push_back(times.first);
        }
    }
    for (const Way &way : ways) {
        std::fprintf(stderr, "load time, median of %d: %-29s %6.1f ms, to the first token %6.1f ms\n", args.repeats, way.name,
                     median(way.loads), median(way.firsts));
    }
}

int run(const Arguments &args) {
    llama_model_params params = llama_model_default_params();
    params.use_extra_bufts = false; // as llama.cpp itself sets it for models that come from a program
    const p64_llama::Model model = load_p64(args.container, params);
    const p64_llama::Model reference = args.gguf != nullptr ? load_gguf(args.gguf, params) : nullptr;
    int different = 0;
    for (const std::string &text : args.prompts) {
        const Ids prompt = tokenize(model.get(), text);
        const Ids ids = generate(model.get(), prompt, args.tokens);
        std::printf("%s -> %s\n", text_of(prompt).c_str(), text_of(ids).c_str());
        if (!reference) continue;
        const Ids prompt_there = tokenize(reference.get(), text);
        const Ids ids_there = generate(reference.get(), prompt_there, args.tokens);
        if (prompt != prompt_there || ids != ids_there) {
            std::fprintf(stderr, "the GGUF gives %s -> %s\n", text_of(prompt_there).c_str(), text_of(ids_there).c_str());
            ++different;
        }
    }
    if (reference) {
        const auto equal = static_cast<int>(args.prompts.size()) - different;
        std::fprintf(stderr, "%d of %zu prompts: ids equal to llama.cpp's on the GGUF\n", equal, args.prompts.size());
        compare_load_times(args, tokenize(model.get(), args.prompts[0]), params);
    }
    return different == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    const Arguments args = read_arguments(argc, argv);
    llama_log_set([](ggml_log_level level, const char *text, void *) {
        if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
    }, nullptr);
    llama_backend_init();
    int status = 1;
    try {
        status = run(args);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "p64-llama: %s\n", error.what());
    }
    llama_backend_free();
    return status;
}
