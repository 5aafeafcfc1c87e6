// read_keys_file(): reads the operator's file of clients and their limits:
//
//   {"keys": [{"name": "ann", "key": "..."},
//             {"name": "batch", "key_sha256": "9f86d0...", "priority": 1,
//              "max_parallel_requests": 2, "tokens_per_minute": 60000},
//             {"name": "bob", "key": "...", "projects": ["/srv/bob"]}]}
//
// Folders of the index that a key names as its projects are seen by those keys alone that name them.
// A file that others may read must have hashes instead of keys. Unknown fields are refused, because
// a misspelt limit would otherwise have no effect.
//
// Threads: immutable. Errors: kInvalidArgument, kPermission, kIo, with the place in the file.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/client_account.h"

namespace slipstream {

// The SHA-256 of a key. All compared values have the same length, whatever a client sends.
using KeyDigest = std::array<unsigned char, 32>;
[[nodiscard]] KeyDigest digest_of_key(std::string_view key);

struct ClientKey {
  std::string name;  // for logs, metrics and turns; never the key
  KeyDigest digest;
  int priority = 1;  // 2 gets twice as many turns as 1
  ClientLimits limits = {};
  std::vector<std::string> projects = {};  // folders, as whole paths
};

[[nodiscard]] Result<std::vector<ClientKey>> read_keys_file(const std::string& path);

}  // namespace slipstream
