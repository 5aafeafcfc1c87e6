#include "engine/forecast/weight_bytes.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/forecast/buffer_types.h"

namespace slipstream {
namespace {

constexpr std::int64_t kAskedTokens = 512;  // as many as libllama asks with

// Bytes of the copy in a buffer of this type; nullopt if the backend makes none.
std::optional<std::uint64_t> copy_bytes(const GgufTensor& tensor, WeightRole use,
                                        std::int64_t n_experts_used, ggml_backend_dev_t cpu,
                                        ggml_backend_buffer_type_t type) {
  const ggml_context_ptr context(
      ggml_init({.mem_size = 4 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  if (!context) return std::nullopt;
  ggml_context* ctx = context.get();
  const auto& ne = tensor.ne;
  ggml_tensor* weight = ggml_new_tensor(ctx, tensor.type, GGML_MAX_DIMS, ne.data());
  const ggml_tensor* product = nullptr;
  if (use == WeightRole::kExpertProduct) {
    ggml_tensor* rows = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, ne[0], n_experts_used, kAskedTokens);
    ggml_tensor* experts = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, n_experts_used, kAskedTokens);
    product = ggml_mul_mat_id(ctx, weight, rows, experts);
  } else {
    ggml_tensor* rows = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, ne[0], kAskedTokens, ne[2], ne[3]);
    product = ggml_mul_mat(ctx, weight, rows);
  }
  const ggml_backend_buffer_ptr empty(ggml_backend_buft_alloc_buffer(type, 0));
  weight->buffer = empty.get();
  if (!ggml_backend_dev_supports_op(cpu, product)) return std::nullopt;
  weight->buffer = nullptr;
  return ggml_backend_buft_get_alloc_size(type, weight);
}

// The part of a file that is used where it is mapped.
struct Extent {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end = 0;
  std::uint64_t used = 0;

  void add(const GgufTensor& tensor) {
    first = std::min(first, tensor.file_offset);
    end = std::max(end, tensor.file_offset + tensor.n_bytes);
    used += tensor.n_bytes;
  }
};

}  // namespace

WeightRole role_of(const GgufTensor& tensor) {
  const std::string_view name = tensor.name;
  const bool is_matrix = tensor.ne[1] > 1 && tensor.ne[3] == 1 && name.ends_with(".weight");
  const bool is_looked_up = name.starts_with("token_embd") || name.starts_with("position_embd") ||
                            name.starts_with("token_types") ||
                            name.starts_with("per_layer_token_embd");
  if (!is_matrix || is_looked_up || name.contains("norm") || name.contains("conv")) {
    return WeightRole::kLookup;
  }
  return name.ends_with("_exps.weight") ? WeightRole::kExpertProduct : WeightRole::kProduct;
}

Result<WeightBytes> weight_bytes(const GgufModel& model, std::int64_t n_experts_used,
                                 const WeightUse& how) {
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr) return fail(Code::kUnsupported, "ggml has no CPU backend loaded");
  const auto types =
      how.are_plain ? std::vector<ggml_backend_buffer_type_t>() : extra_buffer_types(cpu);
  const auto find_copy = [&](const GgufTensor& tensor,
                             WeightRole use) -> std::optional<std::uint64_t> {
    if (use == WeightRole::kLookup) return std::nullopt;
    if (use == WeightRole::kExpertProduct && n_experts_used < 1) return std::nullopt;
    for (ggml_backend_buffer_type_t type : types) {
      const auto bytes = copy_bytes(tensor, use, n_experts_used, cpu, type);
      if (bytes) return bytes;
    }
    return std::nullopt;
  };

  WeightBytes bytes;
  std::vector<Extent> extents(model.files().size());
  for (const GgufTensor& tensor : model.tensors()) {
    const WeightRole use = role_of(tensor);
    if (use == WeightRole::kExpertProduct) {
      bytes.experts += tensor.n_bytes;
      if (how.streams_experts) continue;
    }
    if (const auto copy = find_copy(tensor, use)) {
      bytes.copied += *copy;
    } else {
      extents.at(tensor.file_idx).add(tensor);
    }
  }
  // Without an output matrix, the model uses the embeddings, which also serve as a table: a copy
  // then comes in addition.
  const GgufTensor* embeddings = model.find_tensor("token_embd.weight");
  if (embeddings != nullptr && model.find_tensor("output.weight") == nullptr) {
    bytes.copied += find_copy(*embeddings, WeightRole::kProduct).value_or(0);
  }
  for (const Extent& extent : extents) {
    if (extent.used == 0) continue;
    bytes.mapped += extent.used;
    // Tensors of a damaged file may overlap.
    bytes.idle += extent.end - extent.first - std::min(extent.used, extent.end - extent.first);
  }
  if (how.streams_experts) bytes.idle -= std::min(bytes.idle, bytes.experts);  // never read
  return bytes;
}

}  // namespace slipstream
