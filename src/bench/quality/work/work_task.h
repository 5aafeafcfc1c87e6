// A piece of work that people give to models, and how an answer to it is judged. The kinds:
//
//   arithmetic   a chain of sums, differences and products (arithmetic.h)
//   facts        facts in a text that lead to each other (facts.h)
//   json         fields of a text as a JSON object of a given schema (extraction.h)
//   code         the beginning of a function, completed and run in a sandbox (code.h)
//
// The tasks are the same for every scheme. Every second one states its facts within text: a
// compressed cache keeps the first tokens and the last ones in 8 bits, and a short task would be
// read from those alone.
//
// Threads: plain data; `judge` may be called by one thread at a time. Errors: none.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/quality/needles.h"

namespace slipstream::quality {

inline constexpr std::array<std::string_view, 4> kWorkKinds = {"arithmetic", "facts", "json",
                                                               "code"};

// Text before and after what a task states. What is kept in 8 bits are the first 64 cells and the
// last 64 to 128.
inline constexpr std::size_t kTokensBefore = 96;
inline constexpr std::size_t kTokensAfter = 256;
// The most tokens that a task takes with its answer. Tokenizers differ: this is ample.
inline constexpr int kWorkTokensMax = 1024;

struct Mark {
  bool valid = false;  // the answer has the form that was asked for
  bool right = false;
};

struct WorkTask {
  std::string message;                      // for a chat model
  std::string beginning;                    // for any other model: a text to continue
  std::vector<std::string> stops = {"\n"};  // where a continuation ends
  std::string right;                        // the right answer, for the report
  int n_tokens_max = 32;                    // of the answer
  std::function<Mark(const std::string& answer)> judge;
};

// What task `idx` states: alone, or for odd ones within text.
inline std::string within_text(const std::string& stated, std::size_t idx, const Hay& hay) {
  if (idx % 2 == 0) return stated + "\n";
  const std::size_t place = idx * 4 * kTokensAfter;
  return hay(place, kTokensBefore) + "\n\n" + stated + "\n\n" +
         hay(place + kTokensBefore, kTokensAfter) + "\n\n";
}

}  // namespace slipstream::quality
