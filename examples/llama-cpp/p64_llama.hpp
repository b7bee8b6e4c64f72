// llama.cpp's model from a P64 container.
#ifndef P64_LLAMA_HPP
#define P64_LLAMA_HPP

#include <llama.h>
#include <p64.hpp>

#include <memory>

namespace p64_llama {

struct Free {
    void operator()(llama_model *model) const { llama_model_free(model); }
    void operator()(llama_context *context) const { llama_free(context); }
    void operator()(gguf_context *gguf) const;
};

using Model = std::unique_ptr<llama_model, Free>;
using Context = std::unique_ptr<llama_context, Free>;

/// Builds llama.cpp's model out of a container of any architecture that llama.cpp has. The container is not needed any more
/// afterwards: llama.cpp has copied the tensors into buffers of its own, each straight from the mapping and, when the
/// container was opened lazily, verified on the way.
///
/// llama.cpp does not repack weights that come this way (it sets `use_extra_bufts` to false).
///
/// Throws p64::Error for what the container refuses, std::runtime_error for what llama.cpp or this adapter does.
Model load(const p64_container *container, llama_model_params params);

} // namespace p64_llama

#endif
