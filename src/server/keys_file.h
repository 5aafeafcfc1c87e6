// read_keys_file(): who may ask, and how much, from a file of the operator's:
//
//   {"keys": [{"name": "ann", "key": "..."},
//             {"name": "batch", "key_sha256": "9f86d0...", "priority": 1,
//              "max_parallel_requests": 2, "tokens_per_minute": 60000}]}
//
// A file that others may read must have no keys, only hashes of them. Everything that is not
// understood is refused: a limit that is misspelt would be none.
//
// Threads: immutable. Errors: kInvalidArgument, kPermission, kIo: they say where in the file.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/client_account.h"

namespace slipstream {

// SHA-256 of a key: what is compared is of one length, whatever a client sends.
using KeyDigest = std::array<unsigned char, 32>;
[[nodiscard]] KeyDigest digest_of_key(std::string_view key);

struct ClientKey {
  std::string name;  // for logs, metrics and turns; never the key
  KeyDigest digest;
  int priority = 1;  // 2 has twice the turns of 1
  ClientLimits limits = {};
};

[[nodiscard]] Result<std::vector<ClientKey>> read_keys_file(const std::string& path);

}  // namespace slipstream
