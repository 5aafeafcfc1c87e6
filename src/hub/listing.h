// RepoListing: what a repository holds according to the hub's answer to GET
// /api/models/{org}/{repo}/revision/{revision}?blobs=true.
//
// Nothing in it is trusted. Paths that could leave a directory, invalid hashes and commits, and
// impossible sizes make the whole listing kCorrupt, because each would become a name on this disk.
//
// Threads: immutable. Errors: kCorrupt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream::hub {

// Verifies the content of a file, and is its name among the blobs of the cache.
struct ContentHash {
  // Large files have a SHA-256. Files kept in git itself have git's SHA-1 of a blob, which covers
  // "blob SIZE\0" and the content.
  enum class Kind { kSha256, kGitBlob };
  Kind kind = Kind::kSha256;
  std::string hex;  // lower case; empty if the hub does not say
  bool operator==(const ContentHash&) const = default;
};

struct RemoteFile {
  std::string path;  // within the repository, with '/'
  std::uint64_t n_bytes = 0;
  ContentHash hash;
};

struct RepoListing {
  std::string commit;
  std::vector<RemoteFile> files;
};

[[nodiscard]] Result<RepoListing> parse_listing(std::string_view json);

// No absolute path, no "." or "..", no control characters or backslash, no part that is too long.
[[nodiscard]] bool is_safe_path(std::string_view path);
// A commit or a hash: 40 or 64 lower-case hexadecimal digits.
[[nodiscard]] bool is_hex_name(std::string_view text);

}  // namespace slipstream::hub
