// A trial: names planted in texts and asked for (bench/quality/needles.h), after a policy has evicted a
// part of each text from the cache. With rescue, what the product's search finds in the text comes
// back as text before the question, as for a conversation whose turns left (server/recall).
//
// The policies do not know the questions: the text is read, then cut, then asked.
//
// Threads: as WatchedModel. Errors: those of WatchedModel and of the model's chat template.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/quality/needles.h"
#include "policy.h"

namespace slipstream::evictions {

// What stays of a text before it is asked.
struct Arm {
  enum class Kind {
    kAll,     // everything
    kPolicy,  // the cells that a policy keeps
    kLeave,   // the end of the text, computed anew without what stood before it, as in the product
  };
  Kind kind = Kind::kAll;
  Policy policy = {};
  Unit unit = {};

  [[nodiscard]] std::string name() const;
  bool operator==(const Arm&) const = default;
};

struct TrialOptions {
  std::string model = {};
  std::string text = {};  // a file; empty: the text of eval
  std::vector<int> depths = {};
  std::vector<int> kept_tokens = {};  // budgets; those of a depth's size or more are left out
  std::vector<Policy> policies = {};
  std::vector<bool> rescued = {false, true};  // without rescue, with it
  int n_texts = 6;
  int n_threads = 0;
};

struct Answered {
  int depth = 0;
  double position = 0;
  Arm arm = {};
  int n_kept = 0;  // tokens; 0: all
  bool is_rescued = false;
  bool is_right = false;
  bool is_found = false;  // the name is in what came back
  int n_recalled = 0;     // tokens that came back
};

inline const std::vector<std::string> kTrialKinds = {"several", "paraphrased"};

[[nodiscard]] Result<std::vector<Answered>> run_trial(
    const TrialOptions& options, const std::function<void(double done)>& on_progress);

}  // namespace slipstream::evictions
