// libggml-turbo.so: the plugin that ggml's registry loads.
//
// Entry points: ggml_backend_init and ggml_backend_score. A program that does not know the plugin
// gets one device from the environment (contract/environment.h): GGML_TURBO_KV names the scheme,
// GGML_TURBO_EXPERTS the memory for streamed experts, GGML_TURBO_PROMPTS=on asks for our own
// products, GGML_TURBO_KV_MEMORY limits the memory for codes. If none of the first three is set,
// there is no device.
// A program that knows the plugin opens a device for each of its models (contract/plugin.h).
//
// Threads: as contract/plugin.h says. Errors: a line in ggml's log.
#include "contract/plugin.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "contract/environment.h"
#include "device/attention/kernel_choice.h"
#include "device/ggml_abi/probe.h"
#include "device/guard.h"
#include "device/kv_buffer/packed_rows.h"
#include "device/log.h"
#include "device/turbo_device.h"

namespace slipstream::turbo {
namespace {

// The registry entry.
struct Plugin {
  ggml_backend_reg reg;
  // The device that the environment asks for, or null. It is never freed, because a program may use
  // it until it exits.
  TurboDevice* default_device = nullptr;
};

Plugin& plugin_of(ggml_backend_reg_t reg) { return *static_cast<Plugin*>(reg->context); }

// Whether the result is a value; logs the error if it is not.
template <class T>
bool is_well(const Result<T>& result) {
  if (!result) log_line(GGML_LOG_LEVEL_ERROR, result.error().message);
  return result.has_value();
}

TurboDevice& device_of(void* handle) {
  return TurboDevice::of(static_cast<ggml_backend_dev_t>(handle));
}

// --- functions for programs that know the plugin (contract/plugin.h)

// prompts: "on", or "off" or nothing.
Result<bool> parse_prompts(std::string_view prompts) {
  if (prompts == "on") return true;
  if (prompts.empty() || prompts == "off") return false;
  return fail(Code::kInvalidArgument,
              format_text("{} is '{}'; it must be on or off", kPromptsVariable, prompts));
}

// What is read whole would be read from the disk for every token.
Result<void> check_cold(const Scheme& scheme) {
  if (scheme.attend() != 0) return {};
  return fail(Code::kInvalidArgument,
              format_text("{} needs a scheme that limits what is read, such as turbo4,attend=4096; "
                          "{} reads all",
                          kKvMemoryVariable, scheme.name()));
}

std::unique_ptr<TurboDevice> make_device(ggml_backend_reg_t reg, std::string_view scheme_name,
                                         std::string_view experts, std::string_view prompts,
                                         std::string_view kv_memory) {
  Result<Scheme> scheme = parse_scheme(scheme_name);
  if (!is_well(scheme)) return nullptr;
  ExpertOptions options;
  if (!experts.empty()) {
    Result<ExpertOptions> parsed = parse_expert_options(experts);
    if (!is_well(parsed)) return nullptr;
    options = std::move(*parsed);
  }
  const Result<bool> has_products = parse_prompts(prompts);
  if (!is_well(has_products)) return nullptr;
  std::shared_ptr<ColdStore> cold;  // shared by the device and its buffers
  if (!kv_memory.empty()) {
    Result<ColdOptions> parsed = parse_cold_options(kv_memory);
    if (!is_well(parsed) || !is_well(check_cold(*scheme))) return nullptr;
    cold = std::make_shared<ColdStore>(std::move(*parsed));
  }
  return std::make_unique<TurboDevice>(reg, std::move(*scheme), std::move(options), *has_products,
                                       std::move(cold));
}

extern Plugin plugin;

void* open_device(const char* scheme, const char* experts, const char* prompts,
                  const char* kv_memory) noexcept {
  return guarded<void*>(nullptr, [&]() -> void* {
    std::unique_ptr<TurboDevice> device =
        make_device(&plugin.reg, scheme, experts, prompts, kv_memory);
    return device == nullptr ? nullptr : device.release()->handle();
  });
}

void close_device(void* device) noexcept { delete &device_of(device); }

bool set_scheme(void* device, const char* name) noexcept {
  return guarded(false, [&] {
    Result<Scheme> scheme = parse_scheme(name);
    if (!is_well(scheme)) return false;
    const bool is_cold = device_of(device).caches().settings().cold != nullptr;
    if (is_cold && !is_well(check_cold(*scheme))) return false;
    device_of(device).caches().set_scheme(std::move(*scheme));
    return true;
  });
}

bool use_keys(void* device, const char* path) noexcept {
  return guarded(false, [&] { return is_well(device_of(device).use_keys(path)); });
}

int fit_keys(void* device, const char* path) noexcept {
  constexpr int kFailed = -1;
  return guarded(kFailed, [&] {
    std::shared_ptr<FitRun> next = *path == '\0' ? nullptr : std::make_shared<FitRun>(path);
    const std::shared_ptr<FitRun> run = device_of(device).exchange_fit_run(std::move(next));
    if (run == nullptr) return 0;
    const Result<std::size_t> n_layers = run->end();
    return is_well(n_layers) ? static_cast<int>(*n_layers) : kFailed;
  });
}

std::size_t read_expert_counters(ExpertCounters* rows, std::size_t n_rows_max) noexcept {
  return guarded(std::size_t{0}, [&] {
    std::size_t n_rows = 0;
    for (const auto& [layer, counters] : all_expert_counters()) {
      if (n_rows == n_rows_max) break;
      rows[n_rows++] = counters;
    }
    return n_rows;
  });
}

bool read_kv_memory_counters(KvMemoryCounters* counters) noexcept {
  *counters = ColdCounters::of_process().read();
  return ColdStore::was_used();
}

// --- the registry's functions, called by ggml

const char* reg_name(ggml_backend_reg_t /*reg*/) { return kPluginName; }

size_t reg_device_count(ggml_backend_reg_t reg) {
  return plugin_of(reg).default_device == nullptr ? 0 : 1;
}

ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t /*index*/) {
  return plugin_of(reg).default_device->handle();
}

ggml_backend_buffer_type_t* extra_buffer_types(ggml_backend_dev_t device) {
  return TurboDevice::of(device).extra_buffer_types();
}

void* reg_proc_address(ggml_backend_reg_t /*reg*/, const char* name) {
  const std::string_view wanted = name;
  if (wanted == "ggml_backend_set_n_threads") return reinterpret_cast<void*>(set_n_threads);
  if (wanted == "ggml_backend_set_abort_callback") {
    return reinterpret_cast<void*>(set_abort_callback);
  }
  if (wanted == "ggml_backend_dev_get_extra_bufts") {
    return reinterpret_cast<void*>(extra_buffer_types);
  }
  void* found = nullptr;
  const auto offer = [&]<class Entry>(Entry, typename Entry::Function* function) {
    if (wanted == Entry::kName) found = reinterpret_cast<void*>(function);
  };
  offer(OpenDevice{}, open_device);
  offer(CloseDevice{}, close_device);
  offer(SetScheme{}, set_scheme);
  offer(UseKeys{}, use_keys);
  offer(FitKeys{}, fit_keys);
  offer(ReadExpertCounters{}, read_expert_counters);
  offer(ReadKvMemoryCounters{}, read_kv_memory_counters);
  offer(BeginPacking{}, begin_packing);
  offer(BeginUnpacking{}, begin_unpacking);
  offer(EndPackedRows{}, end_packed_rows);
  return found;
}

Plugin plugin = {
    .reg = {.api_version = kBackendApiVersion,
            .iface = {.get_name = reg_name,
                      .get_device_count = reg_device_count,
                      .get_device = reg_device,
                      .get_proc_address = reg_proc_address},
            .context = &plugin},
};

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Ends the fit run when the process exits, so that its file is written.
struct EndOfFitRun {
  TurboDevice* device;
  ~EndOfFitRun() { device->exchange_fit_run(nullptr); }
};

// Null if the environment asks for no device, or if that device cannot be made.
std::unique_ptr<TurboDevice> device_of_environment() {
  const std::string_view experts = variable(kExpertsVariable);
  std::string_view scheme = variable(kSchemeVariable);
  const std::string_view prompts = variable(kPromptsVariable);
  if (scheme.empty() && (!experts.empty() || prompts == "on")) scheme = "f16";
  if (scheme.empty()) {
    log_line(GGML_LOG_LEVEL_INFO,
             format_text("loaded, and off: name a KV scheme to use it, such as {}=turbo8v4, "
                         "memory for streamed experts, such as {}=4G, or fast prompts, {}=on",
                         kSchemeVariable, kExpertsVariable, kPromptsVariable));
    return nullptr;
  }
  std::string kv_memory(variable(kKvMemoryVariable));
  if (const std::string_view dir = variable(kKvMemoryDirVariable);
      !kv_memory.empty() && !dir.empty()) {
    kv_memory += format_text(",dir={}", dir);
  }
  std::unique_ptr<TurboDevice> device =
      make_device(&plugin.reg, scheme, experts, prompts, kv_memory);
  if (device == nullptr) return nullptr;
  if (const std::string_view path = variable(kFitVariable); !path.empty()) {
    device->exchange_fit_run(std::make_shared<FitRun>(std::string(path)));
    static const EndOfFitRun end{device.get()};
  }
  // If the profile cannot be used, that is logged, and keys are stored without it.
  (void)is_well(device->use_keys(std::string(variable(kProfileVariable))));
  return device;
}

ggml_backend_reg_t init() {
  if (!is_well(probe_ggml(ggml_version()))) return nullptr;
  if (const char* kernels = std::getenv(kKernelsVariable); kernels != nullptr) {
    if (!is_well(limit_kernels(kernels))) return nullptr;
  }
  plugin.default_device = device_of_environment().release();
  return &plugin.reg;
}

}  // namespace
}  // namespace slipstream::turbo

extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init() {
  // Initialises once, even if the plugin is loaded again: models may be using the first device.
  using namespace slipstream::turbo;
  static ggml_backend_reg_t reg = guarded<ggml_backend_reg_t>(nullptr, init);
  return reg;
}

// The plugin suits every CPU: its kernels choose the instruction set themselves.
extern "C" __attribute__((visibility("default"))) int ggml_backend_score() { return 1; }
