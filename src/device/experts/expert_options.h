// ExpertOptions: how the experts of a model are streamed, as a text for one variable:
//
//   4G                                       memory for four GiB of experts, the rest as is best
//   4G,policy=lru,io=buffered,lookahead=off  each choice named
//   4G,trace=FILE                            writes how often each expert was used, at the end
//   4G,pin=FILE                              such a file: its most used experts stay in memory
//
// Threads: immutable. Errors: kInvalidArgument with what is allowed.
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
  bool looks_ahead = true;  // reads what the next layer's router will probably choose
  std::string trace_path;
  std::string pin_path;
};

[[nodiscard]] Result<ExpertOptions> parse_expert_options(std::string_view text);

}  // namespace slipstream::turbo
