// A product with experts (MUL_MAT_ID) and few tokens, as dot products (few_columns.h).
//
//   ExpertDotColumns columns(choices, memory);  // one thread; memory: n_bytes()
//   columns.pack(thread_idx, n_threads);
//   ...                                         // all threads wait for each other
//   ExpertDotTask task(product, columns);
//   task.multiply();
//
// Threads: as above. Errors: those of expert_groups.h, in pack().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/products/dot_kernels.h"
#include "device/products/expert_groups.h"

namespace slipstream::turbo {

class ExpertDotColumns {
 public:
  // packed: n_bytes(), aligned to cache lines.
  ExpertDotColumns(const ExpertChoices& choices, std::byte* packed);
  [[nodiscard]] static std::size_t n_bytes(std::int64_t n_inner, std::int64_t n_uses);

  void pack(int thread_idx, int n_threads);

  [[nodiscard]] const ExpertGroups& groups() const { return groups_; }
  [[nodiscard]] const DotColumn* column(const ExpertGroups::Use& use) const;

 private:
  ExpertChoices choices_;
  DotColumn* packed_;  // [token][rank][piece of k]
  std::int64_t n_ranks_;
  ExpertGroups groups_;
};

class ExpertDotTask {
 public:
  // REQUIRES: can_dot(product.type); columns have as many k and outlive the task.
  ExpertDotTask(const ExpertProduct& product, const ExpertDotColumns& columns)
      : product_(product), columns_(columns) {}

  // Takes pieces of experts' rows until there are none left.
  void multiply();

 private:
  ExpertProduct product_;
  const ExpertDotColumns& columns_;
  std::atomic<std::int64_t> next_piece_ = 0;
};

}  // namespace slipstream::turbo
