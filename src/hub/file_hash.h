// The hash of a file's content, as the hub names it (listing.h). OpenSSL computes it: it uses the
// CPU's SHA instructions, and a model has gigabytes.
//
// Threads: thread-safe.
// Errors:  as of reading the file; kUnsupported where OpenSSL has no such hash; kCancelled.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/listing.h"

namespace slipstream::hub {

// In lower-case hexadecimal. on_bytes is told after each part how many have been read; false ends
// it.
[[nodiscard]] Result<std::string> hash_file(
    const std::filesystem::path& path, ContentHash::Kind kind,
    const std::function<bool(std::uint64_t)>& on_bytes = {});

}  // namespace slipstream::hub
