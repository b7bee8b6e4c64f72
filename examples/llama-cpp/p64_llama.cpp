#include "p64_llama.hpp"

#include <ggml-backend.h>
#include <gguf.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

// Both formats store numbers in little-endian order, and arrays go over as they are.
static_assert(static_cast<int>(P64_KIND_F64) == static_cast<int>(GGUF_TYPE_FLOAT64), "P64 keeps GGUF's value types");

namespace p64_llama {

void Free::operator()(gguf_context *gguf) const { gguf_free(gguf); }

namespace {

using Gguf = std::unique_ptr<gguf_context, Free>;

[[noreturn]] void refuse(const std::string &reason) { throw std::runtime_error(reason); }

/// llama.cpp takes C strings, which cannot hold a NUL.
std::string c_string(std::string_view text) {
    if (text.find('\0') != text.npos) refuse("a metadata string holds a NUL, which llama.cpp's interface cannot take");
    return std::string(text);
}

void set_array(gguf_context *gguf, const char *key, const p64::Value &array) {
    const p64_value &raw = array.raw();
    if (raw.element_kind != P64_KIND_STRING) {
        gguf_set_arr_data(gguf, key, static_cast<gguf_type>(raw.element_kind), raw.data, raw.count);
        return;
    }
    std::vector<std::string> texts;
    std::vector<const char *> pointers;
    texts.reserve(raw.count);
    for (const p64::Value &text : array.elements()) texts.push_back(c_string(text.str()));
    for (const std::string &text : texts) pointers.push_back(text.c_str());
    gguf_set_arr_str(gguf, key, pointers.data(), pointers.size());
}

void set(gguf_context *gguf, const char *key, const p64::Value &value) {
    switch (value.kind()) {
    case P64_KIND_U8: return gguf_set_val_u8(gguf, key, static_cast<std::uint8_t>(value.u64()));
    case P64_KIND_I8: return gguf_set_val_i8(gguf, key, static_cast<std::int8_t>(value.i64()));
    case P64_KIND_U16: return gguf_set_val_u16(gguf, key, static_cast<std::uint16_t>(value.u64()));
    case P64_KIND_I16: return gguf_set_val_i16(gguf, key, static_cast<std::int16_t>(value.i64()));
    case P64_KIND_U32: return gguf_set_val_u32(gguf, key, static_cast<std::uint32_t>(value.u64()));
    case P64_KIND_I32: return gguf_set_val_i32(gguf, key, static_cast<std::int32_t>(value.i64()));
    case P64_KIND_U64: return gguf_set_val_u64(gguf, key, value.u64());
    case P64_KIND_I64: return gguf_set_val_i64(gguf, key, value.i64());
    case P64_KIND_F32: return gguf_set_val_f32(gguf, key, static_cast<float>(value.f64()));
    case P64_KIND_F64: return gguf_set_val_f64(gguf, key, value.f64());
    case P64_KIND_BOOL: return gguf_set_val_bool(gguf, key, value.u64() != 0);
    case P64_KIND_STRING: return gguf_set_val_str(gguf, key, c_string(value.str()).c_str());
    case P64_KIND_ARRAY: return set_array(gguf, key, value);
    default: refuse("a metadata value of an unknown kind");
    }
}

/// llama.cpp's number of an element type. P64 keeps GGML's numbers and has two of its own, which GGML does not know.
ggml_type type_of(const p64::Tensor &tensor) {
    const auto type = static_cast<ggml_type>(tensor.dtype());
    std::string name(tensor.dtype_name());
    for (char &letter : name) letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
    std::string known = tensor.dtype() < GGML_TYPE_COUNT ? ggml_type_name(type) : "";
    for (char &letter : known) letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
    if (name != known) refuse(std::string(tensor.name()) + ": llama.cpp does not know the element type " + name);
    return type;
}

/// Tells llama.cpp the type of a tensor. Its shape it works out itself, from the metadata; the one here is for its books.
void announce(gguf_context *gguf, const p64::Tensor &tensor, const std::string &name) {
    ggml_tensor meta = {};
    meta.type = type_of(tensor);
    std::fill(std::begin(meta.ne), std::end(meta.ne), 1);
    std::copy(tensor.dims().begin(), tensor.dims().end(), meta.ne);
    meta.nb[0] = ggml_type_size(meta.type);
    meta.nb[1] = ggml_row_size(meta.type, meta.ne[0]);
    for (int d = 2; d < GGML_MAX_DIMS; ++d) meta.nb[d] = meta.nb[d - 1] * static_cast<std::size_t>(meta.ne[d - 1]);
    if (name.size() >= GGML_MAX_NAME) refuse(name + ": llama.cpp takes names of up to 63 bytes");
    ggml_set_name(&meta, name.c_str());
    gguf_add_tensor(gguf, &meta);
}

constexpr const char *OUTPUT = "output.weight";
constexpr const char *EMBEDDING = "token_embd.weight";

/// What llama.cpp's callback works with.
struct Source {
    const p64_container *container;
    /// What went wrong in the callback, which has no way to say so and must not throw.
    std::exception_ptr failure;

    std::optional<p64::Tensor> find(std::string_view name) const {
        p64_tensor raw;
        if (!p64::detail::found(p64_container_find, container, name.data(), name.size(), &raw)) return std::nullopt;
        return p64::Tensor(container, raw);
    }

    /// A model whose output is its embedding has no tensor for it. A GGUF without one tells llama.cpp so; this way in
    /// cannot, so the output gets the same weights as a tensor of its own.
    std::optional<p64::Tensor> find_tied(std::string_view name) const {
        auto tensor = find(name);
        return !tensor && name == OUTPUT ? find(EMBEDDING) : tensor;
    }
};

Gguf metadata(const Source &source) {
    Gguf gguf(gguf_init_empty());
    p64_metadata area;
    p64::detail::call(p64_container_metadata, source.container, static_cast<std::uint32_t>(P64_AREA_SOURCE), &area);
    for (const auto &[key, value] : p64::Metadata(area).pairs()) set(gguf.get(), c_string(key).c_str(), value);
    for (const p64::Tensor &tensor : p64::Tensors(source.container)) {
        // What the converter added has no place in llama.cpp.
        if (tensor.name().substr(0, 4) != "p64.") announce(gguf.get(), tensor, std::string(tensor.name()));
    }
    if (!source.find(OUTPUT)) {
        if (auto embedding = source.find(EMBEDDING)) announce(gguf.get(), *embedding, OUTPUT);
    }
    return gguf;
}

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// Tensors that a model may have and this one has not: with a GGUF llama.cpp leaves them out, this way it asks for them.
/// They get the values that change nothing.
void fill_absent(ggml_tensor *tensor, std::string_view name) {
    const bool is_factor = ends_with(name, "scale") || name == "rope_freqs.weight";
    if (tensor->type != GGML_TYPE_F32 || !(is_factor || ends_with(name, ".bias"))) {
        refuse("llama.cpp wants the tensor " + std::string(name) + ", which the container does not have");
    }
    std::vector<float> values(static_cast<std::size_t>(ggml_nelements(tensor)), is_factor ? 1.0f : 0.0f);
    ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(float));
}

void fill(ggml_tensor *tensor, const Source &source) {
    const std::string_view name = ggml_get_name(tensor);
    const auto found = source.find_tied(name);
    if (!found) return fill_absent(tensor, name);
    p64::Span<const std::uint32_t> dims = found->dims();
    for (std::size_t d = 0; d < GGML_MAX_DIMS; ++d) {
        const std::int64_t have = d < dims.size() ? dims[d] : 1;
        if (have != tensor->ne[d]) refuse(std::string(name) + ": not of the shape that llama.cpp needs");
    }
    // The bytes are verified here, when the container was opened lazily.
    const p64::Bytes bytes = found->data();
    if (bytes.size() != ggml_nbytes(tensor)) refuse(std::string(name) + ": not of the size that llama.cpp needs");
    ggml_backend_tensor_set(tensor, bytes.data(), 0, bytes.size());
}

void set_tensor_data(ggml_tensor *tensor, void *user) {
    auto &source = *static_cast<Source *>(user);
    if (source.failure) return;
    try {
        fill(tensor, source);
    } catch (...) {
        source.failure = std::current_exception();
    }
}

} // namespace

Model load(const p64_container *container, llama_model_params params) {
    Source source{container, nullptr};
    const Gguf gguf = metadata(source);
    Model model(llama_model_init_from_user(gguf.get(), set_tensor_data, &source, params));
    if (source.failure) std::rethrow_exception(source.failure);
    if (!model) refuse("llama.cpp cannot build a model from this container's metadata");
    return model;
}

} // namespace p64_llama
