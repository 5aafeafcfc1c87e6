// Which KV scheme and context a model is loaded with: what was asked for, or what fits.
//
// Threads: thread-safe. Errors: kNotFound when a turbo... scheme is asked for by name and the
// plugin is not there; kOutOfMemory with what would fit.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/memory/context_bytes.h"

namespace slipstream {

struct KvPlan {
  std::string scheme;
  std::filesystem::path plugin;  // empty for llama.cpp's own types
  int n_context;
  // 0: not known, of an architecture that the forecast does not know.
  std::uint64_t kv_bytes = 0;
  std::uint64_t total_bytes = 0;
};

// kv: "auto" or a scheme. shape.n_ctx: 0 for the default. available_bytes: for weights and all.
[[nodiscard]] Result<KvPlan> plan_kv(const std::filesystem::path& model, std::string_view kv,
                                     ContextShape shape, std::uint64_t available_bytes);

}  // namespace slipstream
