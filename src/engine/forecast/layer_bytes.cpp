#include "engine/forecast/layer_bytes.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace slipstream {
namespace {

// "blk.12.attn_k.weight" is of layer 12.
std::optional<std::size_t> layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::size_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return layer;
}

}  // namespace

Result<std::vector<std::uint64_t>> layer_bytes(const GgufModel& model,
                                               const ModelGeometry& geometry,
                                               const KvScheme& scheme, const ContextShape& shape) {
  if (geometry.n_recurrent_layers > 0) {
    return fail(Code::kUnsupported,
                "a model with recurrent layers is not dealt over machines: leave out --rpc");
  }
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(geometry.n_layers));
  for (const GgufTensor& tensor : model.tensors()) {
    if (const auto layer = layer_of(tensor.name); layer && *layer < bytes.size()) {
      bytes[*layer] += tensor.n_bytes;
    }
  }
  for (const AttentionLayer& attention : geometry.attention) {
    ModelGeometry alone = geometry;
    alone.attention = {attention};
    bytes.at(static_cast<std::size_t>(attention.layer)) += cache_bytes(alone, scheme, shape);
  }
  return bytes;
}

}  // namespace slipstream
