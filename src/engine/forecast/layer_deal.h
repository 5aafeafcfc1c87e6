// deal_layers(): which machine computes which layers of a model.
//
// Machines take layers in order, and all fill the same share of the memory they have, as far as
// whole layers allow: the least share with which all layers find room.
//
// Threads: pure function. Errors: kOutOfMemory with the numbers of all machines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slipstream {

struct LayerTaker {
  std::string name;
  std::uint64_t available_bytes = 0;
  std::uint64_t fixed_bytes = 0;  // beside layers
  bool is_needed = false;         // takes fixed_bytes even without layers
};

// layers: the bytes of each. Gives the number of layers of each machine; some may get none.
[[nodiscard]] Result<std::vector<int>> deal_layers(std::span<const std::uint64_t> layers,
                                                   std::span<const LayerTaker> machines);

}  // namespace slipstream
