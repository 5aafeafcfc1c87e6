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

// Highway's targets are bits; a better target is a lower bit.
void disable_better_than(std::int64_t target) { hwy::DisableTargets(target - 1); }

}  // namespace

Result<void> limit_kernels(std::string_view name) {
  amx_allowed() = name == "amx";
  if (name == "amx" || name == "avx512" || name == "neon") return {};
  if (name == "avx2") {
    disable_better_than(HWY_AVX2);
    return {};
  }
  return fail(Code::kInvalidArgument,
              format_text("{}={} is not one of amx, avx512, avx2, neon", kKernelsVariable, name));
}

bool use_amx() { return amx_allowed() && has_amx(); }

}  // namespace slipstream::turbo
