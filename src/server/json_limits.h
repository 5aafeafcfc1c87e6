// JsonLimits: limits for the nesting, the number and the memory of JSON values.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct JsonLimits {
  // A client's JSON that exceeds a limit is refused during parsing, both in a body and in a string
  // that is parsed as JSON (server/bounded_json.h). Its memory may be at most json_bytes_max, and
  // at most json_bytes_per_byte_max times its text plus json_free_bytes. Messages of one letter
  // take nine times their text; a list of one-letter texts takes sixteen times.
  std::size_t json_nesting_max = 128;
  std::size_t json_values_max = std::size_t{1} << 23;
  std::size_t json_bytes_max = std::size_t{128} << 20;
  std::size_t json_free_bytes = std::size_t{1} << 20;
  std::size_t json_bytes_per_byte_max = 10;
};

inline constexpr JsonLimits kJsonLimits{};

}  // namespace slipstream
