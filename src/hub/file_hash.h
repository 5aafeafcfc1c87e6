// The hash of a file's content, in the hub's form (listing.h). OpenSSL computes it, because it uses
// the CPU's SHA instructions and a model has gigabytes.
//
// Threads: thread-safe.
// Errors:  those of reading the file; kUnsupported if OpenSSL has no such hash; kCancelled.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/listing.h"

namespace slipstream::hub {

// Returns lower-case hexadecimal. After each part, on_bytes gets the number of bytes read so far;
// if it returns false, hashing ends.
[[nodiscard]] Result<std::string> hash_file(
    const std::filesystem::path& path, ContentHash::Kind kind,
    const std::function<bool(std::uint64_t)>& on_bytes = {});

}  // namespace slipstream::hub
