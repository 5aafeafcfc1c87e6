// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/attention/query_kernels.h"

#include <limits>

#include "device/attention/chunk_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/attention/query_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

using QueryFloats = hn::CappedTag<float, 16>;
using QuerySteps = hn::Rebind<std::int32_t, QueryFloats>;
using QueryDigits = hn::Rebind<std::int8_t, QueryFloats>;

float PeakOf(const float* vector, std::size_t n) {
  const QueryFloats df;
  auto peak = hn::Zero(df);
  auto is_broken = hn::MaskFalse(df);
  for (std::size_t c = 0; c < n; c += hn::Lanes(df)) {
    const auto numbers = hn::Abs(hn::LoadU(df, vector + c));
    peak = hn::Max(peak, numbers);
    is_broken = hn::Or(is_broken, hn::Not(hn::IsFinite(numbers)));
  }
  return hn::AllFalse(df, is_broken) ? hn::ReduceMax(df, peak)
                                     : std::numeric_limits<float>::infinity();
}

float Dot(const float* a, const float* b, std::size_t n) {
  const QueryFloats df;
  auto sum = hn::Zero(df);
  for (std::size_t c = 0; c < n; c += hn::Lanes(df)) {
    sum = hn::MulAdd(hn::LoadU(df, a + c), hn::LoadU(df, b + c), sum);
  }
  return hn::ReduceSum(df, sum);
}

HWY_INLINE auto steps_at(const float* vector, float per_step) {
  const QueryFloats df;
  return hn::NearestInt(hn::Mul(hn::LoadU(df, vector), hn::Set(df, per_step)));
}

std::int32_t QuantiseDigit(const float* vector, std::size_t n, float per_step,
                           std::int8_t* digits) {
  const QuerySteps ds;
  auto sum = hn::Zero(ds);
  for (std::size_t c = 0; c < n; c += hn::Lanes(ds)) {
    const auto steps = steps_at(vector + c, per_step);
    sum = hn::Add(sum, steps);
    hn::StoreU(hn::DemoteTo(QueryDigits(), steps), QueryDigits(), digits + c);
  }
  return hn::ReduceSum(ds, sum);
}

std::int32_t QuantiseDigits(const float* vector, std::size_t n, float per_step, std::int8_t* high,
                            std::int8_t* low) {
  const QuerySteps ds;
  auto sum = hn::Zero(ds);
  for (std::size_t c = 0; c < n; c += hn::Lanes(ds)) {
    const auto steps = steps_at(vector + c, per_step);
    sum = hn::Add(sum, steps);
    const auto half = hn::Set(ds, 1 << (kQueryDigitShift - 1));
    const auto upper = hn::ShiftRight<kQueryDigitShift>(hn::Add(steps, half));
    const auto lower = hn::Sub(steps, hn::ShiftLeft<kQueryDigitShift>(upper));
    hn::StoreU(hn::DemoteTo(QueryDigits(), upper), QueryDigits(), high + c);
    hn::StoreU(hn::DemoteTo(QueryDigits(), lower), QueryDigits(), low + c);
  }
  return hn::ReduceSum(ds, sum);
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(PeakOf);
HWY_EXPORT(Dot);
HWY_EXPORT(QuantiseDigit);
HWY_EXPORT(QuantiseDigits);

float peak_of(std::span<const float> vector) {
  return HWY_DYNAMIC_DISPATCH(PeakOf)(vector.data(), vector.size());
}
float dot_channels(std::span<const float> a, std::span<const float> b) {
  return HWY_DYNAMIC_DISPATCH(Dot)(a.data(), b.data(), a.size());
}
std::int32_t quantise_digit(std::span<const float> vector, float per_step, std::int8_t* digits) {
  return HWY_DYNAMIC_DISPATCH(QuantiseDigit)(vector.data(), vector.size(), per_step, digits);
}
std::int32_t quantise_digits(std::span<const float> vector, float per_step, std::int8_t* high,
                             std::int8_t* low) {
  return HWY_DYNAMIC_DISPATCH(QuantiseDigits)(vector.data(), vector.size(), per_step, high, low);
}

}  // namespace slipstream::turbo
#endif
