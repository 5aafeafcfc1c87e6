#include "device/attention/kernel_choice.h"

#include <hwy/targets.h>

#include <atomic>
#include <cstdint>

#include "base/format.h"
#include "contract/environment.h"
#include "device/attention/amx.h"

namespace slipstream::turbo {
namespace {

std::atomic<bool>& amx_allowed() {
  static std::atomic<bool> allowed = true;
  return allowed;
}

#if HWY_ARCH_X86
// Highway's targets are bits; a better target is a lower bit.
void disable_better_than(std::int64_t target) { hwy::DisableTargets(target - 1); }
#endif

// A name of another architecture is refused like any other: a measurement of kernels that do not
// exist here would be one of something else.
std::unexpected<Error> refuse_kernels(std::string_view name, std::string_view names) {
  return fail(Code::kInvalidArgument, format_text("{}={} is not one of this machine's kernels: {}",
                                                  kKernelsVariable, name, names));
}

}  // namespace

#if HWY_ARCH_X86
Result<void> limit_kernels(std::string_view name) {
  if (name != "amx" && name != "avx512" && name != "avx2") {
    return refuse_kernels(name, "amx, avx512, avx2");
  }
  amx_allowed() = name == "amx";
  if (name == "avx2") disable_better_than(HWY_AVX2);
  return {};
}
#else
Result<void> limit_kernels(std::string_view name) {
  if (name != "neon") return refuse_kernels(name, "neon");
  return {};
}
#endif

bool use_amx() { return amx_allowed() && has_amx(); }

}  // namespace slipstream::turbo
