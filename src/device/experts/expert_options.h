// ExpertOptions: how the experts of a model are streamed, as the text of one environment variable:
//
//   4G                                       four GiB of memory for experts, defaults for the rest
//   4G,policy=lru,io=buffered,lookahead=off  each choice named
//   4G,trace=FILE                            writes at the end how often each expert was used
//   4G,pin=FILE                              keeps the most used experts of such a file in memory
//
// Threads: immutable. Errors: kInvalidArgument with the valid values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/slab_reader.h"
#include "device/experts/expert_slots.h"

namespace slipstream::turbo {

struct ExpertOptions {
  std::uint64_t cache_bytes = 0;  // 0: experts are not streamed
  CachePolicy policy = CachePolicy::kAutomatic;
  ReadMethod way = ReadMethod::kUringDirect;
  bool looks_ahead = true;  // reads experts that the next layer's router will probably choose
  std::string trace_path;
  std::string pin_path;
};

[[nodiscard]] Result<ExpertOptions> parse_expert_options(std::string_view text);

}  // namespace slipstream::turbo
