// KvBufferType: the buffer type TURBO of one device, and its buffers.
//
// libllama puts two kinds of tensors into the buffers: those of the KV cache, which become
// CacheTensors with their own memory, and intermediate results of graphs, which lie in the buffer's
// memory as in any host buffer. The buffer's size, which llama.cpp reports, counts the cache at its
// compressed size.
//
// Threads: one thread at a time per buffer, as ggml uses them; the settings are thread-safe.
// Errors:  a null buffer if memory does not suffice, as ggml expects. A disk without room for cold
//          chunks fails when the cache tensors are put into the buffer.
#pragma once

#include <map>
#include <memory>

#include "base/mapping.h"
#include "base/mutex.h"
#include "contract/scheme.h"
#include "device/ggml_abi/ggml_abi.h"
#include "device/kv_buffer/cache_tensor.h"
#include "device/kv_buffer/cold_store.h"

namespace slipstream::turbo {

class FittedKeys;

// The settings that the caches of a buffer are bound with.
struct KvSettings {
  Scheme scheme;
  std::shared_ptr<const FittedKeys> keys;  // null: there is no profile
  std::shared_ptr<ColdStore> cold;         // null: all codes stay in memory
};

struct KvBuffer {
  Mapping memory;
  KvSettings settings;
  std::shared_ptr<ColdFile> cold_file;  // of the caches; null until one needs it
  // The key is the address of the tensor's data, because graphs that arrive over RPC have new
  // tensor objects.
  std::map<const void*, std::unique_ptr<CacheTensor>> caches;
};

class KvBufferType {
 public:
  // cold: for chunks that are not read for a while; null: all stay in memory. With it schemes must
  // limit what a query reads.
  explicit KvBufferType(Scheme scheme, ggml_backend_dev_t device = nullptr,
                        std::shared_ptr<ColdStore> cold = nullptr);
  KvBufferType(const KvBufferType&) = delete;
  KvBufferType& operator=(const KvBufferType&) = delete;

  [[nodiscard]] ggml_backend_buffer_type_t handle() { return &type_; }
  // Both apply to buffers allocated from now on. REQUIRES: no buffer is being allocated, because ggml
  // asks for the sizes twice.
  void set_scheme(Scheme scheme);
  void set_keys(std::shared_ptr<const FittedKeys> keys);
  [[nodiscard]] KvSettings settings() const;
  // The size that llama.cpp is told for a cache tensor.
  [[nodiscard]] std::size_t cache_bytes(const ggml_tensor* tensor) const;

 private:
  ggml_backend_buffer_type type_;
  mutable Mutex mutex_;
  KvSettings settings_ SLIP_GUARDED_BY(mutex_);
};

// The settings of the buffer that holds a cache tensor, given the tensor or a view of it.
[[nodiscard]] const KvSettings& settings_of(const ggml_tensor* tensor);
// The file for cold chunks of this tensor, one that an attention reads a part of; null: they stay in
// memory.
[[nodiscard]] Result<std::shared_ptr<ColdFile>> cold_file_of(const ggml_tensor* tensor);

[[nodiscard]] bool is_turbo_buffer(ggml_backend_buffer_t buffer);

// The tensor that a chain of views starts from.
const ggml_tensor* view_root(const ggml_tensor* tensor);
// Whether a tensor is, or is a view of, a cache tensor in a TURBO buffer.
[[nodiscard]] bool is_in_cache(const ggml_tensor* tensor);
// The CacheTensor behind such a tensor; null while the buffer has no memory (a dry run).
CacheTensor* find_cache(const ggml_tensor* tensor);
// The offset of a view in its cache, in bytes of the tensor's own type.
std::size_t cache_offset(const ggml_tensor* tensor);
// Element i of a list of row indices, as SET_ROWS takes it.
std::int64_t index_at(const ggml_tensor* indices, std::int64_t i);

}  // namespace slipstream::turbo
