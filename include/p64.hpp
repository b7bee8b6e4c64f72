/**
 * @file p64.hpp
 * P64 for C++17, on top of p64.h: objects that own what the C interface is lent, exceptions for statuses, ranges for indices.
 * Header-only. What p64.h says about threads and about who owns what holds here too; every view (string_view, Bytes, Tensor)
 * points into the file and into the Container, and must not outlive them.
 */
#ifndef P64_HPP
#define P64_HPP

#include "p64.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace p64 {

/// The sentence of an error.
inline std::string sentence(const p64_error &error) {
    std::size_t needed = 0;
    p64_error_format(&error, nullptr, 0, &needed);
    std::string text(needed, '\0');
    p64_error_format(&error, text.data(), text.size(), nullptr);
    text.resize(needed == 0 ? 0 : needed - 1);
    return text;
}

/// A status other than P64_STATUS_OK, with the place and the values.
class Error : public std::runtime_error {
  public:
    explicit Error(const p64_error &error) : std::runtime_error(sentence(error)), error_(error) {}
    Error(const p64_error &error, const char *text) : std::runtime_error(text), error_(error) {}

    p64_status status() const noexcept { return error_.status; }
    const p64_error &raw() const noexcept { return error_; }

  private:
    p64_error error_;
};

namespace detail {

/// Calls `function(arguments..., &error)` and throws what it answers with.
template <typename Function, typename... Arguments>
void call(Function function, Arguments... arguments) {
    p64_error error;
    if (function(arguments..., &error) != P64_STATUS_OK) throw Error(error);
}

/// The same where "not found" is an answer: false.
template <typename Function, typename... Arguments>
bool found(Function function, Arguments... arguments) {
    p64_error error;
    p64_status status = function(arguments..., &error);
    if (status == P64_STATUS_NOT_FOUND) return false;
    if (status != P64_STATUS_OK) throw Error(error);
    return true;
}

/// Gives back memory of an alignment of its own.
struct Free {
    std::size_t alignment = alignof(std::max_align_t);
    void operator()(unsigned char *memory) const noexcept { ::operator delete(memory, std::align_val_t(alignment)); }
};

} // namespace detail

/// Elements somewhere else: a pointer and a number.
template <typename T>
class Span {
  public:
    constexpr Span() noexcept = default;
    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

using Bytes = Span<const std::uint8_t>;

/// One tensor of a container.
class Tensor {
  public:
    Tensor(const p64_container *container, const p64_tensor &raw) noexcept : container_(container), raw_(raw) {}

    std::string_view name() const noexcept { return {raw_.name, raw_.name_len}; }
    std::uint32_t index() const noexcept { return raw_.index; }
    std::uint32_t role() const noexcept { return raw_.role; }
    std::uint32_t dtype() const noexcept { return raw_.dtype; }
    std::uint32_t layer() const noexcept { return raw_.layer; }
    std::string_view dtype_name() const noexcept { return p64_dtype_name(raw_.dtype); }
    std::string_view role_name() const noexcept { return p64_role_name(raw_.role); }
    /// The dimensions, the contiguous one first.
    Span<const std::uint32_t> dims() const noexcept { return {raw_.dims, raw_.rank}; }
    /// Elements of a row.
    std::size_t cols() const noexcept { return raw_.dims[0]; }
    /// The product of the other dimensions.
    std::uint64_t rows() const noexcept {
        std::uint64_t rows = 1;
        for (std::uint32_t d = 1; d < raw_.rank; ++d) rows *= raw_.dims[d];
        return rows;
    }
    const p64_tensor &raw() const noexcept { return raw_; }

    /// The bytes, verified.
    Bytes data() const {
        const std::uint8_t *data = nullptr;
        std::size_t len = 0;
        detail::call(p64_tensor_data, container_, raw_.index, &data, &len);
        return {data, len};
    }

    void verify() const { detail::call(p64_tensor_verify, container_, raw_.index); }

    /// The values of `count` rows from `row` on.
    std::vector<float> dequantize(std::uint64_t row, std::uint64_t count) const {
        std::vector<float> out(static_cast<std::size_t>(count) * cols());
        detail::call(p64_tensor_dequantize, container_, raw_.index, row, count, out.data(), out.size());
        return out;
    }

    /// The product with a vector.
    std::vector<float> gemv(Span<const float> x, p64_activations activations = P64_ACTIVATIONS_QUANTIZED) const {
        std::size_t scratch_len = 0;
        detail::call(p64_tensor_gemv_required, container_, raw_.index, &scratch_len);
        std::vector<unsigned char> scratch(scratch_len);
        std::vector<float> y(static_cast<std::size_t>(rows()));
        detail::call(p64_tensor_gemv, container_, raw_.index, x.data(), x.size(), y.data(), y.size(),
                     static_cast<void *>(scratch.data()), scratch.size(), static_cast<std::uint32_t>(activations));
        return y;
    }

  private:
    const p64_container *container_;
    p64_tensor raw_;
};

/// All tensors of a container, in the order of the file: for (Tensor tensor : container.tensors()).
class Tensors {
  public:
    class iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Tensor;
        using difference_type = std::ptrdiff_t;
        using pointer = const Tensor *;
        using reference = Tensor;

        iterator(const p64_container *container, std::uint32_t index) noexcept : container_(container), index_(index) {}
        Tensor operator*() const {
            p64_tensor raw;
            detail::call(p64_container_tensor, container_, index_, &raw);
            return {container_, raw};
        }
        iterator &operator++() noexcept {
            ++index_;
            return *this;
        }
        iterator operator++(int) noexcept {
            iterator before = *this;
            ++index_;
            return before;
        }
        bool operator==(const iterator &other) const noexcept { return index_ == other.index_; }
        bool operator!=(const iterator &other) const noexcept { return index_ != other.index_; }

      private:
        const p64_container *container_;
        std::uint32_t index_;
    };

    explicit Tensors(const p64_container *container) : container_(container) {
        detail::call(p64_container_tensor_count, container_, &count_);
    }

    iterator begin() const noexcept { return {container_, 0}; }
    iterator end() const noexcept { return {container_, count_}; }
    std::uint32_t size() const noexcept { return count_; }
    Tensor operator[](std::uint32_t index) const { return *iterator(container_, index); }

  private:
    const p64_container *container_;
    std::uint32_t count_ = 0;
};

/// A value of a key-value area.
class Value {
  public:
    explicit Value(const p64_value &raw) noexcept : raw_(raw) {}

    p64_kind kind() const noexcept { return static_cast<p64_kind>(raw_.kind); }
    const p64_value &raw() const noexcept { return raw_; }

    std::uint64_t u64() const {
        std::uint64_t out = 0;
        detail::call(p64_value_u64, &raw_, &out);
        return out;
    }
    std::int64_t i64() const {
        std::int64_t out = 0;
        detail::call(p64_value_i64, &raw_, &out);
        return out;
    }
    double f64() const {
        double out = 0;
        detail::call(p64_value_f64, &raw_, &out);
        return out;
    }
    /// The bytes of a string; empty for other kinds.
    std::string_view str() const noexcept {
        if (raw_.kind != P64_KIND_STRING || raw_.data_len == 0) return {};
        return {reinterpret_cast<const char *>(raw_.data), raw_.data_len};
    }
    /// The elements of an array.
    std::vector<Value> elements() const {
        std::vector<Value> out;
        p64_value rest = raw_, element;
        while (detail::found(p64_value_next, &rest, &element)) out.emplace_back(element);
        return out;
    }

  private:
    p64_value raw_;
};

/// A key-value area.
class Metadata {
  public:
    explicit Metadata(const p64_metadata &raw) noexcept : raw_(raw) {}

    std::uint32_t size() const {
        std::uint32_t count = 0;
        detail::call(p64_metadata_count, &raw_, &count);
        return count;
    }

    std::optional<Value> get(std::string_view key) const {
        p64_value value;
        if (!detail::found(p64_metadata_get, &raw_, key.data(), key.size(), &value)) return std::nullopt;
        return Value(value);
    }

    /// All pairs in the order of the file.
    std::vector<std::pair<std::string_view, Value>> pairs() const {
        std::vector<std::pair<std::string_view, Value>> out;
        p64_metadata rest = raw_;
        const char *key = nullptr;
        std::size_t len = 0;
        p64_value value;
        while (detail::found(p64_metadata_next, &rest, &key, &len, &value)) {
            out.emplace_back(std::string_view(key, len), Value(value));
        }
        return out;
    }

  private:
    p64_metadata raw_;
};

/// How a Container is opened.
struct OpenOptions {
    p64_policy policy = P64_POLICY_COMPATIBLE;
    p64_integrity integrity = P64_INTEGRITY_FULL;
    /// Whether a name index is built, so that find() takes O(log n).
    bool index = true;
    /// Collects deviations that the policy lets pass, when set.
    std::vector<p64_error> *warnings = nullptr;
};

/// A validated file. The bytes are the caller's and must outlive it. It can be moved, not copied; views and decoders keep
/// pointing into the file, tensors point to this object too.
class Container {
  public:
    Container(const void *data, std::size_t len, const OpenOptions &how = {}) : state_(std::make_unique<State>()) {
        State &state = *state_;
        // The header is not to be believed yet, but a table of 64-byte entries is no longer than the file.
        const std::size_t count = std::min(header_count(data, len), len / 64);
        if (how.index) state.names.resize(count);
        if (how.integrity == P64_INTEGRITY_LAZY) state.verified.resize(count);
        p64_open_options raw{};
        raw.struct_size = sizeof raw;
        raw.policy = how.policy;
        raw.integrity = how.integrity;
        raw.names = state.names.empty() ? nullptr : state.names.data();
        raw.names_len = state.names.size();
        raw.verified = state.verified.empty() ? nullptr : state.verified.data();
        raw.verified_len = state.verified.size();
        if (how.warnings != nullptr) {
            raw.warning = [](void *user, const p64_error *warning) {
                static_cast<std::vector<p64_error> *>(user)->push_back(*warning);
            };
            raw.warning_user = how.warnings;
        }
        detail::call(p64_container_open, &state.raw, data, len, &raw);
    }

    const p64_container *raw() const noexcept { return &state_->raw; }

    p64_info info() const { return get<p64_info>(p64_container_info); }
    p64_hparams hparams() const { return get<p64_hparams>(p64_container_hparams); }
    p64_tokenizer tokenizer() const { return get<p64_tokenizer>(p64_container_tokenizer); }
    void verify_all() const { detail::call(p64_container_verify_all, raw()); }

    Tensors tensors() const { return Tensors(raw()); }

    std::optional<Tensor> find(std::string_view name) const {
        p64_tensor tensor;
        if (!detail::found(p64_container_find, raw(), name.data(), name.size(), &tensor)) return std::nullopt;
        return Tensor(raw(), tensor);
    }

    std::optional<Tensor> find(p64_role role, std::uint32_t layer) const {
        p64_tensor tensor;
        if (!detail::found(p64_container_find_role, raw(), static_cast<std::uint32_t>(role), layer, &tensor)) return std::nullopt;
        return Tensor(raw(), tensor);
    }

    p64_layer layer(std::uint32_t index) const {
        p64_layer layer;
        detail::call(p64_container_layer, raw(), index, &layer);
        return layer;
    }

    std::array<float, 10> manifold(std::uint32_t layer) const {
        p64_manifold manifold;
        detail::call(p64_container_manifold, raw(), layer, &manifold);
        std::array<float, 10> values{};
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = manifold.values[i];
        return values;
    }

    std::optional<Metadata> metadata(p64_area area = P64_AREA_SOURCE) const {
        p64_metadata metadata;
        if (!detail::found(p64_container_metadata, raw(), static_cast<std::uint32_t>(area), &metadata)) return std::nullopt;
        return Metadata(metadata);
    }

    /// The vocabulary in the order of the ids.
    std::vector<std::string_view> tokens() const { return strings(tokenizer().tokens); }
    /// The merge pairs, left and right one after the other.
    std::vector<std::string_view> merges() const { return strings(tokenizer().merges); }

  private:
    struct State {
        p64_container raw;
        std::vector<p64_name_slot> names;
        std::vector<std::uint8_t> verified;
    };

    /// Bytes 36 to 39 of the header: tensors, as the file claims.
    static std::size_t header_count(const void *data, std::size_t len) noexcept {
        if (data == nullptr || len < 64) return 0;
        const unsigned char *at = static_cast<const unsigned char *>(data) + 36;
        return at[0] | static_cast<std::size_t>(at[1]) << 8 | static_cast<std::size_t>(at[2]) << 16 |
               static_cast<std::size_t>(at[3]) << 24;
    }

    template <typename T, typename Function>
    T get(Function function) const {
        T out;
        detail::call(function, raw(), &out);
        return out;
    }

    static std::vector<std::string_view> strings(p64_strings rest) {
        std::vector<std::string_view> out;
        const char *text = nullptr;
        std::size_t len = 0;
        while (detail::found(p64_strings_next, &rest, &text, &len)) out.emplace_back(text, len);
        return out;
    }

    std::unique_ptr<State> state_;
};

/// The model of a container, decoding token by token.
class Decoder {
  public:
    Decoder(const Container &container, std::size_t context, std::size_t batch = 1) {
        p64_decode_memory need;
        detail::call(p64_decode_required, container.raw(), context, batch, &need);
        memory_ = Memory(static_cast<unsigned char *>(::operator new(need.bytes, std::align_val_t(need.alignment))),
                         detail::Free{need.alignment});
        logits_.resize(need.logits);
        raw_ = std::make_unique<p64_decoder>();
        detail::call(p64_decoder_init, raw_.get(), container.raw(), context, batch, static_cast<void *>(memory_.get()), need.bytes);
    }

    /// Passes tokens through the model; the logits after the last of them, until the next step.
    Span<const float> step(Span<const std::uint32_t> tokens) {
        detail::call(p64_decoder_step, raw_.get(), tokens.data(), tokens.size(), logits_.data(), logits_.size());
        return {logits_.data(), logits_.size()};
    }
    Span<const float> step(const std::vector<std::uint32_t> &tokens) { return step({tokens.data(), tokens.size()}); }
    Span<const float> step(std::uint32_t token) { return step({&token, 1}); }

    std::size_t position() const {
        std::size_t position = 0;
        detail::call(p64_decoder_position, raw_.get(), &position);
        return position;
    }
    void truncate(std::size_t position) { detail::call(p64_decoder_truncate, raw_.get(), position); }

  private:
    using Memory = std::unique_ptr<unsigned char, detail::Free>;

    Memory memory_;
    std::vector<float> logits_;
    std::unique_ptr<p64_decoder> raw_;
};

/// The index of the largest value.
inline std::uint32_t argmax(Span<const float> values) {
    std::uint32_t best = 0;
    detail::call(p64_argmax, values.data(), values.size(), &best);
    return best;
}

/// A file behind a reader, validated through a buffer of its own. `read(offset, buffer, len)` answers 0 when it has filled
/// the buffer, else a number that comes back as `found` of P64_STATUS_READ_FAILED; it must not throw.
template <typename Read>
class Stream {
  public:
    Stream(Read read, std::uint64_t len, std::size_t buffer_len = 4096, p64_policy policy = P64_POLICY_COMPATIBLE,
           p64_integrity integrity = P64_INTEGRITY_FULL)
        : state_(std::make_unique<State>(std::move(read), buffer_len)) {
        p64_open_options options{};
        options.struct_size = sizeof options;
        options.policy = policy;
        options.integrity = integrity;
        const p64_reader reader = {&Stream::call_read, state_.get(), len};
        detail::call(p64_stream_open, &state_->raw, &reader, static_cast<void *>(state_->buffer.data()), state_->buffer.size(),
                     &options);
    }

    p64_info info() const {
        p64_info info;
        detail::call(p64_stream_info, &state_->raw, &info);
        return info;
    }

    /// What the table says of a tensor; its `name` is NULL, because nothing lies in memory.
    p64_tensor tensor(std::uint32_t index) const {
        p64_tensor tensor;
        detail::call(p64_stream_tensor, &state_->raw, index, &tensor);
        return tensor;
    }

    std::string name(std::uint32_t index) const {
        std::string text(64, '\0');
        std::size_t len = 0;
        p64_error error;
        while (p64_stream_name(&state_->raw, index, text.data(), text.size(), &len, &error) != P64_STATUS_OK) {
            if (error.status != P64_STATUS_BUFFER_TOO_SMALL) throw Error(error);
            text.resize(static_cast<std::size_t>(error.expected));
        }
        text.resize(len);
        return text;
    }

    std::optional<p64_tensor> find(std::string_view name) const {
        p64_tensor tensor;
        if (!detail::found(p64_stream_find, &state_->raw, name.data(), name.size(), &tensor)) return std::nullopt;
        return tensor;
    }

    void verify(std::uint32_t index) const { detail::call(p64_stream_verify, &state_->raw, index); }

    /// All bytes of a tensor.
    std::vector<std::uint8_t> read(std::uint32_t index) const {
        std::vector<std::uint8_t> bytes(static_cast<std::size_t>(tensor(index).size));
        detail::call(p64_stream_read, &state_->raw, index, std::uint64_t{0}, static_cast<void *>(bytes.data()), bytes.size());
        return bytes;
    }

  private:
    struct State {
        State(Read &&function, std::size_t len) : read(std::move(function)), buffer(len) {}
        Read read;
        std::vector<unsigned char> buffer;
        p64_stream raw;
    };

    static std::int32_t call_read(void *user, std::uint64_t offset, void *buffer, std::size_t len) noexcept {
        return static_cast<State *>(user)->read(offset, buffer, len);
    }

    // The library keeps the address of the state.
    std::unique_ptr<State> state_;
};

#if defined(P64_STD)

namespace detail {

/// Calls a tier-1 function and throws its sentence, which names the file too.
template <typename Function, typename... Arguments>
void call_std(Function function, Arguments... arguments) {
    p64_error error;
    if (function(arguments..., &error) != P64_STATUS_OK) throw Error(error, p64_error_message());
}

/// Gives back what tier 1 has made.
struct Release {
    void operator()(p64_model *model) const noexcept { p64_model_free(model); }
    void operator()(p64_session *session) const noexcept { p64_session_free(session); }
    void operator()(p64_file *file) const noexcept { p64_file_free(file); }
};

/// Fills a container by a function that says how much room it needs.
template <typename Out, typename Function>
Out filled(Function function) {
    Out out;
    std::size_t len = 0;
    p64_error error;
    while (function(out.data(), out.size(), &len, &error) != P64_STATUS_OK) {
        if (error.status != P64_STATUS_BUFFER_TOO_SMALL) throw Error(error, p64_error_message());
        out.resize(static_cast<std::size_t>(error.expected));
    }
    out.resize(len);
    return out;
}

} // namespace detail

/// A mapped P64 of any architecture. Tier 0's functions take `raw()`.
class File {
  public:
    explicit File(const std::string &path, const p64_map_options *options = nullptr) {
        p64_file *file = nullptr;
        detail::call_std(p64_file_open, path.c_str(), options, &file);
        file_.reset(file);
    }

    const p64_container *raw() const noexcept { return p64_file_container(file_.get()); }
    Tensors tensors() const { return Tensors(raw()); }

  private:
    std::unique_ptr<p64_file, detail::Release> file_;
};

/// A model that can be run, from a P64 or a GGUF. Any number of threads may use one, each with a Session of its own.
class Model {
  public:
    explicit Model(const std::string &path, const p64_map_options *options = nullptr) {
        p64_model *model = nullptr;
        detail::call_std(p64_model_open, path.c_str(), options, &model);
        model_.reset(model);
    }

    p64_model_info info() const {
        p64_model_info info;
        detail::call_std(p64_model_describe, raw(), &info);
        return info;
    }

    /// One line: family, layers, parameters, main type.
    std::string description() const {
        return detail::filled<std::string>([this](char *buffer, std::size_t room, std::size_t *len, p64_error *error) {
            return p64_model_description(raw(), buffer, room, len, error);
        });
    }

    /// `flags` are those of p64_text_flags.
    std::vector<std::uint32_t> encode(std::string_view text, std::uint32_t flags = P64_TEXT_ADD_SPECIAL) const {
        using Ids = std::vector<std::uint32_t>;
        return detail::filled<Ids>([&](std::uint32_t *ids, std::size_t room, std::size_t *len, p64_error *error) {
            return p64_model_encode(raw(), text.data(), text.size(), flags, ids, room, len, error);
        });
    }

    /// The bytes of the tokens' text; the end of `ids` need not be the end of a character.
    std::string decode(const std::vector<std::uint32_t> &ids, std::uint32_t flags = 0) const {
        return detail::filled<std::string>([&](char *text, std::size_t room, std::size_t *len, p64_error *error) {
            return p64_model_decode(raw(), ids.data(), ids.size(), flags, text, room, len, error);
        });
    }

    bool is_end(std::uint32_t id) const {
        std::uint32_t end = 0;
        detail::call_std(p64_model_is_end, raw(), id, &end);
        return end != 0;
    }

    const p64_model *raw() const noexcept { return model_.get(); }

  private:
    std::unique_ptr<p64_model, detail::Release> model_;
};

/// One sequence over a model, which it keeps alive.
class Session {
  public:
    explicit Session(const Model &model, const p64_session_options *options = nullptr) {
        p64_session *session = nullptr;
        detail::call_std(p64_session_new, model.raw(), options, &session);
        session_.reset(session);
    }

    void prompt(const std::vector<std::uint32_t> &ids) {
        detail::call_std(p64_session_prompt, session_.get(), ids.data(), ids.size());
    }

    std::uint32_t next() {
        std::uint32_t id = 0;
        detail::call_std(p64_session_next, session_.get(), &id);
        return id;
    }

    /// Generates after `ids`; `on_text(text)` is shown each piece and ends the generation by answering false. It must not
    /// throw.
    template <typename OnText>
    p64_generation generate(const std::vector<std::uint32_t> &ids, OnText on_text, const p64_generate_options *options = nullptr) {
        const p64_text_callback show = [](void *user, const char *text, std::size_t len) noexcept -> int {
            return (*static_cast<OnText *>(user))(std::string_view(text, len)) ? 0 : 1;
        };
        p64_generation done;
        detail::call_std(p64_session_generate, session_.get(), ids.data(), ids.size(), options, show,
                         static_cast<void *>(&on_text), &done);
        return done;
    }

    std::vector<std::uint32_t> tokens() const {
        using Ids = std::vector<std::uint32_t>;
        return detail::filled<Ids>([this](std::uint32_t *ids, std::size_t room, std::size_t *len, p64_error *error) {
            return p64_session_tokens(session_.get(), ids, room, len, error);
        });
    }

    void truncate(std::size_t position) { detail::call_std(p64_session_truncate, session_.get(), position); }
    void reset() { detail::call_std(p64_session_reset, session_.get()); }

    p64_session *raw() const noexcept { return session_.get(); }

  private:
    std::unique_ptr<p64_session, detail::Release> session_;
};

#endif // P64_STD

} // namespace p64

#endif
