#include "device/experts/expert_buffer.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "device/guard.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

// All stores of the process, for the counters.
struct Stores {
  std::mutex mutex;
  std::set<ExpertStore*> all;
};
Stores& stores() {
  static Stores stores;
  return stores;
}

// A store is among them as long as this object lives.
class StoreListing {
 public:
  explicit StoreListing(ExpertStore* store) : store_(store) {
    const std::lock_guard held(stores().mutex);
    stores().all.insert(store_);
  }
  ~StoreListing() {
    const std::lock_guard held(stores().mutex);
    stores().all.erase(store_);
  }
  StoreListing(const StoreListing&) = delete;
  StoreListing& operator=(const StoreListing&) = delete;

 private:
  ExpertStore* store_;
};

struct ExpertBuffer {
  ExpertBuffer(Mapping own_addresses, const ExpertOptions& options)
      : addresses(std::move(own_addresses)), store(options), listing(&store) {}

  Mapping addresses;
  ExpertStore store;
  StoreListing listing;
};

ExpertBuffer& context_of(ggml_backend_buffer_t buffer) {
  return *static_cast<ExpertBuffer*>(buffer->context);
}

// --- the buffer's functions, called by ggml

void free_buffer(ggml_backend_buffer_t buffer) noexcept {
  (void)is_done([&] { context_of(buffer).store.close(); });
  delete &context_of(buffer);
}

void* get_base(ggml_backend_buffer_t buffer) { return context_of(buffer).addresses.bytes().data(); }

// Weights are only set and read, so these do nothing.
void memset_tensor(ggml_backend_buffer_t /*buffer*/, ggml_tensor* /*tensor*/, uint8_t /*value*/,
                   size_t /*offset*/, size_t /*size*/) {}
void clear(ggml_backend_buffer_t /*buffer*/, uint8_t /*value*/) {}

// A tensor that cannot be added makes the first graph fail: the model would compute with missing
// experts.
void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data, size_t offset,
                size_t size) noexcept {
  const auto* bytes = static_cast<const std::byte*>(data);
  ExpertStore& store = context_of(buffer).store;
  const bool is_added = is_done(
      [&] { store.add(tensor, offset == 0 ? std::span(bytes, size) : std::span(bytes, 0)); });
  if (!is_added) store.give_up();
}

// ggml takes no error here. What cannot be read is zero, so that nobody computes with whatever the
// caller's memory held before.
void get_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data, size_t offset,
                size_t size) noexcept {
  const std::span into(static_cast<std::byte*>(data), size);
  const bool is_read = guarded(false, [&] {
    const Result<void> read = context_of(buffer).store.read(tensor, into, offset);
    if (!read) log_line(GGML_LOG_LEVEL_ERROR, read.error().message);
    return read.has_value();
  });
  if (!is_read) std::ranges::fill(into, std::byte{0});
}

constexpr ggml_backend_buffer_i kBufferInterface = {
    .free_buffer = free_buffer,
    .get_base = get_base,
    .init_tensor = nullptr,
    .memset_tensor = memset_tensor,
    .set_tensor = set_tensor,
    .get_tensor = get_tensor,
    .set_tensor_2d = nullptr,
    .get_tensor_2d = nullptr,
    .cpy_tensor = nullptr,
    .clear = clear,
    .reset = nullptr,
};

// --- the buffer type's functions

const char* get_name(ggml_backend_buffer_type_t /*buft*/) { return "TURBO_EXPERTS"; }

ggml_backend_buffer_t make_buffer(ggml_backend_buffer_type_t buft, size_t size) {
  Result<Mapping> addresses = Mapping::anonymous(std::max<std::size_t>(size, 4096));
  if (!addresses) {
    log_line(GGML_LOG_LEVEL_ERROR, addresses.error().message);
    return nullptr;
  }
  auto context = std::make_unique<ExpertBuffer>(
      std::move(*addresses), static_cast<const ExpertBufferType*>(buft->context)->options());
  ggml_backend_buffer_t buffer =
      ggml_backend_buffer_init(buft, kBufferInterface, context.get(), size);
  // The buffer owns it now; before, making the buffer might have thrown.
  [[maybe_unused]] const ExpertBuffer* const owned = context.release();
  return buffer;
}

ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) noexcept {
  return guarded<ggml_backend_buffer_t>(nullptr, [&] { return make_buffer(buft, size); });
}

constexpr std::size_t kAlignment = 64;
size_t get_alignment(ggml_backend_buffer_type_t /*buft*/) { return kAlignment; }
// A tensor needs only its own address here.
size_t get_alloc_size(ggml_backend_buffer_type_t /*buft*/, const ggml_tensor* /*tensor*/) {
  return kAlignment;
}
bool is_host(ggml_backend_buffer_type_t /*buft*/) { return false; }

}  // namespace

ExpertBufferType::ExpertBufferType(ExpertOptions options, ggml_backend_dev_t device)
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
      options_(std::move(options)) {}

bool is_expert_weight(const ggml_tensor* tensor) {
  return std::string_view(tensor->name).ends_with("_exps.weight");
}

bool is_streamed(const ggml_tensor* tensor) {
  return tensor->buffer != nullptr && tensor->buffer->buft->iface.alloc_buffer == alloc_buffer;
}

ExpertStore& store_of(const ggml_tensor* tensor) { return context_of(tensor->buffer).store; }

std::map<int, ExpertCounters> all_expert_counters() {
  const std::lock_guard held(stores().mutex);
  std::map<int, ExpertCounters> sum;
  for (const ExpertStore* store : stores().all) {
    for (const auto& [layer, counters] : store->counters()) {
      ExpertCounters& total = sum[layer];
      total.layer = counters.layer;
      total += counters;
    }
  }
  return sum;
}

}  // namespace slipstream::turbo
