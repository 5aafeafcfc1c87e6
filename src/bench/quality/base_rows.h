// BaseRows: the log-probabilities of the f16 run in a file, written once and read for every scheme.
//
//   u64 magic | u64 n_vocab | u64 hash of the tokens | rows (log_probs.h), in the order they came
//
// Threads: thread-compatible.
// Errors:  those of the file; kCorrupt for a file of other tokens or of another size.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/mapping.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "bench/quality/log_probs.h"
#include "bench/quality/scored_text.h"

namespace slipstream::quality {

[[nodiscard]] std::uint64_t hash_of(std::span<const Tokens> chunks);

class BaseRowsWriter {
 public:
  [[nodiscard]] static Result<BaseRowsWriter> create(const std::string& path, std::size_t n_vocab,
                                                     std::uint64_t tokens_hash);
  // Returns the row as it will be read again. It is valid until the next one is added.
  [[nodiscard]] Result<LogProbsView> add(std::span<const float> logits);

 private:
  BaseRowsWriter(UniqueFd file, std::size_t n_vocab)
      : file_(std::move(file)), row_(row_codes(n_vocab)) {}

  UniqueFd file_;
  std::vector<std::uint16_t> row_;
};

class BaseRows {
 public:
  [[nodiscard]] static Result<BaseRows> open(const std::string& path, std::size_t n_vocab,
                                             std::uint64_t tokens_hash, std::size_t n_rows);
  [[nodiscard]] LogProbsView row(std::size_t idx) const;

 private:
  BaseRows(Mapping file, std::size_t n_vocab) : file_(std::move(file)), n_vocab_(n_vocab) {}

  Mapping file_;
  std::size_t n_vocab_;
};

}  // namespace slipstream::quality
