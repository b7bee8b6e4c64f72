// p64.hpp: every class on the bundled story model, and what it throws.
//
//   container_hpp MODEL.p64 MODEL.gguf FOLDER-OF-INVALID-FIXTURES SCRATCH-FOLDER

#include "p64.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "check.h"

static_assert(!std::is_copy_constructible<p64::Container>::value, "a container owns what the library was lent");
static_assert(std::is_nothrow_move_constructible<p64::Container>::value, "and can be handed on");
static_assert(!std::is_copy_constructible<p64::Decoder>::value, "so does a decoder");

template <typename Function>
static p64_status thrown(Function function) {
    try {
        function();
    } catch (const p64::Error &error) {
        CHECK(std::strlen(error.what()) > 0 && error.raw().status == error.status());
        return error.status();
    }
    return P64_STATUS_OK;
}

static void test_container(file f) {
    for (p64_integrity integrity : {P64_INTEGRITY_FULL, P64_INTEGRITY_LAZY}) {
        p64::OpenOptions how;
        std::vector<p64_error> warnings;
        how.integrity = integrity;
        how.index = integrity == P64_INTEGRITY_FULL;
        how.warnings = &warnings;
        p64::Container first(f.data, f.len, how);
        p64::Container container = std::move(first);
        CHECK(warnings.empty());
        std::uint32_t seen = 0;
        for (p64::Tensor tensor : container.tensors()) {
            CHECK(tensor.index() == seen && tensor.data().size() == tensor.raw().size);
            CHECK(container.find(tensor.name())->index() == seen);
            tensor.verify();
            ++seen;
        }
        CHECK(seen == container.info().tensor_count && seen == container.tensors().size());
        container.verify_all();
        CHECK(!container.find("no such name") && !container.find(P64_ROLE_VISION_FC, 0));
        auto norm = container.find(P64_ROLE_OUTPUT_NORM, container.info().n_layer);
        CHECK(norm && norm->name() == "output_norm.weight" && norm->role_name() == "output_norm" && norm->dtype_name() == "F32");
        CHECK(norm->dims().size() == 1 && norm->cols() == container.hparams().n_embd && norm->rows() == 1);
        CHECK(container.layer(0).tensor_count > 0);
        CHECK(std::fabs(container.manifold(0)[1] - 1.0f) < 1e-6f);
        CHECK(container.tokens().size() == 1024 && container.merges().size() == 2 * container.tokenizer().merge_count);
        CHECK(thrown([&] { container.layer(9999); }) == P64_STATUS_NOT_FOUND);
        CHECK(thrown([&] { (void)container.tensors()[9999]; }) == P64_STATUS_NO_SUCH_TENSOR);
    }
}

static void test_metadata(file f) {
    p64::Container container(f.data, f.len);
    auto area = container.metadata();
    CHECK(area && area->pairs().size() == area->size());
    CHECK(area->get("general.architecture")->str() == "llama");
    CHECK(area->get("llama.block_count")->u64() == container.hparams().n_layer);
    CHECK(area->get("llama.block_count")->i64() == static_cast<std::int64_t>(container.hparams().n_layer));
    CHECK(area->get("llama.attention.layer_norm_rms_epsilon")->f64() > 0);
    CHECK(!area->get("no.such.key"));
    auto tokens = area->get("tokenizer.ggml.tokens")->elements();
    auto own = container.tokens();
    CHECK(tokens.size() == own.size() && tokens[300].str() == own[300] && tokens[0].kind() == P64_KIND_STRING);
    CHECK(thrown([&] { area->get("general.architecture")->u64(); }) == P64_STATUS_METADATA_WRONG_TYPE);
    CHECK(container.metadata(P64_AREA_PROVENANCE).has_value());
}

static void test_arithmetic(file f) {
    p64::Container container(f.data, f.len);
    auto tensor = container.find("blk.0.ffn_gate.weight");
    std::vector<float> x(tensor->cols());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    auto weights = tensor->dequantize(0, tensor->rows());
    for (p64_activations mode : {P64_ACTIVATIONS_QUANTIZED, P64_ACTIVATIONS_F32}) {
        auto y = tensor->gemv({x.data(), x.size()}, mode);
        for (std::size_t r = 0; r < y.size(); ++r) {
            double want = 0;
            for (std::size_t i = 0; i < x.size(); ++i) want += static_cast<double>(weights[r * x.size() + i]) * static_cast<double>(x[i]);
            CHECK(std::fabs(want - static_cast<double>(y[r])) < 1e-4);
        }
    }
    CHECK(thrown([&] { tensor->gemv({x.data(), 1}); }) == P64_STATUS_LENGTH_MISMATCH);
}

static void test_decoder(file f) {
    // The first prompt of tests/data/tiny and the ids that numpy gives after it.
    const std::vector<std::uint32_t> prompt = {1, 427, 537, 260, 450};
    const std::uint32_t want[] = {15, 412, 288, 260, 540, 423, 319, 714};
    p64::Container container(f.data, f.len);
    p64::Decoder first(container, 32, 4);
    p64::Decoder decoder = std::move(first);
    for (int round = 0; round < 2; ++round) {
        p64::Span<const float> logits = decoder.step(prompt);
        for (std::uint32_t id : want) {
            CHECK(p64::argmax(logits) == id);
            logits = decoder.step(p64::argmax(logits));
        }
        CHECK(decoder.position() == prompt.size() + 8);
        decoder.truncate(0);
    }
    CHECK(thrown([&] { decoder.step(1024u); }) == P64_STATUS_TOKEN_RANGE);
    CHECK(thrown([&] { decoder.step(std::vector<std::uint32_t>(33, 1)); }) == P64_STATUS_CONTEXT_FULL);
    CHECK(thrown([&] { p64::Decoder(container, 0); }) == P64_STATUS_BAD_ARGUMENT);
}

static void test_errors(file f) {
    CHECK(thrown([&] { p64::Container(f.data, 10); }) == P64_STATUS_TOO_SHORT);
    CHECK(thrown([&] { p64::Container(nullptr, 100); }) == P64_STATUS_NULL_POINTER);
    p64_error error = {P64_STATUS_TOO_SHORT, P64_PLACE_FILE, P64_SECTION_NONE, 0, UINT64_MAX, 64, 10};
    CHECK(p64::sentence(error).find("a header needs 64") != std::string::npos);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: container_hpp MODEL.p64 MODEL.gguf INVALID-FOLDER SCRATCH-FOLDER\n");
        return 2;
    }
    file f = read_file(argv[1]);
    test_container(f);
    test_metadata(f);
    test_arithmetic(f);
    test_decoder(f);
    test_errors(f);
    std::free(f.data);
    return checks_end("container_hpp");
}
