#include "device/fit/vector_source.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/format.h"

namespace slipstream::turbo {
namespace {

// The number of nodes that are searched. It covers a norm, its weight and bias, and a concatenation
// of two parts; whatever comes earlier lies behind a matrix product.
constexpr std::size_t kNodesBehindMax = 32;

bool only_moves(const ggml_tensor* node) {
  switch (node->op) {
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE:
    case GGML_OP_CONT: return ggml_nelements(node) == ggml_nelements(node->src[0]);
    default: return false;
  }
}

bool only_scales(const ggml_tensor* node, float& factor) {
  if (node->op != GGML_OP_SCALE) return false;
  float bias = 0;
  std::memcpy(&factor, node->op_params, sizeof(factor));
  std::memcpy(&bias, node->op_params + 1, sizeof(bias));
  return bias == 0;
}

bool has_rope_behind(const ggml_tensor* node) {
  std::vector<const ggml_tensor*> behind = {node};
  for (std::size_t i = 0; i < behind.size() && i < kNodesBehindMax; ++i) {
    const ggml_tensor* tensor = behind[i];
    if (tensor->op == GGML_OP_ROPE) return true;
    if (tensor->op == GGML_OP_MUL_MAT || tensor->op == GGML_OP_FLASH_ATTN_EXT) continue;
    std::ranges::copy_if(tensor->src, std::back_inserter(behind),
                         [](const ggml_tensor* src) { return src != nullptr; });
  }
  return false;
}

}  // namespace

VectorSource find_source(const ggml_tensor* tensor) {
  VectorSource source;
  for (float factor = 1;; tensor = tensor->src[0], factor = 1) {
    if (tensor->op == GGML_OP_ROPE) {
      source.rope = tensor;
      return source;
    }
    if (!only_moves(tensor) && !only_scales(tensor, factor)) break;
    source.factor *= factor;
  }
  if (has_rope_behind(tensor)) {
    source.obstacle = format_text("{} after RoPE", ggml_op_desc(tensor));
  }
  return source;
}

}  // namespace slipstream::turbo
