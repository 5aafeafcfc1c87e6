// The environment variables that the plugin reads, for programs that know nothing of it.
//
// Threads: immutable. Errors: none.
#pragma once

namespace slipstream::turbo {

inline constexpr const char* kSchemeVariable = "GGML_TURBO_KV";  // see scheme.h
// Memory for the codes of a KV cache, if the scheme limits what is read, and where the rest lies.
inline constexpr const char* kKvMemoryVariable = "GGML_TURBO_KV_MEMORY";
inline constexpr const char* kKvMemoryDirVariable = "GGML_TURBO_KV_MEMORY_DIR";
inline constexpr const char* kExpertsVariable =
    "GGML_TURBO_EXPERTS";  // memory for streamed experts
inline constexpr const char* kPromptsVariable =
    "GGML_TURBO_PROMPTS";  // "on": our own kernels read prompts
inline constexpr const char* kProfileVariable = "GGML_TURBO_PROFILE";  // a file of fitted keys
inline constexpr const char* kFitVariable = "GGML_TURBO_FIT";          // one to be made
inline constexpr const char* kKernelsVariable =
    "GGML_TURBO_KERNELS";  // the largest instruction set

}  // namespace slipstream::turbo
