// TextRanker: what says how well each of a few texts answers a query, having read both together. As
// TextEmbedder, an engine behind an interface.
//
// Threads: thread-safe. Errors: rank(): whatever the engine says.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream {

class TextRanker {
 public:
  TextRanker() = default;
  virtual ~TextRanker() = default;
  TextRanker(const TextRanker&) = delete;
  TextRanker& operator=(const TextRanker&) = delete;

  // A number for each text, in their order: the more, the better.
  [[nodiscard]] virtual Result<std::vector<float>> rank(std::string_view query,
                                                        std::span<const std::string> texts) = 0;
};

}  // namespace slipstream
