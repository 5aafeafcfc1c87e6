// Chooses the KV scheme and the context with which a model is loaded, which of its experts stay in
// the file, and who multiplies its weights: what the user asked for, or what fits.
//
// Threads: thread-safe.
// Errors:  kNotFound if a turbo... scheme, streamed experts or products are asked for and the
//          plugin is missing; kOutOfMemory with what would fit; kInvalidArgument if experts are to be
//          streamed from a model without experts, for a scheme that calibration found broken, and
//          for a profile together with other positions than the model's own.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/forecast/context_bytes.h"
#include "engine/model/rope_scaling.h"
#include "engine/rpc/spread.h"

namespace slipstream {

// What a user asks for.
struct KvWish {
  std::string scheme = "auto";
  std::string profile = {};  // calibration profile; empty: the model's own, if there is one
  bool is_forced = false;    // use even a scheme that calibration found broken
  // For codes, if the scheme limits what is read: the others lie in a file; 0: all are in memory.
  std::uint64_t memory_bytes = 0;
  std::string memory_directory = {};  // of that file; empty: the plugin's choice
};
struct WeightWish {
  bool streams_experts = false;          // if the experts do not fit into memory
  std::uint64_t expert_cache_bytes = 0;  // for experts in use; 0: the remaining memory
  // Who reads prompts: "on" for the plugin's own kernels, "auto" for the faster on this machine.
  std::string prompts = "auto";
  int n_threads = 0;  // with which that is tried; 0: one per core
};

// The memory that a model is planned for: for its weights and everything else.
struct MemoryWish {
  std::uint64_t available_bytes = 0;
  int n_models = 1;  // that share it, each with a default context
};
struct ContextWish {
  ContextShape shape = {};    // n_ctx 0: the default (engine/forecast/context_choice.h)
  std::int64_t n_useful = 0;  // a default context has no more than this; 0: not known
  RopeScaling rope = {};
};

struct KvPlan {
  std::string scheme;
  std::filesystem::path plugin;  // empty if nothing needs the plugin
  // What calibration fitted to the model's keys. Empty if there is nothing or it is not needed.
  std::filesystem::path key_profile = {};
  std::string experts;         // how experts are streamed (ModelOptions); empty: not streamed
  bool has_products = false;   // ModelOptions
  std::string kv_memory = {};  // ModelOptions
  int n_context;
  std::int64_t n_context_own = 0;  // the model's own, as it is scaled; 0: not known
  std::string why_context;         // it has that many tokens: "the model's own", "as asked", ...
  // 0: not known, because the forecast does not know the architecture.
  std::uint64_t kv_bytes = 0;
  std::uint64_t kv_f16_bytes = 0;  // what f16 would take for as many tokens
  std::uint64_t total_bytes = 0;   // of this machine
  Spread spread = {};              // ModelOptions
};

[[nodiscard]] Result<KvPlan> plan_kv(const std::filesystem::path& model, const KvWish& kv,
                                     const ContextWish& context, const MemoryWish& memory,
                                     const WeightWish& weights);

// ModelOptions::kv_memory, of the flags --kv-memory and --kv-memory-dir.
[[nodiscard]] std::string kv_memory_text(std::uint64_t n_bytes, const std::string& directory);

// Warns if the context is longer than the model can read, and says which flags help.
void warn_if_beyond(std::string_view model, const KvPlan& plan);

}  // namespace slipstream
