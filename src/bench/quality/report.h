// quality.json: everything that the suite has found, for programs, and reports of it for people.
//
// Threads: pure functions. Errors: write_report(): those of the files.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/quality/suite.h"
#include "bench/report/quality_chart.h"

namespace slipstream::quality {

// The software and the machine that the suite ran with.
struct Surroundings {
  std::string created = {};  // 2026-11-16T02:00:00Z
  std::string slipstream = {};
  std::string llama_cpp = {};
  std::string ggml = {};
  std::string cpu = {};
  int n_cpus = 0;
  std::string model_fingerprint = {};
  std::uint64_t model_bytes = 0;
};

// Makes quality.json:
//
//   format "slipstream-quality", version 1, created (UTC), slipstream, llama_cpp, ggml, cpu, n_cpus
//   model       file, bytes, fingerprint
//   options     depths, n_chunks, text, ... as they were used
//   thresholds  fine_up_to, broken_from: kl_mean, same_top
//   schemes     one for each KV scheme, f16 first; a trial that was not made is null:
//     kv, bits_per_value (heads of 128), error (null: none), verdict (null for f16), reason,
//     seconds, notes
//     divergence  [depth, n_chunks, perplexity,
//                 divergence: members of DivergenceFigures (null for f16), in natural logarithms;
//                 shares and probabilities from 0 to 1;
//                 decoded: the same of the tokens that were read one at a time; null: none were;
//                 rows: members of RowFigures (cache_rows.h), at the first depth]
//     needles     n, n_right, n_same (same as f16's, word for word),
//                 grid [kind, depth, position, n, n_right, n_same],
//                 answers: members of NeedleAnswer (arm.h)
//     tool_calls  n, n_calls, n_valid, n_as_expected, n_same, answers
//     schemas     n, n_valid, answers
//     work        for each kind (work_task.h): n, n_valid (of the form that was asked for), n_right,
//                 n_same, n_base_right (f16's), n_kept (right where f16 is right),
//                 answers [expected, answer, valid, right]
//     drift       n_tokens, first_differences (n_tokens if none differs), median
[[nodiscard]] Json make_report(std::span<const SchemeResult> schemes, const ArmOptions& options,
                               const Surroundings& surroundings);

// Tables for a terminal, and the same as Markdown, which shows the pictures from files beside it.
[[nodiscard]] std::string report_for_terminal(const Json& report);
[[nodiscard]] std::string report_as_markdown(const Json& report);
// The results of each scheme except f16 at the greatest depth. Throws Json::exception for JSON
// of another kind.
[[nodiscard]] std::vector<bench::QualityPoint> quality_points(const Json& report);
[[nodiscard]] std::vector<bench::Picture> report_pictures(const Json& report);
// One figure per line: kv,measure,kind,depth,position,value,error.
[[nodiscard]] std::string report_as_csv(const Json& report);

// Writes quality.json, quality.csv, quality.md and its pictures into a folder, which is created.
[[nodiscard]] Result<void> write_report(const Json& report, const std::filesystem::path& folder);

}  // namespace slipstream::quality
