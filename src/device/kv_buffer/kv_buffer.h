// KvBufferType: the buffer type TURBO of one device, and its buffers.
//
// libllama puts two kinds of tensors into them: those of the KV cache, which become CacheTensors
// with memory of their own, and the intermediate results of graphs, which lie in the buffer's
// memory as in any host buffer. The buffer's size counts the cache at its compressed size: that is
// what llama.cpp reports.
//
// Threads: as ggml uses buffers, one thread at a time per buffer; the settings are thread-safe.
// Errors:  a null buffer when memory does not suffice, as ggml expects.
#pragma once

#include <map>
#include <memory>

#include "base/mapping.h"
#include "base/mutex.h"
#include "contract/scheme.h"
#include "device/ggml_abi/ggml_abi.h"
#include "device/kv_buffer/cache_tensor.h"

namespace slipstream::turbo {

class FittedKeys;

// What the caches of a buffer are bound to.
struct KvSettings {
  Scheme scheme;
  std::shared_ptr<const FittedKeys> keys;  // null: nothing was fitted
};

struct KvBuffer {
  Mapping memory;
  KvSettings settings;
  // By the address of the tensor's data: graphs that arrive over RPC have new tensor objects.
  std::map<const void*, std::unique_ptr<CacheTensor>> caches;
};

class KvBufferType {
 public:
  explicit KvBufferType(Scheme scheme, ggml_backend_dev_t device = nullptr);
  KvBufferType(const KvBufferType&) = delete;
  KvBufferType& operator=(const KvBufferType&) = delete;

  [[nodiscard]] ggml_backend_buffer_type_t handle() { return &type_; }
  // For buffers allocated from now on.
  void set_scheme(Scheme scheme);
  void set_keys(std::shared_ptr<const FittedKeys> keys);
  [[nodiscard]] KvSettings settings() const;

 private:
  ggml_backend_buffer_type type_;
  mutable Mutex mutex_;
  KvSettings settings_ SLIP_GUARDED_BY(mutex_);
};

// What the buffer of a cache tensor, or of a view of one, is for.
[[nodiscard]] const KvSettings& settings_of(const ggml_tensor* tensor);

[[nodiscard]] bool is_turbo_buffer(ggml_backend_buffer_t buffer);

// The tensor that a chain of views starts from.
const ggml_tensor* view_root(const ggml_tensor* tensor);
// Whether a tensor is, or views, a cache tensor in a buffer of ours.
[[nodiscard]] bool is_in_cache(const ggml_tensor* tensor);
// The CacheTensor behind such a tensor; null while the buffer has no memory (a dry run).
CacheTensor* find_cache(const ggml_tensor* tensor);
// Where a view starts in its cache, in bytes of the tensor's own type.
std::size_t cache_offset(const ggml_tensor* tensor);
// Element i of a list of rows, as SET_ROWS takes it.
std::int64_t index_at(const ggml_tensor* indices, std::int64_t i);

}  // namespace slipstream::turbo
