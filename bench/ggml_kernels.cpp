// One product with one position in ggml, measured as tests/benches/kernels.rs measures ours: the same shapes, bytes and passes.
//
//   ggml_kernels --types q4_0,q8_0 --shapes 4096x4096 --threads 1 --passes 3
//
// Prints a JSON object a line. "code" is the buffer that holds the weights: "cpu", where they are as in the file, or
// "CPU_REPACK", where ggml has such a form of the type; llama.cpp uses that when it can.

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <strings.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t least = 256u << 20;
constexpr double enough = 1.5;

struct Free {
    void operator()(ggml_context *context) const { ggml_free(context); }
    void operator()(ggml_backend_buffer *buffer) const { ggml_backend_buffer_free(buffer); }
    void operator()(ggml_backend *backend) const { ggml_backend_free(backend); }
};
using Context = std::unique_ptr<ggml_context, Free>;
using Buffer = std::unique_ptr<ggml_backend_buffer, Free>;

std::vector<std::string> list(const std::string &text) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

// As in kernels.rs: no scale is infinite, subnormal or zero.
std::vector<std::uint64_t> weights(std::size_t bytes) {
    std::uint64_t state = 1;
    std::vector<std::uint64_t> words((bytes + 7) / 8);
    for (std::uint64_t &word : words) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word = (state & 0xbfbfbfbfbfbfbfbfu) | 0x1010101010101010u;
    }
    return words;
}

Context context(std::size_t tensors) {
    ggml_init_params params{};
    params.mem_size = ggml_tensor_overhead() * tensors + ggml_graph_overhead_custom(tensors, false);
    params.no_alloc = true;
    Context made(ggml_init(params));
    if (!made) throw std::runtime_error("ggml gives no context");
    return made;
}

void measure(ggml_backend *backend, ggml_backend_buffer_type_t place, const char *code, ggml_type type, std::int64_t rows,
             std::int64_t cols, int threads, int passes) {
    const std::size_t len = ggml_row_size(type, cols) * static_cast<std::size_t>(rows);
    const std::size_t count = (least + len - 1) / len;
    const Context held = context(count + 1);
    std::vector<ggml_tensor *> matrices(count);
    for (ggml_tensor *&matrix : matrices) matrix = ggml_new_tensor_2d(held.get(), type, cols, rows);
    const Buffer buffer(ggml_backend_alloc_ctx_tensors_from_buft(held.get(), place));
    // Without a repacked form of this type the buffer holds nothing that computes.
    if (!buffer || (std::strcmp(code, "cpu") != 0 && matrices[0]->extra == nullptr)) return;
    const std::vector<std::uint64_t> bytes = weights(len);
    for (ggml_tensor *matrix : matrices) ggml_backend_tensor_set(matrix, bytes.data(), 0, len);

    const Context computed = context(2 * count + 16);
    ggml_tensor *x = ggml_new_tensor_1d(computed.get(), GGML_TYPE_F32, cols);
    ggml_cgraph *graph = ggml_new_graph_custom(computed.get(), count + 8, false);
    for (ggml_tensor *matrix : matrices) ggml_build_forward_expand(graph, ggml_mul_mat(computed.get(), matrix, x));
    const Buffer outputs(ggml_backend_alloc_ctx_tensors_from_buft(computed.get(), ggml_backend_cpu_buffer_type()));
    if (!outputs) throw std::runtime_error("ggml gives no memory");
    std::vector<float> values(static_cast<std::size_t>(cols));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1.0f;
    ggml_backend_tensor_set(x, values.data(), 0, values.size() * sizeof(float));

    ggml_backend_cpu_set_n_threads(backend, threads);
    std::string rates;
    double all = 0;
    for (int pass = 0; pass < passes && (pass == 0 || all < enough); ++pass) {
        const auto began = std::chrono::steady_clock::now();
        if (ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS) throw std::runtime_error("ggml cannot compute");
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        all += seconds;
        char rate[32];
        std::snprintf(rate, sizeof rate, "%s%.2f", pass == 0 ? "" : ", ", static_cast<double>(len * count) / seconds / 1e9);
        rates += rate;
    }
    std::printf("{\"type\":\"%s\",\"rows\":%lld,\"cols\":%lld,\"threads\":%d,\"code\":\"%s\",\"gb_s\":[%s]}\n", ggml_type_name(type),
                static_cast<long long>(rows), static_cast<long long>(cols), threads, code, rates.c_str());
    std::fflush(stdout);
}

// The buffer types for weights in other forms than the file's.
std::vector<ggml_backend_buffer_type_t> forms() {
    std::vector<ggml_backend_buffer_type_t> found;
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    auto *ask = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
        ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
    for (ggml_backend_buffer_type_t *form = ask == nullptr ? nullptr : ask(device); form != nullptr && *form != nullptr; ++form) {
        found.push_back(*form);
    }
    return found;
}

void only_errors(ggml_log_level level, const char *text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

int run(int argc, char **argv) {
    ggml_log_set(only_errors, nullptr);
    std::vector<std::string> types, shapes{"4096x4096", "14336x4096", "4096x14336"};
    int threads = 1, passes = 3;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--types") types = list(argv[i + 1]);
        else if (name == "--shapes") shapes = list(argv[i + 1]);
        else if (name == "--threads") threads = std::atoi(argv[i + 1]);
        else if (name == "--passes") passes = std::atoi(argv[i + 1]);
        else throw std::runtime_error("no option of this program: " + name);
    }
    const std::unique_ptr<ggml_backend, Free> backend(ggml_backend_cpu_init());
    for (int id = 0; id < GGML_TYPE_COUNT; ++id) {
        const auto type = static_cast<ggml_type>(id);
        bool wanted = false;
        for (const std::string &name : types) wanted = wanted || strcasecmp(name.c_str(), ggml_type_name(type)) == 0;
        if (!wanted) continue;
        for (const std::string &shape : shapes) {
            long long rows = 0, cols = 0;
            if (std::sscanf(shape.c_str(), "%lldx%lld", &rows, &cols) != 2) throw std::runtime_error("a shape is ROWSxCOLS");
            measure(backend.get(), ggml_backend_cpu_buffer_type(), "cpu", type, rows, cols, threads, passes);
            for (ggml_backend_buffer_type_t form : forms()) {
                measure(backend.get(), form, ggml_backend_buft_name(form), type, rows, cols, threads, passes);
            }
        }
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
