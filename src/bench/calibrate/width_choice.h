// Chooses the widths of the layers' keys and values: the fewest bytes whose added divergences stay
// within a budget.
//
// Divergences of single layers are assumed to add up, which is a guess. The choice is measured as a
// whole afterwards (docs/calibrate.md).
//
// Threads: pure functions. Errors: none; a group without options is a bug of the caller.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/model/kv_scheme.h"

namespace slipstream::calibrate {

// Keys or values of a group of layers at one width, with everything else at 8 bits.
struct WidthOption {
  int bits = 8;
  double kl = 0;               // what the width adds to the mean divergence
  double bytes_per_token = 0;  // for all layers of the group
};

// Consecutive layers with the same width.
struct LayerGroup {
  int first_layer = 0;
  int last_layer = 0;
  std::vector<WidthOption> keys;  // 8 bits first, then the measured widths
  std::vector<WidthOption> values;
};

struct ChosenGroup {
  int first_layer = 0;
  int last_layer = 0;
  turbo::Bits bits = {};
  double kl = 0;  // keys and values together
};

struct WidthChoice {
  std::vector<ChosenGroup> groups;
  double kl = 0;
};

// If the budget is below the sum of the widest options, the result is these options.
[[nodiscard]] WidthChoice choose_widths(std::span<const LayerGroup> groups, double budget);

// "turbo4v3,0-3=turbo8v4": the widths of most layers, and the layers that differ.
[[nodiscard]] std::string scheme_of(std::span<const ChosenGroup> groups);
// "turbo4", "turbo8v4"
[[nodiscard]] std::string scheme_of(turbo::Bits bits);

}  // namespace slipstream::calibrate
