// ExpertGroups: the tokens that chose each expert.
//
// Threads: gather() by one thread; then immutable. Errors: std::bad_alloc; std::out_of_range if a
// router chose an expert that does not exist.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slipstream::turbo {

// Which token is multiplied with which expert, and where its column is.
struct ExpertChoices {
  const std::byte* experts;  // i32 [token][rank]: the expert that a token chose
  std::size_t token_bytes;   // from token to token
  std::int64_t n_ranks;
  std::int64_t n_tokens;
  std::int64_t n_experts;
  const float* columns;  // [token][rank]
  std::size_t column_token_stride;
  std::size_t column_rank_stride;  // 0: all experts of a token multiply the same column
  std::int64_t n_inner;

  [[nodiscard]] const float* column(std::int64_t token, std::int64_t rank) const {
    return columns + static_cast<std::size_t>(token) * column_token_stride +
           static_cast<std::size_t>(rank) * column_rank_stride;
  }
};

class ExpertGroups {
 public:
  struct Use {
    std::int64_t token;
    std::int64_t rank;
  };
  // One expert and the tokens that chose it.
  struct Group {
    std::int64_t expert;
    std::size_t first;  // of the uses
    std::size_t n;
  };

  void gather(const ExpertChoices& choices);

  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  // By expert.
  [[nodiscard]] const std::vector<Use>& uses() const { return uses_; }

 private:
  std::vector<Use> uses_;
  std::vector<Group> groups_;
};

// Weights of experts, and where the result of a token and an expert goes.
struct ExpertProduct {
  ggml_type type;
  const std::byte* weights;  // n_rows of n_inner for each expert
  std::size_t row_bytes;
  std::size_t expert_bytes;  // from expert to expert
  std::int64_t n_rows;
  std::int64_t n_inner;
  float* result;  // [token][rank][row]
  std::size_t result_token_stride;
  std::size_t result_rank_stride;

  [[nodiscard]] const std::byte* rows(std::int64_t expert, std::int64_t first_row) const {
    return weights + static_cast<std::size_t>(expert) * expert_bytes +
           static_cast<std::size_t>(first_row) * row_bytes;
  }
  [[nodiscard]] float* result_of(const ExpertGroups::Use& use) const {
    return result + static_cast<std::size_t>(use.token) * result_token_stride +
           static_cast<std::size_t>(use.rank) * result_rank_stride;
  }
};

}  // namespace slipstream::turbo
