#include "device/fit/layer_print.h"

#include <ggml-backend.h>

#include <algorithm>
#include <boost/hash2/sha2.hpp>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/format.h"

namespace slipstream::turbo {
namespace {

// How many ancestors are searched for the layer's own weights. Behind them lie the weights of
// earlier layers.
constexpr std::size_t kAncestorsMax = 64;

bool is_plain_weight(const ggml_tensor* tensor, std::string_view layer_name) {
  return tensor->op == GGML_OP_NONE && tensor->type == GGML_TYPE_F32 &&
         tensor->view_src == nullptr && ggml_nelements(tensor) == tensor->ne[0] &&
         ggml_is_contiguous(tensor) &&
         std::string_view(ggml_get_name(tensor)).starts_with(layer_name) &&
         tensor->data != nullptr && tensor->buffer != nullptr &&
         ggml_backend_buffer_get_size(tensor->buffer) > 0 &&
         ggml_backend_buffer_is_host(tensor->buffer);
}

}  // namespace

std::optional<LayerPrint> print_of(const ggml_tensor* attention, int layer) {
  const std::string layer_name = format_text("blk.{}.", layer);
  const ggml_tensor* weight = nullptr;  // the first by name, whatever the order of the nodes
  std::vector<const ggml_tensor*> ancestors = {attention->src[0]};
  for (std::size_t i = 0; i < ancestors.size() && i < kAncestorsMax; ++i) {
    const ggml_tensor* tensor = ancestors[i];
    if (is_plain_weight(tensor, layer_name) &&
        (weight == nullptr || std::strcmp(tensor->name, weight->name) < 0)) {
      weight = tensor;
    }
    for (const ggml_tensor* src : tensor->src) {
      if (src != nullptr && std::ranges::find(ancestors, src) == ancestors.end()) {
        ancestors.push_back(src);
      }
    }
  }
  if (weight == nullptr) return std::nullopt;
  boost::hash2::sha2_256 hash;
  hash.update(weight->data, ggml_nbytes(weight));
  const auto digest = hash.result();
  LayerPrint print;
  static_assert(sizeof(digest) == sizeof(print));
  std::memcpy(print.data(), digest.data(), print.size());
  return print;
}

std::string short_text(const LayerPrint& print) {
  std::string text;
  for (std::size_t i = 0; i < 4; ++i) {
    text += format_text("{:02x}", std::to_integer<unsigned>(print[i]));
  }
  return text;
}

}  // namespace slipstream::turbo
