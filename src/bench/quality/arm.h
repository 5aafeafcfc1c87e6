// An arm: everything that is measured for one KV scheme. Each arm has its own process, because a
// process can have only one compressed scheme. The arm of f16 runs first and leaves its
// log-probabilities in a folder for the others.
//
// Threads: run_arm() by one thread per process.
// Errors:  those of Model::load() and the trials; kInvalidArgument for depths that exceed the model
//          or the text.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/quality/cache_rows.h"
#include "bench/quality/divergence.h"
#include "bench/quality/tool_trial.h"
#include "bench/quality/work/work_trial.h"

namespace slipstream::quality {

struct ArmOptions {
  std::string model = {};
  std::string kv = {};
  std::string plugin = {};          // for turbo... schemes
  std::string key_profile = {};     // fitted to the model's keys; empty: none
  std::string text = {};            // a file; empty: plain_text()
  std::string base_directory = {};  // for log-probabilities
  std::vector<int> depths = {};     // empty: kDefaultDepths that the model and the text allow
  int n_chunks = 8;                 // maximum at each depth
  // How many of a chunk's tokens are computed one at a time, at its end, as those of an answer are;
  // at most half of those that count. A limit on what a query reads (attend=N) shows in these.
  int n_decoded = 0;
  int n_needle_texts = 1;
  std::vector<std::string> needle_kinds = {};  // of kNeedleKinds
  int n_tool_calls = 8;
  int n_drift_prompts = 6;
  int n_drift_tokens = 128;
  int n_work_tasks = 12;  // of each kind
  int n_threads = 0;
  bool has_products = false;  // ModelOptions; needs the plugin
  // The trials to run: of kTasks.
  std::vector<std::string> tasks = {};
};

// ArmOptions::n_decoded if schemes limit what a query reads.
inline constexpr int kDecodedTokens = 128;
inline constexpr std::array<int, 2> kDefaultDepths = {512, 2048};
inline constexpr std::array<std::string_view, 8> kTasks = {
    "divergence", "needles", "tools", "drift", "arithmetic", "facts", "json", "code"};
// All but code: what a model writes is run only if that was asked for.
inline constexpr std::array<std::string_view, 7> kDefaultTasks = {
    "divergence", "needles", "tools", "drift", "arithmetic", "facts", "json"};

struct DepthFigures {
  int depth = 0;
  int n_chunks = 0;
  double perplexity = 0;
  DivergenceFigures divergence = {};  // all zero for f16
  DivergenceFigures decoded = {};  // of tokens computed one at a time; all zero if there are none
  RowFigures rows = {};            // at the first depth
};

struct NeedleAnswer {
  std::string kind = {};
  int depth = 0;
  double position = 0;
  std::string name = {};
  std::string answer = {};
  bool right = false;
  int n_prompt = 0;  // tokens of the text and the question
  int n_cached = 0;  // of those, what an earlier question had left in the cache
};

struct ArmResult {
  std::vector<int> depths;  // the depths that were measured
  std::vector<DepthFigures> divergence;
  std::vector<NeedleAnswer> needles;
  std::vector<ToolCallOutcome> tool_calls;
  std::vector<SchemaOutcome> schemas;
  std::vector<std::vector<Token>> continuations;
  std::vector<WorkAnswer> work;    // kind by kind
  std::vector<std::string> notes;  // what was left out, and why
  double seconds = 0;
};

// The progress from 0 to 1, and the current work.
using OnArmProgress = std::function<void(double done, std::string_view what)>;

[[nodiscard]] Result<ArmResult> run_arm(const ArmOptions& options,
                                        const OnArmProgress& on_progress);

}  // namespace slipstream::quality
