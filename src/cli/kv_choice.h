// Which KV scheme and context a model is loaded with, and which of its experts stay in the file:
// what was asked for, or what fits.
//
// Threads: thread-safe.
// Errors:  kNotFound when a turbo... scheme or streamed experts are asked for and the plugin is not
//          there; kOutOfMemory with what would fit; kInvalidArgument when experts are to be
//          streamed of a model that has none, and for a scheme that calibration found broken.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/forecast/context_bytes.h"

namespace slipstream {

// What a user asks for.
struct KvWish {
  std::string scheme = "auto";
  std::string profile = {};  // of a calibration; empty: the model's, if there is one
  bool is_forced = false;    // even a scheme that calibration found broken
};
struct ExpertWish {
  bool streams = false;           // if they do not fit into memory
  std::uint64_t cache_bytes = 0;  // for those in use; 0: what is left
};

struct KvPlan {
  std::string scheme;
  std::filesystem::path plugin;  // empty where nothing of it is used
  // What calibration fitted to the model's keys; empty: nothing, or no use for it.
  std::filesystem::path key_profile = {};
  std::string experts;  // how they are streamed (ModelOptions); empty: they are not
  int n_context;
  // 0: not known, of an architecture that the forecast does not know.
  std::uint64_t kv_bytes = 0;
  std::uint64_t kv_f16_bytes = 0;  // what f16 would take for as many tokens
  std::uint64_t total_bytes = 0;
};

// shape.n_ctx: 0 for the default. available_bytes: for weights and all.
[[nodiscard]] Result<KvPlan> plan_kv(const std::filesystem::path& model, const KvWish& kv,
                                     ContextShape shape, std::uint64_t available_bytes,
                                     const ExpertWish& experts);

}  // namespace slipstream
