// The scalar specification of the integer kernels of chunk_kernels.h: one number at a time.
//
// Threads: thread-safe.
#pragma once

#include "device/attention/chunk_kernels.h"

namespace slipstream::turbo::ref {

void expand_keys(const KeyCodes& form, const std::uint8_t* codes, std::uint8_t* bytes);
void expand_values(int bits, int head_dim, const std::uint8_t* codes, int tile, std::int8_t* bytes);
void dot_rows(const DotRows& work);
void weighted_sum_rows(const WeightedSumRows& work);

}  // namespace slipstream::turbo::ref
