#include "device/kv_buffer/kv_buffer.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "device/guard.h"
#include "device/kv_buffer/packed_rows.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

constexpr std::size_t kAlignment = 64;

KvBuffer& context_of(ggml_backend_buffer_t buffer) {
  return *static_cast<KvBuffer*>(buffer->context);
}

KvBufferType& context_of(ggml_backend_buffer_type_t type) {
  return *static_cast<KvBufferType*>(type->context);
}

// How large a cache tensor will be. Of its codes, those that may lie in a file are counted apart.
struct ExpectedBytes {
  std::size_t in_memory;
  std::size_t cold = 0;
};

// The head size is not known yet. The largest of these head sizes that divides the row is assumed:
// 128 is the most common one and has the fewest scales per number.
ExpectedBytes expected_bytes(const KvSettings& settings, const ggml_tensor* tensor) {
  const Scheme& scheme = settings.scheme;
  const CacheTensor cache(tensor);
  const Bits bits = scheme.bits_of_layer(cache.layer());
  const int width = cache.side() == Side::kKey ? bits.keys : bits.values;
  constexpr std::int64_t kLatentChannels = 576;  // latent attention (MLA) is not compressed
  if (width == 0 || tensor->type != GGML_TYPE_F16 || tensor->ne[0] == kLatentChannels) {
    return {.in_memory = ggml_nbytes(tensor)};
  }
  for (const int head_dim : {128, 96, 80, 64}) {
    if (tensor->ne[0] % head_dim != 0) continue;
    const auto n_heads = static_cast<std::size_t>(tensor->ne[0] / head_dim * tensor->ne[2]);
    const std::size_t all =
        head_bytes(cache.side(), width, head_dim, tensor->ne[1], scheme.attend() != 0);
    const bool is_cold = settings.cold != nullptr && is_limited(scheme, cache.layer());
    const std::size_t codes = is_cold ? code_bytes(width, head_dim, tensor->ne[1]) : 0;
    return {.in_memory = (all - codes) * n_heads, .cold = codes * n_heads};
  }
  return {.in_memory = ggml_nbytes(tensor)};
}

// Where a tensor lies among the rows of a cache.
struct CachePlace {
  CacheTensor* cache = nullptr;  // null: in none
  std::size_t offset = 0;        // in bytes of the tensor's own type
};

// A view that comes over RPC by itself, not in a graph, does not say what it is a view of, and has a
// name of its own. Its address still says it: whoever sent it made room for all rows of each cache.
CachePlace place_of(const ggml_tensor* tensor) {
  if (CacheTensor* cache = find_cache(tensor)) return {cache, cache_offset(tensor)};
  if (tensor->view_src != nullptr || CacheTensor::is_cache(tensor)) return {};
  const auto& caches = context_of(tensor->buffer).caches;
  const auto after = caches.upper_bound(tensor->data);
  if (after == caches.begin()) return {};
  const auto& [data, cache] = *std::prev(after);
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(tensor->data) -
                                               static_cast<const char*>(data));
  const std::size_t all = cache->row_bytes() * static_cast<std::size_t>(cache->n_rows());
  if (offset > all || ggml_nbytes(tensor) > all - offset) return {};
  return {cache.get(), offset};
}

Result<std::shared_ptr<ColdFile>> file_of(KvBuffer& buffer) {
  if (buffer.cold_file != nullptr || buffer.settings.cold == nullptr) return buffer.cold_file;
  Result<std::shared_ptr<ColdFile>> file = ColdFile::create(buffer.settings.cold);
  if (file) buffer.cold_file = *file;
  return file;
}

// --- the buffer's functions, called by ggml

void free_buffer(ggml_backend_buffer_t buffer) { delete &context_of(buffer); }

void* get_base(ggml_backend_buffer_t buffer) { return context_of(buffer).memory.bytes().data(); }

// ggml's functions for tensors return nothing, so a failure can only be logged, and a program that
// exchanges packed rows learns of it at the end. After a failure the tensor is unbound or unknown,
// and both read as zeroes: no rows of another sequence take the place of those that were lost.
// Writing to a compressed cache does not fail, because it needs no memory (cache_tensor.h).
template <class Work>
bool is_done_in_cache(const Work& work) noexcept {
  bool is_well = true;
  const bool done = is_done([&] {
    const Result<void> result = work();
    is_well = result.has_value();
    if (!is_well) log_line(GGML_LOG_LEVEL_ERROR, result.error().message);
  });
  if (!done || !is_well) fail_packed_rows();
  return done && is_well;
}

// Rows that could not be written are not those that the program goes on with.
Result<void> or_lost(CacheTensor& cache, Result<void> written) {
  if (!written && cache.compressed() != nullptr) cache.compressed()->lose(written.error().message);
  return written;
}

void memset_tensor(ggml_backend_buffer_t /*buffer*/, ggml_tensor* tensor, uint8_t value,
                   size_t offset, size_t size) noexcept {
  (void)is_done_in_cache([&]() -> Result<void> {
    if (const CachePlace place = place_of(tensor); place.cache != nullptr) {
      return or_lost(*place.cache, place.cache->memset(value, place.offset + offset, size));
    }
    std::memset(static_cast<char*>(tensor->data) + offset, value, size);
    return {};
  });
}

void set_tensor(ggml_backend_buffer_t /*buffer*/, ggml_tensor* tensor, const void* data,
                size_t offset, size_t size) noexcept {
  (void)is_done_in_cache([&]() -> Result<void> {
    if (const CachePlace place = place_of(tensor); place.cache != nullptr) {
      CacheTensor& cache = *place.cache;
      const std::size_t start = place.offset + offset;
      if (set_packed(cache, data, start, size)) return {};
      return or_lost(cache, cache.set(std::span(static_cast<const std::byte*>(data), size), start));
    }
    std::memcpy(static_cast<char*>(tensor->data) + offset, data, size);
    return {};
  });
}

void get_tensor(ggml_backend_buffer_t /*buffer*/, const ggml_tensor* tensor, void* data,
                size_t offset, size_t size) noexcept {
  const bool is_read = is_done_in_cache([&]() -> Result<void> {
    if (const CachePlace place = place_of(tensor); place.cache != nullptr) {
      const std::size_t start = place.offset + offset;
      if (get_packed(*place.cache, data, start, size)) return {};
      return place.cache->get(std::span(static_cast<std::byte*>(data), size), start);
    }
    std::memcpy(data, static_cast<const char*>(tensor->data) + offset, size);
    return {};
  });
  // While rows are packed, `data` only says where they would be, and nothing may be written there.
  if (!is_read && !is_exchanging()) std::memset(data, 0, size);
}

bool copy_stream(const ggml_tensor* src, const ggml_tensor* dst) {
  if (src->buffer == nullptr || !is_turbo_buffer(src->buffer)) return false;
  const CachePlace target = place_of(dst);
  const CachePlace source = place_of(src);
  CacheTensor* cache = target.cache;
  if (cache == nullptr || source.cache != cache || cache->compressed() == nullptr) return false;
  const std::size_t stream_bytes = cache->stream_bytes();
  const std::size_t from = source.offset;
  const std::size_t to = target.offset;
  if (ggml_nbytes(src) != stream_bytes || ggml_nbytes(dst) != stream_bytes ||
      from % stream_bytes != 0 || to % stream_bytes != 0) {
    return false;
  }
  const Result<void> copied = cache->compressed()->copy_stream(
      static_cast<std::int64_t>(from / stream_bytes), static_cast<std::int64_t>(to / stream_bytes));
  if (!copied) log_line(GGML_LOG_LEVEL_ERROR, copied.error().message);
  return true;  // what was lost is lost: copying rows would not bring it back
}

// Copies a whole stream to another one of the same cache exactly, as codes. For any other copy it
// returns false, and ggml copies with get_tensor and set_tensor.
bool cpy_tensor(ggml_backend_buffer_t /*buffer*/, const ggml_tensor* src,
                ggml_tensor* dst) noexcept {
  return guarded(false, [&] { return copy_stream(src, dst); });
}

void clear(ggml_backend_buffer_t buffer, uint8_t value) noexcept {
  KvBuffer& context = context_of(buffer);
  for (auto& [data, cache] : context.caches) {
    const std::size_t n_bytes = cache->row_bytes() * static_cast<std::size_t>(cache->n_rows());
    (void)is_done_in_cache([&] { return or_lost(*cache, cache->memset(value, 0, n_bytes)); });
  }
  if (value == 0) {
    context.memory.zero();
  } else {
    std::memset(context.memory.bytes().data(), value, context.memory.bytes().size());
  }
}

// A cache tensor is put into the buffer: room on the disk for its cold chunks is made sure of while
// the program can still say that it has not enough.
ggml_status init_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor) noexcept {
  return guarded(GGML_STATUS_ALLOC_FAILED, [&] {
    const KvSettings& settings = context_of(buffer).settings;
    if (settings.cold == nullptr || !CacheTensor::is_cache(tensor)) return GGML_STATUS_SUCCESS;
    const std::size_t n_bytes = expected_bytes(settings, tensor).cold;
    if (n_bytes == 0) return GGML_STATUS_SUCCESS;
    const auto file = file_of(context_of(buffer));
    const Result<void> reserved = file ? (*file)->reserve(n_bytes / kBlockBytes * kBlockBytes)
                                       : std::unexpected(file.error());
    if (reserved) return GGML_STATUS_SUCCESS;
    log_line(GGML_LOG_LEVEL_ERROR, reserved.error().message);
    return GGML_STATUS_ALLOC_FAILED;
  });
}

constexpr ggml_backend_buffer_i kBufferInterface = {
    .free_buffer = free_buffer,
    .get_base = get_base,
    .init_tensor = init_tensor,
    .memset_tensor = memset_tensor,
    .set_tensor = set_tensor,
    .get_tensor = get_tensor,
    .set_tensor_2d = nullptr,
    .get_tensor_2d = nullptr,
    .cpy_tensor = cpy_tensor,
    .clear = clear,
    .reset = nullptr,
};

// --- the buffer type's functions

const char* get_name(ggml_backend_buffer_type_t /*buft*/) { return "TURBO"; }

ggml_backend_buffer_t make_buffer(ggml_backend_buffer_type_t buft, size_t size) {
  // At least one page, so that the base address is never null.
  Result<Mapping> memory = Mapping::anonymous(std::max<std::size_t>(size, 4096));
  if (!memory) {
    log_line(GGML_LOG_LEVEL_ERROR, memory.error().message);
    return nullptr;
  }
  auto context = std::make_unique<KvBuffer>();
  context->memory = std::move(*memory);
  context->settings = context_of(buft).settings();
  ggml_backend_buffer_t buffer =
      ggml_backend_buffer_init(buft, kBufferInterface, context.get(), size);
  // The buffer owns it now; before, making the buffer might have thrown.
  [[maybe_unused]] const KvBuffer* const owned = context.release();
  return buffer;
}

ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) noexcept {
  return guarded<ggml_backend_buffer_t>(nullptr, [&] { return make_buffer(buft, size); });
}

size_t get_alignment(ggml_backend_buffer_type_t /*buft*/) { return kAlignment; }

// Takes no memory: ggml asks twice, and aborts if the second answer is larger.
size_t get_alloc_size(ggml_backend_buffer_type_t buft, const ggml_tensor* tensor) noexcept {
  return CacheTensor::is_cache(tensor) ? context_of(buft).cache_bytes(tensor) : ggml_nbytes(tensor);
}

bool is_host(ggml_backend_buffer_type_t /*buft*/) { return false; }

}  // namespace

KvBufferType::KvBufferType(Scheme scheme, ggml_backend_dev_t device,
                           std::shared_ptr<ColdStore> cold)
    : type_{.iface = {.get_name = get_name,
                      .alloc_buffer = alloc_buffer,
                      .alloc_buffer_n = nullptr,
                      .get_alignment = get_alignment,
                      .get_max_size = nullptr,
                      .get_alloc_size = get_alloc_size,
                      .get_alloc_size_n = nullptr,
                      .is_host = is_host},
            .device = device,
            .context = this},
      settings_{.scheme = std::move(scheme), .keys = nullptr, .cold = std::move(cold)} {}

void KvBufferType::set_scheme(Scheme scheme) {
  const MutexLock lock(mutex_);
  settings_.scheme = std::move(scheme);
}

void KvBufferType::set_keys(std::shared_ptr<const FittedKeys> keys) {
  const MutexLock lock(mutex_);
  settings_.keys = std::move(keys);
}

std::size_t KvBufferType::cache_bytes(const ggml_tensor* tensor) const {
  const MutexLock lock(mutex_);
  return expected_bytes(settings_, tensor).in_memory;
}

KvSettings KvBufferType::settings() const {
  const MutexLock lock(mutex_);
  return settings_;
}

const KvSettings& settings_of(const ggml_tensor* tensor) {
  return context_of(view_root(tensor)->buffer).settings;
}

Result<std::shared_ptr<ColdFile>> cold_file_of(const ggml_tensor* tensor) {
  return file_of(context_of(view_root(tensor)->buffer));
}

// Each device has its own buffer type, but they share these functions.
bool is_turbo_buffer(ggml_backend_buffer_t buffer) {
  return buffer->buft->iface.alloc_buffer == alloc_buffer;
}

const ggml_tensor* view_root(const ggml_tensor* tensor) {
  while (tensor->view_src != nullptr) tensor = tensor->view_src;
  return tensor;
}

bool is_in_cache(const ggml_tensor* tensor) {
  const ggml_tensor* root = view_root(tensor);
  return root->buffer != nullptr && is_turbo_buffer(root->buffer) && CacheTensor::is_cache(root);
}

CacheTensor* find_cache(const ggml_tensor* tensor) {
  const ggml_tensor* root = view_root(tensor);
  if (!is_in_cache(root) || root->buffer->size == 0 || root->data == nullptr) return nullptr;
  auto& caches = context_of(root->buffer).caches;
  if (const auto found = caches.find(root->data); found != caches.end()) return found->second.get();
  return caches.emplace(root->data, std::make_unique<CacheTensor>(root)).first->second.get();
}

std::size_t cache_offset(const ggml_tensor* tensor) {
  std::size_t offset = 0;
  for (; tensor->view_src != nullptr; tensor = tensor->view_src) offset += tensor->view_offs;
  return offset;
}

std::int64_t index_at(const ggml_tensor* indices, std::int64_t i) {
  const char* at =
      static_cast<const char*>(indices->data) + static_cast<std::size_t>(i) * indices->nb[0];
  if (indices->type == GGML_TYPE_I64) {
    std::int64_t index = 0;
    std::memcpy(&index, at, sizeof(index));
    return index;
  }
  std::int32_t index = 0;
  std::memcpy(&index, at, sizeof(index));
  return index;
}

}  // namespace slipstream::turbo
