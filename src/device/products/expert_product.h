// A product with experts (MUL_MAT_ID): each token has chosen some of the experts, and is multiplied
// with the weights of each.
//
// Columns are gathered by expert, so that an expert's weights are expanded once for all tokens that
// chose it. Products that multiply the same columns by the same choices share what was gathered:
// those for the gate and for what it opens.
//
//   ExpertColumns columns(choices, type, memory);  // one thread; memory: n_bytes()
//   columns.gather();                       // one thread, when the choices are known
//   ...                                     // all threads wait for each other
//   columns.pack(thread_idx, n_threads);
//   ...
//   ExpertProductTask task(product, columns);
//   task.multiply();
//
// Threads: as above. Errors: std::bad_alloc, in gather(), pack() and multiply().
#pragma once

#include <ggml.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/products/panel_form.h"

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
};

class ExpertColumns {
 public:
  // One expert and the tokens that chose it.
  struct Group {
    std::int64_t expert;
    std::size_t first;  // of the uses
    std::int64_t n;
    std::size_t first_block;  // of the packed columns
  };
  struct Use {
    std::int64_t token;
    std::int64_t rank;
  };

  // type: that of the weights. packed: n_bytes(), aligned to cache lines.
  ExpertColumns(const ExpertChoices& choices, ggml_type type, std::byte* packed);
  [[nodiscard]] static std::size_t n_bytes(ggml_type type, std::int64_t n_inner,
                                           std::int64_t n_uses, std::int64_t n_experts);

  void gather();
  void pack(int thread_idx, int n_threads) const;

  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  [[nodiscard]] const Use& use(std::size_t idx) const { return uses_[idx]; }
  [[nodiscard]] const std::byte* packed(const Group& group) const;
  [[nodiscard]] const PanelForm& form() const { return form_; }

 private:
  [[nodiscard]] std::int32_t expert_of(std::int64_t token, std::int64_t rank) const;
  void pack_block(const Group& group, std::int64_t first, std::byte* block) const;

  ExpertChoices choices_;
  ggml_type type_;
  std::byte* packed_;
  const PanelForm& form_;
  std::vector<Use> uses_;  // by expert
  std::vector<Group> groups_;
};

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
};

class ExpertProductTask {
 public:
  // REQUIRES: columns were gathered for this form and as many k; they outlive the task.
  ExpertProductTask(const ExpertProduct& product, const ExpertColumns& columns)
      : product_(product), columns_(columns) {}

  // Takes panels of experts until there are none left.
  void multiply();

 private:
  void multiply_panel(const ExpertColumns::Group& group, std::int64_t first_row,
                      std::int64_t n_rows) const;

  ExpertProduct product_;
  const ExpertColumns& columns_;
  std::atomic<std::int64_t> next_panel_ = 0;
};

}  // namespace slipstream::turbo
