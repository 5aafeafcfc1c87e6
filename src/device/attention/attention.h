// Attention out of the cache: what ggml's FLASH_ATTN_EXT computes, for keys and values that are
// tiles of codes or plain f16 rows.
//
// Threads: run() is called by every thread of the graph's computation with its own index; they
// share nothing but the task. Errors:  none; plan_attention() says beforehand what it cannot do.
#pragma once

#include <ggml.h>

#include <cstdint>

#include "device/kv_buffer/cache_tensor.h"

namespace slipstream::turbo {

struct AttentionTask {
  const ggml_tensor* op;  // FLASH_ATTN_EXT; its result is written
  CacheTensor* keys;
  CacheTensor* values;
  std::int64_t first_stream;  // the first of the cache's streams that the op looks at
};

// Whether the keys or values that an op reads have the form that libllama's graphs give them, in
// which attention on tiles is possible: [head_dim, cells, heads, streams] of a cache's rows.
[[nodiscard]] bool is_cache_view(const ggml_tensor* view, const CacheTensor& cache);

void run_attention(const AttentionTask& task, int thread_idx, int n_threads);

}  // namespace slipstream::turbo
