// Scheme: how many bits keys and values get, and in which layers it is otherwise.
//
//   turbo4          4-bit keys and values          turbo8v4   8-bit keys, 4-bit values
//   turbo0v4        keys stay f16                  f16        nothing is compressed
//   turbo<K>v<V>    any widths of 0, 2, 3, 4 and 8 bits, where 0 stays f16
//   turbo4,0-1=turbo8,27=turbo8v4                  the first two layers and layer 27 otherwise
//
// Threads: immutable. Errors: parse_scheme gives kInvalidArgument with the list of names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream::turbo {

struct Bits {
  int keys = 0;  // 0: stays as it is
  int values = 0;
  bool operator==(const Bits&) const = default;
};

class Scheme {
 public:
  [[nodiscard]] Bits bits_of_layer(int layer) const;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  friend Result<Scheme> parse_scheme(std::string_view text);
  struct Override {
    int first_layer;
    int last_layer;
    Bits bits;
  };
  std::string name_;
  Bits bits_;
  std::vector<Override> overrides_;
};

[[nodiscard]] Result<Scheme> parse_scheme(std::string_view text);

}  // namespace slipstream::turbo
