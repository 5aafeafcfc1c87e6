// Which widths the layers' keys and values get: the fewest bytes whose divergences, added up, stay
// within a budget.
//
// Divergences of single layers are taken as additive, which is a guess; what is chosen is measured
// as a whole afterwards (docs/calibrate.md).
//
// Threads: pure functions. Errors: none; a group without options is a bug of the caller.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/model/kv_scheme.h"

namespace slipstream::calibrate {

// Keys or values of a group of layers at one width, all others being at 8 bits.
struct WidthOption {
  int bits = 8;
  double kl = 0;               // what the width adds to the mean divergence
  double bytes_per_token = 0;  // of all layers of the group
};

// Layers that follow each other and have one width.
struct LayerGroup {
  int first_layer = 0;
  int last_layer = 0;
  std::vector<WidthOption> keys;  // 8 bits first, then as far as was measured
  std::vector<WidthOption> values;
};

struct ChosenGroup {
  int first_layer = 0;
  int last_layer = 0;
  turbo::Bits bits = {};
  double kl = 0;  // of keys and values together
};

struct WidthChoice {
  std::vector<ChosenGroup> groups;
  double kl = 0;
};

// A budget below what the widest options add up to gives just these.
[[nodiscard]] WidthChoice choose_widths(std::span<const LayerGroup> groups, double budget);

// "turbo4v3,0-3=turbo8v4": what most layers have, and those that differ.
[[nodiscard]] std::string scheme_of(std::span<const ChosenGroup> groups);
// "turbo4", "turbo8v4"
[[nodiscard]] std::string scheme_of(turbo::Bits bits);

}  // namespace slipstream::calibrate
