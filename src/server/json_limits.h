// JsonLimits: how deep, many and large the values of JSON may be.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct JsonLimits {
  // JSON of a client that is nested deeper or has more values is refused while it is read, in a
  // body and in a string that is read as JSON again (server/bounded_json.h). So is what takes more
  // memory than this, or so many times that of its text, but for the first megabyte: messages of
  // one letter take nine times theirs, a list of such texts sixteen.
  std::size_t json_nesting_max = 128;
  std::size_t json_values_max = std::size_t{1} << 23;
  std::size_t json_bytes_max = std::size_t{128} << 20;
  std::size_t json_free_bytes = std::size_t{1} << 20;
  std::size_t json_bytes_per_byte_max = 10;
};

inline constexpr JsonLimits kJsonLimits{};

}  // namespace slipstream
