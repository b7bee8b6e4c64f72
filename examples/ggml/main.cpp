// ggml over a P64: tensors whose data lie in the mapping, and a product compared with p64's.
//
//   p64-ggml MODEL.p64
//
// Wraps every tensor of the file without copying a byte, then multiplies the first matrix of each quantised element type with
// a vector, four times: by ggml, which rounds the vector to 8 bits; by p64, which rounds it to 16; by both without rounding.
// Each is compared with the sum in double precision over the values that both dequantise alike. Exit status 0: every
// difference is within what the roundings permit.

#include <ggml-cpu.h>
#include <ggml.h>
#include <p64.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

struct FreeFile {
    void operator()(p64_file *file) const { p64_file_free(file); }
};
struct FreeContext {
    void operator()(ggml_context *context) const { ggml_free(context); }
};
using File = std::unique_ptr<p64_file, FreeFile>;
using Context = std::unique_ptr<ggml_context, FreeContext>;

File open_file(const char *path) {
    p64_file *file = nullptr;
    if (p64_file_open(path, nullptr, &file, nullptr) != P64_STATUS_OK) throw std::runtime_error(p64_error_message());
    return File(file);
}

/// A context for the books of `tensors` tensors, with no room for their data.
Context books(std::size_t tensors) {
    return Context(ggml_init({(tensors + 8) * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
}

/// ggml's view of a tensor: the shape is copied, the bytes stay in the file. They are read-only there, as weights are.
ggml_tensor *wrap(ggml_context *context, const p64::Tensor &tensor) {
    std::int64_t dims[GGML_MAX_DIMS] = {1, 1, 1, 1};
    std::copy(tensor.dims().begin(), tensor.dims().end(), dims);
    const int rank = static_cast<int>(tensor.dims().size());
    ggml_tensor *out = ggml_new_tensor(context, static_cast<ggml_type>(tensor.dtype()), rank, dims);
    const p64::Bytes bytes = tensor.data();
    if (ggml_nbytes(out) != bytes.size()) throw std::runtime_error(std::string(tensor.name()) + ": ggml counts other bytes");
    out->data = const_cast<std::uint8_t *>(bytes.data());
    return out;
}

/// `matrix * x` by ggml's CPU kernels.
std::vector<float> multiply(ggml_context *context, ggml_tensor *matrix, std::vector<float> &x) {
    ggml_tensor *vector = ggml_new_tensor_1d(context, GGML_TYPE_F32, static_cast<std::int64_t>(x.size()));
    vector->data = x.data();
    ggml_tensor *product = ggml_mul_mat(context, matrix, vector);
    std::vector<float> y(static_cast<std::size_t>(ggml_nelements(product)));
    product->data = y.data();
    ggml_cgraph *graph = ggml_new_graph_custom(context, 8, false);
    ggml_build_forward_expand(graph, product);
    ggml_cplan plan = ggml_graph_plan(graph, 1, nullptr);
    std::vector<std::uint8_t> work(plan.work_size);
    plan.work_data = work.data();
    if (ggml_graph_compute(graph, &plan) != GGML_STATUS_SUCCESS) throw std::runtime_error("ggml cannot multiply");
    return y;
}

/// What a product may be off by, and was, in the worst row: as a share of what is permitted.
struct Worst {
    double share = 0;
    void add(double got, double want, double permitted) { share = std::max(share, std::fabs(got - want) / permitted); }
};

/// Numbers between -1 and 1 that are the same everywhere (a 32-bit linear congruential generator).
std::vector<float> some_vector(std::size_t len) {
    std::vector<float> x(len);
    std::uint32_t state = 1;
    for (float &value : x) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
    }
    return x;
}

/// What ggml's rounding of `x` to 8 bits can change in a row's product. A block of 32 values (256 for the K types) is stored
/// in steps of its largest by 127, so each is off by half of that; the step itself may be an F16, off by 2^-11. Types with a
/// minimum also multiply that by an F16 of the block's sum.
double eight_bit_bound(const float *w, const std::vector<float> &x, std::size_t block) {
    const double half = std::ldexp(1.0, -11);
    double bound = 0;
    for (std::size_t from = 0; from < x.size(); from += block) {
        double largest = 0, sum = 0, weights = 0, heaviest = 0;
        for (std::size_t i = from; i < std::min(from + block, x.size()); ++i) {
            largest = std::max(largest, std::fabs(double(x[i])));
            sum += std::fabs(double(x[i]));
            weights += std::fabs(double(w[i]));
            heaviest = std::max(heaviest, std::fabs(double(w[i])));
        }
        bound += largest * (1.0 / 254 + half) * weights + half * heaviest * sum;
    }
    return bound;
}

/// p64's tolerances, as shares of |w| * |x| (docs/testing.md): rounding of sums, and of x to 16 bits.
constexpr double EXACT = 1e-6, SIXTEEN_BITS = 8.8e-5;

bool check(const p64::Tensor &tensor) {
    const std::size_t cols = tensor.cols(), rows = static_cast<std::size_t>(tensor.rows());
    const Context context = books(8);
    ggml_tensor *matrix = wrap(context.get(), tensor);
    std::vector<float> x = some_vector(cols);
    const std::vector<float> by_ggml = multiply(context.get(), matrix, x);
    const std::vector<float> by_p64 = tensor.gemv({x.data(), x.size()}), exact = tensor.gemv({x.data(), x.size()}, P64_ACTIVATIONS_F32);

    std::vector<float> values = tensor.dequantize(0, rows), values_there(values.size());
    ggml_get_type_traits(matrix->type)->to_float(matrix->data, values_there.data(), static_cast<std::int64_t>(values.size()));
    const bool alike = values == values_there;
    ggml_tensor *plain = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, matrix->ne[0], static_cast<std::int64_t>(rows));
    plain->data = values.data();
    const std::vector<float> exact_there = multiply(context.get(), plain, x);

    const std::string name(tensor.dtype_name());
    const std::size_t block = name.find("_K") != name.npos ? 256 : 32;
    Worst ggml8, p64_16, p64_exact, ggml_exact;
    for (std::size_t row = 0; row < rows; ++row) {
        const float *w = values.data() + row * cols;
        double sum = 0, ww = 0, xx = 0;
        for (std::size_t i = 0; i < cols; ++i) {
            sum += double(w[i]) * x[i];
            ww += double(w[i]) * w[i];
            xx += double(x[i]) * x[i];
        }
        const double scale = std::max(std::sqrt(ww * xx), 1e-30);
        ggml8.add(by_ggml[row], sum, eight_bit_bound(w, x, block) + EXACT * scale);
        p64_16.add(by_p64[row], sum, SIXTEEN_BITS * scale);
        p64_exact.add(exact[row], sum, EXACT * scale);
        ggml_exact.add(exact_there[row], sum, EXACT * scale);
    }
    std::printf("%-5s %-26s %zu x %zu, values %s; worst row, in shares of what is permitted: "
                "ggml 8-bit %.2f, p64 16-bit %.2f, p64 F32 %.2f, ggml F32 %.2f\n",
                name.c_str(), std::string(tensor.name()).c_str(), rows, cols, alike ? "equal" : "DIFFER", ggml8.share,
                p64_16.share, p64_exact.share, ggml_exact.share);
    return alike && ggml8.share <= 1 && p64_16.share <= 1 && p64_exact.share <= 1 && ggml_exact.share <= 1;
}

int run(const char *path) {
    const File file = open_file(path);
    const p64::Tensors tensors(p64_file_container(file.get()));
    const Context all = books(tensors.size());
    std::set<std::uint32_t> seen;
    std::size_t wrapped = 0;
    bool good = true;
    for (const p64::Tensor &tensor : tensors) {
        if (tensor.dtype() >= GGML_TYPE_COUNT) continue; // a layout of P64's own
        wrap(all.get(), tensor);
        ++wrapped;
        const bool quantised = ggml_is_quantized(static_cast<ggml_type>(tensor.dtype()));
        if (quantised && tensor.dims().size() == 2 && seen.insert(tensor.dtype()).second) good = check(tensor) && good;
    }
    std::printf("%zu of %u tensors in ggml without a copy, %zu products compared\n", wrapped, tensors.size(), seen.size());
    return good && !seen.empty() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: p64-ggml MODEL.p64\n");
        return 2;
    }
    try {
        return run(argv[1]);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "p64-ggml: %s\n", error.what());
        return 1;
    }
}
