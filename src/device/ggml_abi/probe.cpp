#include "device/ggml_abi/probe.h"

#include <dlfcn.h>
#include <ggml-cpp.h>

#include <string>

#include "base/format.h"
#include "device/ggml_abi/ggml_abi.h"

namespace slipstream::turbo {
namespace {

// Records the first disagreement. A function pointer is called only after is_code() has found that
// it points into code.
class Comparison {
 public:
  template <typename Function>
  bool is_code(Function* function, std::string_view name) {
    Dl_info info{};
    return require(
        function != nullptr && ::dladdr(reinterpret_cast<const void*>(function), &info) != 0, name);
  }

  bool require(bool agrees, std::string_view name) {
    if (!agrees && first_difference_.empty()) first_difference_ = name;
    return agrees;
  }

  bool same_text(const char* ours, const char* theirs, std::string_view name) {
    return require(ours != nullptr && std::string_view(ours) == theirs, name);
  }

  [[nodiscard]] const std::string& first_difference() const { return first_difference_; }

 private:
  std::string first_difference_;
};

bool compare_reg(Comparison& compare, ggml_backend_reg_t reg) {
  const ggml_backend_reg_i& iface = reg->iface;
  return compare.require(reg->api_version == kBackendApiVersion, "reg.api_version") &&
         compare.is_code(iface.get_name, "reg.get_name") &&
         compare.is_code(iface.get_device_count, "reg.get_device_count") &&
         compare.is_code(iface.get_device, "reg.get_device") &&
         compare.same_text(iface.get_name(reg), ggml_backend_reg_name(reg), "reg.get_name") &&
         compare.require(iface.get_device_count(reg) == ggml_backend_reg_dev_count(reg),
                         "reg.get_device_count") &&
         compare.require(iface.get_device(reg, 0) == ggml_backend_reg_dev_get(reg, 0),
                         "reg.get_device");
}

bool compare_device(Comparison& compare, ggml_backend_dev_t device, ggml_backend_reg_t reg) {
  const ggml_backend_device_i& iface = device->iface;
  if (!compare.is_code(iface.get_name, "device.get_name") ||
      !compare.is_code(iface.get_description, "device.get_description") ||
      !compare.is_code(iface.get_memory, "device.get_memory") ||
      !compare.is_code(iface.get_type, "device.get_type") ||
      !compare.is_code(iface.get_props, "device.get_props") ||
      !compare.is_code(iface.init_backend, "device.init_backend") ||
      !compare.is_code(iface.get_buffer_type, "device.get_buffer_type") ||
      !compare.is_code(iface.supports_op, "device.supports_op") ||
      !compare.is_code(iface.supports_buft, "device.supports_buft")) {
    return false;
  }
  ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(device);
  return compare.same_text(iface.get_name(device), ggml_backend_dev_name(device),
                           "device.get_name") &&
         compare.same_text(iface.get_description(device), ggml_backend_dev_description(device),
                           "device.get_description") &&
         compare.require(iface.get_type(device) == ggml_backend_dev_type(device),
                         "device.get_type") &&
         compare.require(iface.get_buffer_type(device) == buft, "device.get_buffer_type") &&
         compare.require(iface.supports_buft(device, buft), "device.supports_buft") &&
         compare.require(device->reg == reg, "device.reg");
}

bool compare_buffer_type(Comparison& compare, ggml_backend_buffer_type_t buft) {
  const ggml_backend_buffer_type_i& iface = buft->iface;
  return compare.is_code(iface.get_name, "buffer_type.get_name") &&
         compare.is_code(iface.alloc_buffer, "buffer_type.alloc_buffer") &&
         compare.is_code(iface.get_alignment, "buffer_type.get_alignment") &&
         compare.is_code(iface.is_host, "buffer_type.is_host") &&
         compare.same_text(iface.get_name(buft), ggml_backend_buft_name(buft),
                           "buffer_type.get_name") &&
         compare.require(iface.get_alignment(buft) == ggml_backend_buft_get_alignment(buft),
                         "buffer_type.get_alignment") &&
         compare.require(iface.is_host(buft) == ggml_backend_buft_is_host(buft),
                         "buffer_type.is_host") &&
         compare.require(buft->device == ggml_backend_buft_get_device(buft), "buffer_type.device");
}

bool compare_buffer(Comparison& compare, ggml_backend_buffer_type_t buft) {
  constexpr size_t kBytes = 4096;
  const ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(buft, kBytes));
  if (!compare.require(buffer != nullptr, "buffer")) return false;
  const ggml_backend_buffer_i& iface = buffer->iface;
  return compare.is_code(iface.get_base, "buffer.get_base") &&
         compare.is_code(iface.memset_tensor, "buffer.memset_tensor") &&
         compare.is_code(iface.set_tensor, "buffer.set_tensor") &&
         compare.is_code(iface.get_tensor, "buffer.get_tensor") &&
         compare.is_code(iface.clear, "buffer.clear") &&
         compare.require(iface.get_base(buffer.get()) == ggml_backend_buffer_get_base(buffer.get()),
                         "buffer.get_base") &&
         compare.require(buffer->buft == buft, "buffer.buft") &&
         compare.require(buffer->size == ggml_backend_buffer_get_size(buffer.get()),
                         "buffer.size") &&
         compare.require(buffer->usage == ggml_backend_buffer_get_usage(buffer.get()),
                         "buffer.usage");
}

bool compare_backend(Comparison& compare, ggml_backend_dev_t device) {
  const ggml_backend_ptr backend(ggml_backend_dev_init(device, nullptr));
  if (!compare.require(backend != nullptr, "backend")) return false;
  const ggml_backend_i& iface = backend->iface;
  return compare.is_code(iface.get_name, "backend.get_name") &&
         compare.is_code(iface.free, "backend.free") &&
         compare.is_code(iface.graph_compute, "backend.graph_compute") &&
         compare.same_text(iface.get_name(backend.get()), ggml_backend_name(backend.get()),
                           "backend.get_name") &&
         compare.require(backend->guid == ggml_backend_guid(backend.get()), "backend.guid") &&
         compare.require(backend->device == device, "backend.device");
}

}  // namespace

bool is_tested_ggml(std::string_view version) { return version == "0.27.0"; }

Result<void> probe_ggml(std::string_view version) {
  if (!is_tested_ggml(version)) {
    return fail(Code::kUnsupported,
                format_text("this ggml is {}, tested is 0.27.0: install that, or a newer "
                            "libggml-turbo.so",
                            version));
  }
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr) {
    return fail(Code::kUnsupported, "no CPU backend is loaded: load ggml's CPU backend first");
  }
  Comparison compare;
  ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(cpu);
  ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(cpu);
  const bool same = compare_reg(compare, reg) && compare_device(compare, cpu, reg) &&
                    compare_buffer_type(compare, buft) && compare_buffer(compare, buft) &&
                    compare_backend(compare, cpu);
  if (!same) {
    return fail(Code::kUnsupported,
                format_text("ggml {} lays out {} differently from what this plugin was built for: "
                            "install a libggml-turbo.so made for it",
                            version, compare.first_difference()));
  }
  return {};
}

}  // namespace slipstream::turbo
