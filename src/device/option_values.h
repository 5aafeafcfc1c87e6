// Values that several options of the plugin have: a size in bytes, a way to read a file.
//
// Threads: thread-safe. Errors: kInvalidArgument with the valid values.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/slab_reader.h"

namespace slipstream::turbo {

// "6G", "6GiB", "512M", "65536": binary multiples. what: of which it is the size, for the message.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text, std::string_view what);

// "direct", "buffered" or "pread".
[[nodiscard]] Result<ReadMethod> parse_read_method(std::string_view name);

}  // namespace slipstream::turbo
