#include "bench/quality/log_probs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "engine/sampling/logprobs.h"

namespace slipstream::quality {
namespace {

constexpr float kSpanMax = 16;
constexpr float kCodeMax = 65535;
constexpr std::size_t kHeadCodes = row_codes(0);

}  // namespace

Result<void> encode_log_probs(std::span<const float> logits, std::span<std::uint16_t> row) {
  SLIP_CHECK(row.size() == row_codes(logits.size()), "a row of another vocabulary");
  const Result<float> highest = checked_max(logits);
  if (!highest) return std::unexpected(highest.error());
  const float lowest_logit = std::max(std::ranges::min(logits), *highest - kSpanMax);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - *highest);
  const float step = (*highest - lowest_logit) / kCodeMax;
  const float lowest = lowest_logit - *highest - static_cast<float>(std::log(sum));
  std::memcpy(row.data(), &step, sizeof(step));
  std::memcpy(row.data() + 2, &lowest, sizeof(lowest));
  std::ranges::transform(logits, row.begin() + kHeadCodes, [&](float logit) {
    if (logit <= lowest_logit) return std::uint16_t{0};
    return static_cast<std::uint16_t>(
        std::min(std::round((logit - lowest_logit) / step), kCodeMax));
  });
  return {};
}

LogProbsView::LogProbsView(std::span<const std::uint16_t> row) : codes_(row.subspan(kHeadCodes)) {
  std::memcpy(&step_, row.data(), sizeof(step_));
  std::memcpy(&lowest_, row.data() + 2, sizeof(lowest_));
}

}  // namespace slipstream::quality
