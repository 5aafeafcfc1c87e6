#include "device/graph/binding.h"

#include <utility>

#include "base/format.h"
#include "device/attention/attention.h"
#include "device/fit/profile.h"
#include "device/kv_buffer/kv_buffer.h"
#include "device/layer_ranges.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

// Whether the codes are those of vectors of the view's head size; true for a plain cache.
bool are_codes_of(CacheTensor& cache, const ggml_tensor* view) {
  return cache.compressed() == nullptr || cache.compressed()->shape().head_dim == view->ne[0];
}

// The reason why attention on tiles cannot compute this op; empty if it can.
std::string obstacle(const ggml_tensor* op, const CacheTensor& keys, const CacheTensor& values) {
  if (&keys == &values) return "keys and values share one tensor (latent attention)";
  for (const ggml_tensor* view : {op->src[1], op->src[2]}) {
    if (view->type != GGML_TYPE_F16) {
      return format_text("the cache is {}, not f16", ggml_type_name(view->type));
    }
    if (!is_code_head(view->ne[0])) {
      return format_text("head size {} is not a multiple of 16", view->ne[0]);
    }
  }
  if (!is_cache_view(op->src[1], keys) || !is_cache_view(op->src[2], values)) {
    return "attention reads the cache in an order we do not know";
  }
  const ggml_tensor* q = op->src[0];
  const ggml_tensor* k = op->src[1];
  const ggml_tensor* v = op->src[2];
  if (k->ne[1] != v->ne[1] || k->ne[2] != v->ne[2] || k->ne[3] != v->ne[3] ||
      cache_offset(k) / keys.stream_bytes() != cache_offset(v) / values.stream_bytes()) {
    return "attention reads keys and values of different cells";
  }
  if (q->ne[2] % k->ne[2] != 0 || q->ne[3] != k->ne[3]) {
    return "queries are not divided among heads and streams as the cache is";
  }
  if (q->type != GGML_TYPE_F32 || q->nb[0] != sizeof(float)) {
    return "queries are not f32";
  }
  if (q->ne[2] / k->ne[2] > kGroupMax) {
    return format_text("more than {} query heads share a KV head", kGroupMax);
  }
  if (op->src[3] != nullptr && op->src[3]->type != GGML_TYPE_F16) return "the mask is not f16";
  return "";
}

Result<void> bind(CacheTensor& cache, int bits, int head_dim, std::shared_ptr<ColdFile> file,
                  std::span<const HeadBasis> heads = {}, std::int64_t attend = 0) {
  if (cache.is_bound()) return {};
  return bits == 0 ? cache.bind_plain()
                   : cache.bind_compressed(bits, head_dim, heads, attend, std::move(file));
}

}  // namespace

Result<void> bind_attention(const ggml_tensor* op) {
  CacheTensor* keys = find_cache(op->src[1]);
  CacheTensor* values = find_cache(op->src[2]);
  if (keys == nullptr || values == nullptr) return {};
  if (keys->is_bound() && values->is_bound()) return {};
  const KvSettings& settings = settings_of(op->src[1]);
  Bits bits = settings.scheme.bits_of_layer(keys->layer());
  const auto key_dim = static_cast<int>(op->src[1]->ne[0]);
  const KeyBases* bases = nullptr;
  if (const std::string reason = obstacle(op, *keys, *values); !reason.empty()) {
    if (bits != Bits{}) keys->set_note("stays uncompressed: " + reason);
    bits = {};
  } else if (settings.keys != nullptr && is_fittable(bits.keys, key_dim)) {
    bases = settings.keys->bases_of(op, keys->layer());
  }
  const std::span heads = bases == nullptr ? std::span<const HeadBasis>() : std::span(*bases);
  std::shared_ptr<ColdFile> file;
  if (bits.keys != 0 && is_limited(settings.scheme, keys->layer())) {
    Result<std::shared_ptr<ColdFile>> found = cold_file_of(op->src[1]);
    if (!found) return std::unexpected(std::move(found.error()));
    file = std::move(*found);
  }
  Result<void> bound = bind(*keys, bits.keys, key_dim, file, heads, settings.scheme.attend());
  if (!bound) return bound;
  if (bits != Bits{}) {
    const CompressedCache* codes = keys->compressed();
    const bool is_limited = codes != nullptr && codes->signs() != nullptr;
    keys->set_note(format_text(
        "{}-bit {}keys, {}-bit values{}", bits.keys == 0 ? 16 : bits.keys,
        codes != nullptr && codes->fit() != nullptr ? "fitted " : "",
        bits.values == 0 ? 16 : bits.values,
        is_limited ? format_text("; a query reads {} tokens at most", codes->shape().attend) : ""));
  }
  return bind(*values, bits.values, static_cast<int>(op->src[2]->ne[0]), std::move(file));
}

bool suits_tiles(const ggml_tensor* op) {
  CacheTensor* keys = find_cache(op->src[1]);
  CacheTensor* values = find_cache(op->src[2]);
  return keys != nullptr && values != nullptr && obstacle(op, *keys, *values).empty() &&
         are_codes_of(*keys, op->src[1]) && are_codes_of(*values, op->src[2]);
}

Result<void> bind_rest(const ggml_tensor* op) {
  const auto bind_one = [](const ggml_tensor* tensor) -> Result<void> {
    CacheTensor* cache = find_cache(tensor);
    if (cache == nullptr || cache->is_bound()) return {};
    const Bits bits = settings_of(tensor).scheme.bits_of_layer(cache->layer());
    if (bits != Bits{}) cache->set_note("stays uncompressed: flash attention is off");
    return cache->bind_plain();
  };
  if (Result<void> bound = bind_one(op); !bound) return bound;
  for (const ggml_tensor* src : op->src) {
    if (src == nullptr) continue;
    if (Result<void> bound = bind_one(src); !bound) return bound;
  }
  return {};
}

void BindingNotes::take(const ggml_tensor* op) {
  const auto take_one = [this](const ggml_tensor* tensor) {
    CacheTensor* cache = find_cache(tensor);
    if (cache == nullptr) return;
    if (std::string note = cache->take_note(); !note.empty()) {
      layers_[std::move(note)].insert(cache->layer());
    }
  };
  take_one(op);
  for (const ggml_tensor* src : op->src) {
    if (src != nullptr) take_one(src);
  }
}

void BindingNotes::log() const {
  for (const auto& [note, layers] : layers_) {
    log_line(GGML_LOG_LEVEL_INFO,
             format_text("KV cache of layer {}: {}", format_layers(layers), note));
  }
}

}  // namespace slipstream::turbo
