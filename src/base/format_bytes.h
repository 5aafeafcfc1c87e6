// A number of bytes for people: "23.4 GiB", below one GiB "640 MiB".
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstdint>
#include <string>

namespace slipstream {

std::string format_bytes(std::uint64_t n_bytes);

}  // namespace slipstream
