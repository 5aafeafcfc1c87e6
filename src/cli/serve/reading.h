// Models that only read, and readers beside models that write: planned and loaded.
//
// Threads: thread-safe.
// Errors:  those of the file's header and of loading; kOutOfMemory if it cannot fit;
//          kInvalidArgument with --rpc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/result.h"
#include "cli/serve/serve.h"
#include "engine/engine.h"
#include "server/served_model.h"

namespace slipstream::serve {

struct ReadingPlan {
  std::filesystem::path plugin;  // whose kernels multiply; empty: stock's do
  int n_tokens_max;              // of one text
  std::uint64_t total_bytes;
};

// nullopt: the model writes.
[[nodiscard]] Result<std::optional<ReadingPlan>> plan_reading(const Options& options,
                                                              const std::filesystem::path& model,
                                                              std::uint64_t bytes_max);
[[nodiscard]] Result<std::unique_ptr<ServedModel>> load_reading(const Options& options,
                                                                const std::string& name,
                                                                const std::filesystem::path& model,
                                                                const ReadingPlan& plan);

// For --embeddings; null without it.
[[nodiscard]] Result<std::unique_ptr<ServedReader>> reader_beside(const Options& options,
                                                                  const Engine& engine);

}  // namespace slipstream::serve
