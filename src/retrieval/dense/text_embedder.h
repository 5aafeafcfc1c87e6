// TextEmbedder: what turns texts into vectors, texts of like meaning into vectors of like
// direction. The index knows no engine: who has one gives it to the index as this.
//
// Threads: thread-safe.
// Errors:  embed(): whatever the engine says; kCancelled.
#pragma once

#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"

namespace slipstream {

class TextEmbedder {
 public:
  TextEmbedder() = default;
  virtual ~TextEmbedder() = default;
  TextEmbedder(const TextEmbedder&) = delete;
  TextEmbedder& operator=(const TextEmbedder&) = delete;

  // Only vectors of one id can be compared.
  [[nodiscard]] virtual const std::string& id() const = 0;
  [[nodiscard]] virtual int n_dimensions() const = 0;
  // A vector of n_dimensions() for each text, in their order. Of a long text the beginning counts.
  [[nodiscard]] virtual Result<std::vector<std::vector<float>>> embed(
      std::span<const std::string> texts, const std::stop_token& stop) = 0;
};

}  // namespace slipstream
