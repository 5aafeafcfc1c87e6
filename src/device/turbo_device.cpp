// libggml-turbo.so: a ggml device that decorates the CPU device. It keeps libllama's KV cache
// compressed and hands everything else to an inner CPU backend.
//
// Entry points: ggml_backend_init and ggml_backend_score, called by ggml's registry when it loads
// the plugin. The scheme is named in GGML_TURBO_KV, memory for streamed experts in
// GGML_TURBO_EXPERTS; without either there is no device. A program that knows the plugin asks for a
// device by function instead (contract/plugin.h).
#include <ggml-cpp.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <format>
#include <new>
#include <string_view>

#include "contract/environment.h"
#include "contract/plugin.h"
#include "contract/scheme.h"
#include "device/attention/kernel_choice.h"
#include "device/experts/expert_buffer.h"
#include "device/experts/expert_graph.h"
#include "device/fit/fit_run.h"
#include "device/fit/profile.h"
#include "device/ggml_abi/ggml_abi.h"
#include "device/ggml_abi/probe.h"
#include "device/graph/binding.h"
#include "device/graph/shadow_graph.h"
#include "device/kv_buffer/kv_buffer.h"
#include "device/kv_buffer/packed_rows.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

ggml_backend_dev_t cpu_device() { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU); }

void* cpu_function(const char* name) {
  return ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu_device()), name);
}

// --- the backend: computes graphs

struct TurboBackend {
  ggml_backend_ptr cpu;
  ShadowGraph shadow;
  ExpertGraph experts;
};

TurboBackend& context_of(ggml_backend_t backend) {
  return *static_cast<TurboBackend*>(backend->context);
}

const char* backend_name(ggml_backend_t /*backend*/) { return "TURBO"; }

void backend_free(ggml_backend_t backend) {
  if (const std::shared_ptr<FitRun> run = fit_run(); run != nullptr) {
    if (const auto saved = run->save(); !saved) {
      log_line(GGML_LOG_LEVEL_ERROR, saved.error().message);
    }
  }
  delete &context_of(backend);
  delete backend;
}

ggml_status compute(TurboBackend& context, ggml_cgraph* graph) {
  const Result<ggml_cgraph*> shadow = context.shadow.build(graph);
  if (!shadow) {
    log_line(GGML_LOG_LEVEL_ERROR, shadow.error().message);
    return GGML_STATUS_ALLOC_FAILED;
  }
  const ggml_status status = ExpertGraph::concerns(*shadow)
                                 ? context.experts.compute(context.cpu.get(), *shadow)
                                 : ggml_backend_graph_compute(context.cpu.get(), *shadow);
  return context.shadow.is_out_of_memory() ? GGML_STATUS_ALLOC_FAILED : status;
}

ggml_status backend_graph_compute(ggml_backend_t backend, ggml_cgraph* graph) noexcept {
  try {
    return compute(context_of(backend), graph);
  } catch (const std::bad_alloc&) {
    return GGML_STATUS_ALLOC_FAILED;
  }
}

void backend_set_n_threads(ggml_backend_t backend, int n_threads) {
  const auto set =
      reinterpret_cast<ggml_backend_set_n_threads_t>(cpu_function("ggml_backend_set_n_threads"));
  if (set != nullptr) set(context_of(backend).cpu.get(), n_threads);
}

void backend_set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void* data) {
  const auto set = reinterpret_cast<ggml_backend_set_abort_callback_t>(
      cpu_function("ggml_backend_set_abort_callback"));
  if (set != nullptr) set(context_of(backend).cpu.get(), callback, data);
}

// --- the device

extern ggml_backend_device device;

const char* device_name(ggml_backend_dev_t /*dev*/) { return "TURBO0"; }

const char* device_description(ggml_backend_dev_t /*dev*/) {
  return "CPU with a compressed KV cache";
}

void device_memory(ggml_backend_dev_t /*dev*/, size_t* free, size_t* total) {
  ggml_backend_dev_memory(cpu_device(), free, total);
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
  props->caps.mmap_support = true;  // the weights are the CPU's: map them as it does
}

ggml_backend_t device_init_backend(ggml_backend_dev_t dev, const char* /*params*/) {
  static ggml_guid guid = {'s', 'l', 'i', 'p', 's', 't', 'r', 'e',
                           'a', 'm', '-', 't', 'u', 'r', 'b', 'o'};
  ggml_backend_ptr cpu(ggml_backend_dev_init(cpu_device(), nullptr));
  if (!cpu) return nullptr;
  auto context = std::make_unique<TurboBackend>();
  context->cpu = std::move(cpu);
  ggml_backend_i iface{};
  iface.get_name = backend_name;
  iface.free = backend_free;
  iface.graph_compute = backend_graph_compute;
  return new ggml_backend{
      .guid = &guid, .iface = iface, .device = dev, .context = context.release()};
}

ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t /*dev*/) { return buffer_type(); }

bool device_supports_op(ggml_backend_dev_t /*dev*/, const ggml_tensor* op) {
  // Streamed experts are there for one thing.
  const auto is_expert = [](const ggml_tensor* src) { return src != nullptr && is_streamed(src); };
  if (std::ranges::any_of(op->src, is_expert)) {
    return op->op == GGML_OP_MUL_MAT_ID && is_expert(op->src[0]) && is_expert_weight(op->src[0]);
  }
  const auto is_cache = [](const ggml_tensor* src) { return src != nullptr && is_in_cache(src); };
  const bool on_cache = is_in_cache(op) || std::ranges::any_of(op->src, is_cache);
  if (!on_cache) {
    // Where may weights lie? libllama asks with a weight in a buffer of ours that has no memory.
    // Not with us: the CPU's own buffers repack them for its kernels.
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

bool device_supports_buft(ggml_backend_dev_t /*dev*/, ggml_backend_buffer_type_t buft) {
  return buft == buffer_type() || buft == expert_buffer_type() ||
         ggml_backend_dev_supports_buft(cpu_device(), buft);
}

// Where libllama may put weights besides the device's own buffers. Asked by get_proc_address.
ggml_backend_buffer_type_t* extra_buffer_types(ggml_backend_dev_t /*dev*/) {
  static std::array<ggml_backend_buffer_type_t, 2> types = {expert_buffer_type(), nullptr};
  return expert_options().cache_bytes > 0 ? types.data() : &types[1];
}

// --- the registry's entry

// Written by init(), which runs once and before ggml asks for anything.
bool has_device = false;

const char* reg_name(ggml_backend_reg_t /*reg*/) { return kPluginName; }
size_t reg_device_count(ggml_backend_reg_t /*reg*/) { return has_device ? 1 : 0; }
ggml_backend_dev_t reg_device(ggml_backend_reg_t /*reg*/, size_t /*index*/) { return &device; }

// For programs of ours: a device for this scheme, or null with a line in the log.
void* open_device(const char* scheme_name) {
  const Result<Scheme> scheme = parse_scheme(scheme_name);
  if (!scheme) {
    log_line(GGML_LOG_LEVEL_ERROR, scheme.error().message);
    return nullptr;
  }
  set_scheme(*scheme);
  return &device;
}

// The same for models loaded from now on: their experts are streamed as the text says; null or
// empty: they are not.
bool stream_experts(const char* text) {
  if (text == nullptr || *text == '\0') {
    set_expert_options({});
    return true;
  }
  Result<ExpertOptions> options = parse_expert_options(text);
  if (!options) {
    log_line(GGML_LOG_LEVEL_ERROR, options.error().message);
    return false;
  }
  set_expert_options(std::move(*options));
  return true;
}

std::size_t read_expert_counters(ExpertCounters* rows, std::size_t n_rows_max) {
  std::size_t n_rows = 0;
  for (const auto& [layer, counters] : all_expert_counters()) {
    if (n_rows == n_rows_max) break;
    rows[n_rows++] = counters;
  }
  return n_rows;
}

// What was fitted to the keys of models whose contexts are made from now on; empty: nothing was.
bool use_keys(const char* path) {
  const Result<void> used = use_profile(std::string(path));
  if (!used) log_line(GGML_LOG_LEVEL_ERROR, used.error().message);
  return used.has_value();
}

// Fits keys to all that is computed from now on. With an empty path that ends, the file is written,
// and the number of layers fitted is returned; -1: it could not be.
int fit_keys(const char* path) {
  const Result<std::size_t> ended = end_fit_run();
  if (!ended) log_line(GGML_LOG_LEVEL_ERROR, ended.error().message);
  if (*path != '\0') start_fit_run(path);
  return ended ? static_cast<int>(*ended) : -1;
}

void* reg_proc_address(ggml_backend_reg_t /*reg*/, const char* name) {
  const std::string_view wanted = name;
  if (wanted == "ggml_backend_set_n_threads") return reinterpret_cast<void*>(backend_set_n_threads);
  if (wanted == "ggml_backend_set_abort_callback") {
    return reinterpret_cast<void*>(backend_set_abort_callback);
  }
  if (wanted == "ggml_backend_dev_get_extra_bufts") {
    return reinterpret_cast<void*>(extra_buffer_types);
  }
  void* found = nullptr;
  const auto offer = [&]<class Entry>(Entry, typename Entry::Function* function) {
    if (wanted == Entry::kName) found = reinterpret_cast<void*>(function);
  };
  offer(OpenDevice{}, open_device);
  offer(StreamExperts{}, stream_experts);
  offer(UseKeys{}, use_keys);
  offer(FitKeys{}, fit_keys);
  offer(ReadExpertCounters{}, read_expert_counters);
  offer(BeginPacking{}, begin_packing);
  offer(BeginUnpacking{}, begin_unpacking);
  offer(EndPackedRows{}, end_packed_rows);
  return found;
}

ggml_backend_reg reg = {
    .api_version = kBackendApiVersion,
    .iface = {.get_name = reg_name,
              .get_device_count = reg_device_count,
              .get_device = reg_device,
              .get_proc_address = reg_proc_address},
    .context = nullptr,
};

ggml_backend_device device = {
    .iface = {.get_name = device_name,
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
              .event_synchronize = nullptr},
    .reg = &reg,
    .context = nullptr,
};

ggml_backend_reg_t init() {
  if (const Result<void> probed = probe_ggml(ggml_version()); !probed) {
    log_line(GGML_LOG_LEVEL_ERROR, probed.error().message);
    return nullptr;
  }
  if (const char* kernels = std::getenv(kKernelsVariable); kernels != nullptr) {
    if (const Result<void> limited = limit_kernels(kernels); !limited) {
      log_line(GGML_LOG_LEVEL_ERROR, limited.error().message);
      return nullptr;
    }
  }
  buffer_type()->device = &device;
  expert_buffer_type()->device = &device;
  if (const char* experts = std::getenv(kExpertsVariable); experts != nullptr) {
    if (!stream_experts(experts)) return nullptr;
  }
  if (const char* path = std::getenv(kFitVariable); path != nullptr) (void)fit_keys(path);
  // One that cannot be used is said, and keys are stored without it.
  if (const char* path = std::getenv(kProfileVariable); path != nullptr) (void)use_keys(path);
  const char* scheme = std::getenv(kSchemeVariable);
  if (scheme == nullptr || *scheme == '\0') scheme = expert_options().cache_bytes > 0 ? "f16" : "";
  if (*scheme == '\0') {
    log_line(GGML_LOG_LEVEL_INFO,
             "loaded, and off: name a KV scheme to use it, such as GGML_TURBO_KV=turbo8v4, or "
             "memory for streamed experts, such as GGML_TURBO_EXPERTS=4G");
  } else {
    has_device = open_device(scheme) != nullptr;
  }
  return &reg;
}

}  // namespace
}  // namespace slipstream::turbo

extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init() {
  // Once, whoever loads the plugin again: models may be using what it sets.
  static ggml_backend_reg_t reg = slipstream::turbo::init();
  return reg;
}

// Any CPU will do: the kernels choose for themselves.
extern "C" __attribute__((visibility("default"))) int ggml_backend_score() { return 1; }
