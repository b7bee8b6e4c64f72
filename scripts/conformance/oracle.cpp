// llama.cpp's logits for given token ids: the reference results of the conformance models.
//
//   oracle MODEL.gguf --tokens 1,2,3 [--at 1,3] [--out FILE] [--ctx 256] [--kv f32] [--kv-v f32] [--flash off]
//          [--nodes FILE] [--node NAME]
//
// The prompt is one batch on one thread, weights stay in the file's layout (no repacking). --at names counts of tokens: 3 is
// the logits after the third; without it those after the last are given. --out gets them as f32 in the machine's order, one
// row a position. --nodes lists every tensor of the graph with its shape, root mean square and the first values of its last
// row; --node prints all rows of those with that name (as "Qcur-0").

#include <ggml-backend.h>
#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Arguments {
    const char *model = nullptr;
    std::vector<int> tokens;
    std::vector<int> at;
    const char *out = nullptr;
    int context = 256;
    ggml_type keys = GGML_TYPE_F32;
    ggml_type values = GGML_TYPE_F32;
    bool flash = false;
    const char *nodes = nullptr;
    const char *node = nullptr;
};

std::vector<int> numbers(const char *text) {
    std::vector<int> out;
    while (*text != '\0') {
        char *end = nullptr;
        out.push_back(static_cast<int>(std::strtol(text, &end, 10)));
        if (end == text) throw std::runtime_error(std::string("not a list of numbers: ") + text);
        text = *end == ',' ? end + 1 : end;
    }
    return out;
}

ggml_type cache_type(const std::string &name) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0}) {
        if (name == ggml_type_name(type)) return type;
    }
    throw std::runtime_error("no cache type of ours: " + name);
}

Arguments read_arguments(int argc, char **argv) {
    Arguments out;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word.rfind("--", 0) != 0) {
            out.model = argv[i];
            continue;
        }
        if (i + 1 == argc) throw std::runtime_error("a value is missing after " + word);
        const char *value = argv[++i];
        if (word == "--tokens") {
            out.tokens = numbers(value);
        } else if (word == "--at") {
            out.at = numbers(value);
        } else if (word == "--out") {
            out.out = value;
        } else if (word == "--ctx") {
            out.context = std::atoi(value);
        } else if (word == "--kv") {
            out.keys = out.values = cache_type(value);
        } else if (word == "--kv-v") {
            out.values = cache_type(value);
        } else if (word == "--flash") {
            out.flash = std::string(value) == "on";
        } else if (word == "--nodes") {
            out.nodes = value;
        } else if (word == "--node") {
            out.node = value;
        } else {
            throw std::runtime_error("no such option: " + word);
        }
    }
    if (out.model == nullptr || out.tokens.empty()) throw std::runtime_error("usage: oracle MODEL.gguf --tokens ID,...");
    const int count = static_cast<int>(out.tokens.size());
    if (out.at.empty()) out.at.push_back(count);
    for (const int at : out.at) {
        if (at < 1 || at > count) throw std::runtime_error("--at counts tokens, from 1 to all of them");
    }
    return out;
}

/// Values of a tensor in the order of its rows.
std::vector<float> values_of(const ggml_tensor *tensor) {
    std::vector<char> bytes(ggml_nbytes(tensor));
    ggml_backend_tensor_get(tensor, bytes.data(), 0, bytes.size());
    std::vector<float> out;
    out.reserve(static_cast<std::size_t>(ggml_nelements(tensor)));
    for (int64_t d = 0; d < tensor->ne[3]; ++d) {
        for (int64_t c = 0; c < tensor->ne[2]; ++c) {
            for (int64_t b = 0; b < tensor->ne[1]; ++b) {
                for (int64_t a = 0; a < tensor->ne[0]; ++a) {
                    const char *at = bytes.data() + static_cast<std::size_t>(a) * tensor->nb[0] +
                                     static_cast<std::size_t>(b) * tensor->nb[1] +
                                     static_cast<std::size_t>(c) * tensor->nb[2] +
                                     static_cast<std::size_t>(d) * tensor->nb[3];
                    float value = 0;
                    if (tensor->type == GGML_TYPE_F32) {
                        std::memcpy(&value, at, sizeof value);
                    } else if (tensor->type == GGML_TYPE_F16) {
                        ggml_fp16_t half = 0;
                        std::memcpy(&half, at, sizeof half);
                        value = ggml_fp16_to_fp32(half);
                    } else {
                        int32_t whole = 0;
                        std::memcpy(&whole, at, sizeof whole);
                        value = static_cast<float>(whole);
                    }
                    out.push_back(value);
                }
            }
        }
    }
    return out;
}

struct Watch {
    FILE *nodes = nullptr;
    const char *node = nullptr;
};

bool watch_node(ggml_tensor *tensor, bool ask, void *data) {
    const Watch &watch = *static_cast<const Watch *>(data);
    const bool wanted = tensor->type == GGML_TYPE_F32 || tensor->type == GGML_TYPE_F16 || tensor->type == GGML_TYPE_I32;
    if (ask || !wanted) return wanted;
    const std::vector<float> values = values_of(tensor);
    const auto width = static_cast<std::size_t>(tensor->ne[0]);
    if (watch.nodes != nullptr) {
        double squares = 0;
        for (const float value : values) squares += static_cast<double>(value) * value;
        std::fprintf(watch.nodes, "%-24s %-10s %4lld x %3lld x %3lld  rms %-12.6g", tensor->name, ggml_op_name(tensor->op),
                     static_cast<long long>(tensor->ne[0]), static_cast<long long>(tensor->ne[1]),
                     static_cast<long long>(tensor->ne[2]), std::sqrt(squares / static_cast<double>(values.size())));
        for (std::size_t i = 0; i < std::min<std::size_t>(width, 6); ++i) {
            std::fprintf(watch.nodes, " %.7g", static_cast<double>(values[values.size() - width + i]));
        }
        std::fprintf(watch.nodes, "\n");
    }
    if (watch.node != nullptr && std::strcmp(watch.node, tensor->name) == 0) {
        std::printf("%s %s\n", tensor->name, ggml_op_name(tensor->op));
        for (std::size_t i = 0; i < values.size(); ++i) {
            std::printf(i % width + 1 == width ? "%.9g\n" : "%.9g ", static_cast<double>(values[i]));
        }
    }
    return true;
}

void only_errors(ggml_log_level level, const char *text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

struct Free {
    void operator()(llama_model *model) const { llama_model_free(model); }
    void operator()(llama_context *context) const { llama_free(context); }
    void operator()(FILE *file) const { std::fclose(file); }
};

void run(const Arguments &arguments) {
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    model_params.use_extra_bufts = false;
    const std::unique_ptr<llama_model, Free> model(llama_model_load_from_file(arguments.model, model_params));
    if (!model) throw std::runtime_error(std::string(arguments.model) + ": llama.cpp cannot load it");

    std::unique_ptr<FILE, Free> nodes(arguments.nodes != nullptr ? std::fopen(arguments.nodes, "w") : nullptr);
    Watch watch{nodes.get(), arguments.node};
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(arguments.context);
    params.n_batch = params.n_ubatch = params.n_ctx;
    params.n_threads = params.n_threads_batch = 1;
    params.type_k = arguments.keys;
    params.type_v = arguments.values;
    params.flash_attn_type = arguments.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.no_perf = true;
    if (watch.nodes != nullptr || watch.node != nullptr) {
        params.cb_eval = watch_node;
        params.cb_eval_user_data = &watch;
    }
    const std::unique_ptr<llama_context, Free> context(llama_init_from_model(model.get(), params));
    if (!context) throw std::runtime_error(std::string(arguments.model) + ": llama.cpp makes no context");

    const int count = static_cast<int>(arguments.tokens.size());
    llama_batch batch = llama_batch_init(count, 0, 1);
    const std::unique_ptr<llama_batch, void (*)(llama_batch *)> owner(&batch, [](llama_batch *it) { llama_batch_free(*it); });
    batch.n_tokens = count;
    for (int i = 0; i < count; ++i) {
        batch.token[i] = arguments.tokens[static_cast<std::size_t>(i)];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = std::count(arguments.at.begin(), arguments.at.end(), i + 1) != 0;
    }
    if (llama_decode(context.get(), batch) != 0) throw std::runtime_error("llama.cpp cannot decode the batch");

    const auto vocabulary = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model.get())));
    std::unique_ptr<FILE, Free> out(arguments.out != nullptr ? std::fopen(arguments.out, "wb") : nullptr);
    if (arguments.out != nullptr && !out) throw std::runtime_error(std::string(arguments.out) + ": cannot be written");
    for (const int at : arguments.at) {
        const float *logits = llama_get_logits_ith(context.get(), at - 1);
        if (logits == nullptr) throw std::runtime_error("llama.cpp gives no logits there");
        if (out && std::fwrite(logits, sizeof(float), vocabulary, out.get()) != vocabulary) {
            throw std::runtime_error(std::string(arguments.out) + ": cannot be written");
        }
    }
}

} // namespace

int main(int argc, char **argv) {
    llama_log_set(only_errors, nullptr);
    llama_backend_init();
    try {
        run(read_arguments(argc, argv));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "oracle: %s\n", error.what());
        return 1;
    }
    return 0;
}
