// A product with experts (MUL_MAT_ID) and many tokens: each token has chosen some of the experts, and
// is multiplied with the weights of each.
//
// Columns are gathered by expert, so that an expert's weights are expanded once for all tokens that
// chose it. Products that multiply the same columns by the same choices share what was gathered:
// those for the gate and for what it opens.
//
//   ExpertColumns columns(choices, type, memory);  // one thread; memory: n_bytes()
//   columns.gather();                              // one thread, when the choices are known
//   ...                                            // all threads wait for each other
//   columns.pack(thread_idx, n_threads);
//   ...
//   ExpertProductTask task(product, columns);
//   task.multiply();
//
// Threads: as above. Errors: those of expert_groups.h, in gather(); std::bad_alloc, in the others.
#pragma once

#include <ggml.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/products/expert_groups.h"
#include "device/products/panel_form.h"

namespace slipstream::turbo {

class ExpertColumns {
 public:
  // type: that of the weights. packed: n_bytes(), aligned to cache lines.
  ExpertColumns(const ExpertChoices& choices, ggml_type type, std::byte* packed);
  [[nodiscard]] static std::size_t n_bytes(ggml_type type, std::int64_t n_inner,
                                           std::int64_t n_uses, std::int64_t n_experts);

  void gather();
  void pack(int thread_idx, int n_threads) const;

  [[nodiscard]] const ExpertGroups& groups() const { return groups_; }
  // The packed columns of a group.
  [[nodiscard]] const std::byte* packed(std::size_t group) const;
  [[nodiscard]] const PanelForm& form() const { return form_; }

 private:
  void pack_block(const ExpertGroups::Group& group, std::int64_t first, std::byte* block) const;

  ExpertChoices choices_;
  ggml_type type_;
  std::byte* packed_;
  const PanelForm& form_;
  ExpertGroups groups_;
  std::vector<std::size_t> first_blocks_;  // by group
};

class ExpertProductTask {
 public:
  // REQUIRES: columns are packed for this type and as many k; they outlive the task.
  ExpertProductTask(const ExpertProduct& product, const ExpertColumns& columns)
      : product_(product), columns_(columns) {}

  // Takes panels of experts until there are none left.
  void multiply();

 private:
  void multiply_panel(std::size_t group_idx, std::int64_t first_row, std::int64_t n_rows) const;

  ExpertProduct product_;
  const ExpertColumns& columns_;
  std::atomic<std::int64_t> next_panel_ = 0;
};

}  // namespace slipstream::turbo
