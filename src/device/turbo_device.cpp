#include "device/turbo_device.h"

#include <ggml-cpp.h>

#include <algorithm>
#include <utility>

#include "base/memory_info.h"
#include "device/experts/expert_graph.h"
#include "device/fit/profile.h"
#include "device/graph/binding.h"
#include "device/graph/shadow_graph.h"
#include "device/guard.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

ggml_backend_dev_t cpu_device() { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU); }

void* cpu_function(const char* name) {
  return ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu_device()), name);
}

// --- the backend: computes graphs

struct TurboBackend {
  TurboDevice& device;
  ggml_backend_ptr cpu;
  ShadowGraph shadow;
  ExpertGraph experts;
};

TurboBackend& context_of(ggml_backend_t backend) {
  return *static_cast<TurboBackend*>(backend->context);
}

const char* backend_name(ggml_backend_t /*backend*/) { return "TURBO"; }

void save_fit_run(const TurboDevice& device) {
  const std::shared_ptr<FitRun> run = device.fit_run();
  if (run == nullptr) return;
  if (const auto saved = run->save(); !saved) {
    log_line(GGML_LOG_LEVEL_ERROR, saved.error().message);
  }
}

void backend_free(ggml_backend_t backend) noexcept {
  (void)is_done([&] { save_fit_run(context_of(backend).device); });
  delete &context_of(backend);
  delete backend;
}

ggml_status compute(TurboBackend& context, ggml_cgraph* graph) {
  const Result<ggml_cgraph*> shadow = context.shadow.build(
      graph, {.fit_run = context.device.fit_run(), .has_products = context.device.has_products()});
  if (!shadow) {
    log_line(GGML_LOG_LEVEL_ERROR, shadow.error().message);
    return GGML_STATUS_ALLOC_FAILED;
  }
  const ggml_status status =
      ExpertGraph::concerns(*shadow)
          ? context.experts.compute(context.cpu.get(), *shadow, context.device.has_products())
          : ggml_backend_graph_compute(context.cpu.get(), *shadow);
  const ggml_status ended = context.shadow.end();
  return ended == GGML_STATUS_SUCCESS ? status : ended;
}

ggml_status backend_graph_compute(ggml_backend_t backend, ggml_cgraph* graph) noexcept {
  return guarded(GGML_STATUS_ALLOC_FAILED, [&] { return compute(context_of(backend), graph); });
}

// --- the device's functions, called by ggml

const char* device_name(ggml_backend_dev_t /*dev*/) { return "TURBO0"; }

const char* device_description(ggml_backend_dev_t /*dev*/) {
  return "CPU with a compressed KV cache";
}

// ggml's CPU device says that all memory is free. What is free counts where a program on another
// machine deals layers by it.
void device_memory(ggml_backend_dev_t /*dev*/, size_t* free, size_t* total) {
  ggml_backend_dev_memory(cpu_device(), free, total);
  if (const Result<std::uint64_t> available = available_memory()) {
    *free = std::min<std::size_t>(*total, *available);
  }
}

// libllama offloads layers, and with them their cache, to GPUs only.
enum ggml_backend_dev_type device_type(ggml_backend_dev_t /*dev*/) {
  return GGML_BACKEND_DEVICE_TYPE_GPU;
}

void device_props(ggml_backend_dev_t dev, ggml_backend_dev_props* props) {
  *props = {};
  props->name = device_name(dev);
  props->description = device_description(dev);
  props->type = device_type(dev);
  device_memory(dev, &props->memory_free, &props->memory_total);
  props->caps.mmap_support = true;  // weights are in CPU buffers, which can be mapped
}

ggml_backend_t make_backend(ggml_backend_dev_t dev) {
  static ggml_guid guid = {'s', 'l', 'i', 'p', 's', 't', 'r', 'e',
                           'a', 'm', '-', 't', 'u', 'r', 'b', 'o'};
  ggml_backend_ptr cpu(ggml_backend_dev_init(cpu_device(), nullptr));
  if (!cpu) return nullptr;
  auto context = std::unique_ptr<TurboBackend>(new TurboBackend{
      .device = TurboDevice::of(dev), .cpu = std::move(cpu), .shadow = {}, .experts = {}});
  ggml_backend_i iface{};
  iface.get_name = backend_name;
  iface.free = backend_free;
  iface.graph_compute = backend_graph_compute;
  return new ggml_backend{
      .guid = &guid, .iface = iface, .device = dev, .context = context.release()};
}

ggml_backend_t device_init_backend(ggml_backend_dev_t dev, const char* /*params*/) noexcept {
  return guarded<ggml_backend_t>(nullptr, [&] { return make_backend(dev); });
}

ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t dev) {
  return TurboDevice::of(dev).caches().handle();
}

bool supports_op(const ggml_tensor* op) {
  // Streamed experts can be used in one op only: MUL_MAT_ID.
  const auto is_expert = [](const ggml_tensor* src) { return src != nullptr && is_streamed(src); };
  if (std::ranges::any_of(op->src, is_expert)) {
    return op->op == GGML_OP_MUL_MAT_ID && is_expert(op->src[0]) && is_expert_weight(op->src[0]);
  }
  const auto is_cache = [](const ggml_tensor* src) { return src != nullptr && is_in_cache(src); };
  const bool on_cache = is_in_cache(op) || std::ranges::any_of(op->src, is_cache);
  if (!on_cache) {
    // libllama asks whether weights may lie in this device's buffers: it shows an op whose weight
    // is in such a buffer of size 0. The answer is no, because the CPU's own buffers repack weights
    // for its kernels.
    for (const ggml_tensor* src : op->src) {
      if (src != nullptr && src->buffer != nullptr && is_turbo_buffer(src->buffer) &&
          src->buffer->size == 0) {
        return false;
      }
    }
  } else if (op->op == GGML_OP_FLASH_ATTN_EXT) {
    if (const Result<void> bound = bind_attention(op); !bound) {
      log_line(GGML_LOG_LEVEL_ERROR, bound.error().message);
      return false;
    }
  }
  return ggml_backend_dev_supports_op(cpu_device(), op);
}

bool device_supports_op(ggml_backend_dev_t /*dev*/, const ggml_tensor* op) noexcept {
  return guarded(false, [&] { return supports_op(op); });
}

bool device_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
  TurboDevice& device = TurboDevice::of(dev);
  return buft == device.caches().handle() || buft == device.experts().handle() ||
         ggml_backend_dev_supports_buft(cpu_device(), buft);
}

constexpr ggml_backend_device_i kDeviceInterface = {
    .get_name = device_name,
    .get_description = device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init_backend,
    .get_buffer_type = device_buffer_type,
    .get_host_buffer_type = nullptr,
    .buffer_from_host_ptr = nullptr,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .offload_op = nullptr,
    .event_new = nullptr,
    .event_free = nullptr,
    .event_synchronize = nullptr,
};

}  // namespace

TurboDevice::TurboDevice(ggml_backend_reg_t reg, Scheme scheme, ExpertOptions experts,
                         bool has_products, std::shared_ptr<ColdStore> cold)
    : device_{.iface = kDeviceInterface, .reg = reg, .context = this},
      caches_(std::move(scheme), &device_, std::move(cold)),
      experts_(std::move(experts), &device_),
      extra_buffer_types_{experts_.options().cache_bytes > 0 ? experts_.handle() : nullptr},
      has_products_(has_products) {}

TurboDevice& TurboDevice::of(ggml_backend_dev_t device) {
  return *static_cast<TurboDevice*>(device->context);
}

ggml_backend_buffer_type_t* TurboDevice::extra_buffer_types() { return extra_buffer_types_.data(); }

Result<void> TurboDevice::use_keys(const std::string& path) {
  caches_.set_keys(nullptr);
  if (path.empty()) return {};
  Result<std::shared_ptr<const FittedKeys>> keys = FittedKeys::read(path);
  if (!keys) return std::unexpected(std::move(keys.error()));
  caches_.set_keys(std::move(*keys));
  return {};
}

std::shared_ptr<FitRun> TurboDevice::fit_run() const {
  const MutexLock lock(mutex_);
  return fit_run_;
}

std::shared_ptr<FitRun> TurboDevice::exchange_fit_run(std::shared_ptr<FitRun> run) {
  const MutexLock lock(mutex_);
  return std::exchange(fit_run_, std::move(run));
}

void set_n_threads(ggml_backend_t backend, int n_threads) {
  const auto set =
      reinterpret_cast<ggml_backend_set_n_threads_t>(cpu_function("ggml_backend_set_n_threads"));
  if (set != nullptr) set(context_of(backend).cpu.get(), n_threads);
}

void set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void* data) {
  const auto set = reinterpret_cast<ggml_backend_set_abort_callback_t>(
      cpu_function("ggml_backend_set_abort_callback"));
  if (set != nullptr) set(context_of(backend).cpu.get(), callback, data);
}

}  // namespace slipstream::turbo
