// ColdOptions: how much memory the codes of a KV cache may take, and where the rest of them lies, as
// the text of one environment variable:
//
//   6G                                        six GiB of memory for codes, a file in /var/tmp
//   6GiB,dir=/fast/disk                       a file in another directory
//   6G,io=pread                               io=direct|buffered|pread, as experts are read
//
// Threads: immutable. Errors: kInvalidArgument with the valid values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/slab_reader.h"

namespace slipstream::turbo {

struct ColdOptions {
  std::uint64_t memory_bytes = 0;  // 0: all codes stay in memory
  std::string directory = "/var/tmp";
  ReadMethod way = ReadMethod::kUringDirect;
  // For tests: memory that is not held cannot be touched.
  bool is_guarded = false;
};

[[nodiscard]] Result<ColdOptions> parse_cold_options(std::string_view text);

}  // namespace slipstream::turbo
