// p64.hpp over streams, files, models and sessions.
//
//   tier1_hpp MODEL.p64 MODEL.gguf FOLDER-OF-INVALID-FIXTURES SCRATCH-FOLDER

#include "p64.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "check.h"

static_assert(!std::is_copy_constructible<p64::Session>::value, "a session is one sequence");
static_assert(std::is_nothrow_move_constructible<p64::Model>::value, "a model can be handed on");

template <typename Function>
static p64_status thrown(Function function) {
    try {
        function();
    } catch (const p64::Error &error) {
        CHECK(std::strlen(error.what()) > 0);
        return error.status();
    }
    return P64_STATUS_OK;
}

static void test_stream(file f) {
    bool broken = false;
    auto read = [&](std::uint64_t offset, void *buffer, std::size_t len) -> std::int32_t {
        if (broken) return 5;
        std::memcpy(buffer, f.data + offset, len);
        return 0;
    };
    p64::Container container(f.data, f.len);
    for (std::size_t buffer : {std::size_t{64}, std::size_t{257}, f.len}) {
        p64::Stream<decltype(read)> first(read, f.len, buffer, P64_POLICY_STRICT);
        auto stream = std::move(first);
        CHECK(stream.info().tensor_count == container.info().tensor_count);
        for (p64::Tensor tensor : container.tensors()) {
            CHECK(stream.name(tensor.index()) == tensor.name());
            CHECK(stream.find(tensor.name())->index == tensor.index());
            std::vector<std::uint8_t> bytes = stream.read(tensor.index());
            p64::Bytes data = tensor.data();
            CHECK(bytes.size() == data.size() && std::equal(bytes.begin(), bytes.end(), data.begin()));
        }
        stream.verify(0);
        CHECK(!stream.find("no such name"));
        CHECK(thrown([&] { stream.tensor(9999); }) == P64_STATUS_NO_SUCH_TENSOR);
    }
    broken = true;
    CHECK(thrown([&] { p64::Stream<decltype(read)>(read, f.len); }) == P64_STATUS_READ_FAILED);
}

static void test_model(const char *path) {
    p64::Model model(path);
    CHECK(model.info().vocabulary == 1024 && model.description().find("llama") == 0);
    const std::vector<std::uint32_t> ids = model.encode("Once upon a time");
    CHECK(!ids.empty() && model.decode(ids) == "Once upon a time");
    CHECK(!model.is_end(ids[0]));

    p64_generate_options until{};
    until.struct_size = sizeof until;
    until.max_tokens = 24;
    std::string text;
    p64::Session session(model);
    p64_generation done = session.generate(ids, [&](std::string_view piece) { text += piece; return true; }, &until);
    CHECK(done.generated_tokens == 24 && !text.empty());

    // Token by token the same.
    session.reset();
    session.prompt(ids);
    std::vector<std::uint32_t> written;
    for (int i = 0; i < 24; ++i) written.push_back(session.next());
    CHECK(model.decode(written) == text);
    session.truncate(ids.size());
    CHECK(session.tokens() == ids);

    // A session keeps its model; who says stop is shown no more.
    p64::Session orphan = [&] { return p64::Session(p64::Model(path)); }();
    int pieces = 0;
    done = orphan.generate(ids, [&](std::string_view) { ++pieces; return false; }, &until);
    CHECK(pieces == 1 && done.stop == P64_STOP_CANCELLED);
    CHECK(thrown([&] { session.prompt({99999}); }) == P64_STATUS_TOKEN_RANGE);
    CHECK(thrown([] { p64::Model("no such file.p64"); }) == P64_STATUS_IO);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    file f = read_file(argv[1]);
    test_stream(f);
    test_model(argv[1]);
    test_model(argv[2]);
    p64::File mapped(argv[1]);
    CHECK(mapped.tensors().size() > 0 && !mapped.tensors()[0].name().empty());
    CHECK(thrown([&] { p64::File(std::string(argv[2])); }) != P64_STATUS_OK);
    free(f.data);
    return checks_end("tier1_hpp");
}
