// The draft model of --draft-model: planned before the model that it helps, since it has its own
// memory, and loaded beside it. Without one, the model's own layer for it guesses (--mtp).
//
// Threads: thread-safe. Errors: those of find_model.h, kv_choice.h and engine/model/model.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/kv_choice.h"
#include "engine/model/model.h"

namespace slipstream {

struct DraftWish {
  std::string model = {};  // as MODEL; empty: none
  std::string kv = "auto";
  std::string mtp = "off";  // or "on", "auto"
};

struct DraftPlan {
  std::filesystem::path path;
  KvPlan kv;
  int n_sequences;
};

// n_context: tokens of all sequences together. Nothing without a wish. Reads the header only.
[[nodiscard]] Result<std::optional<DraftPlan>> plan_draft(const DraftWish& wish, int n_context,
                                                          int n_sequences,
                                                          std::uint64_t available_bytes);
// What it takes of the memory; 0 without a plan.
[[nodiscard]] std::uint64_t bytes_of(const std::optional<DraftPlan>& plan);

// on_progress: as in ModelOptions. Nothing without a plan.
[[nodiscard]] Result<std::optional<Model>> load_draft(const std::optional<DraftPlan>& plan,
                                                      int n_threads,
                                                      std::function<bool(float)> on_progress = {});

// Whether the layer of this model that predicts a token further is loaded: where it can be used and
// something speculates. With "auto" the log says why it is not, with "on" an error does.
[[nodiscard]] Result<bool> plan_mtp(const DraftWish& wish, bool speculates,
                                    const std::filesystem::path& model, bool is_spread);

}  // namespace slipstream
