// What the arms of eviction found, for programs (evictions.json) and for people (evictions.md with a
// picture for each depth).
//
// Threads: pure functions. Errors: write_report(): kIo.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/quality/arm.h"
#include "bench/report/chart.h"
#include "trial.h"

namespace slipstream::evictions {

using Json = nlohmann::ordered_json;

// A scheme of the KV cache that evicts nothing, on the same questions (slipstream eval).
struct SchemeAnswers {
  std::string kv;
  int n_attended = 0;  // attend=N; 0: all tokens are read
  std::vector<quality::NeedleAnswer> answers;
};

// Makes evictions.json:
//
//   format "slipstream-evictions", version 1, created (UTC), model, llama_cpp, text, n_texts
//   cells   [depth, arm, n_kept (tokens; 0: all), is_rescued, n, n_right,
//            n_found (with rescue: the name was in what came back), n_recalled (tokens, mean),
//            by_position [position, n, n_right]]
//           arms: those of Arm::name(), and the schemes of `slipstream eval`
[[nodiscard]] Json make_report(std::span<const Answered> answered,
                               std::span<const SchemeAnswers> schemes, const TrialOptions& options);

[[nodiscard]] std::string report_as_markdown(const Json& report);
[[nodiscard]] std::vector<bench::Picture> report_pictures(const Json& report);
[[nodiscard]] Result<void> write_report(const Json& report, const std::filesystem::path& folder);

}  // namespace slipstream::evictions
