// ApiKeys: checks which clients may use the server. Without keys, everybody may.
//
// Keys come from the command line, without limits, and from a file (keys_file.h) that may be read
// again. The time of a comparison does not depend on where keys differ. The prefixes of each key
// are salted with it, so that one client cannot find out what another has asked.
//
// Threads: thread-safe. Errors: 401.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "server/api/api_error.h"
#include "server/client.h"
#include "server/keys_file.h"
#include "server/metrics.h"

namespace slipstream {

class ApiKeys {
 public:
  ApiKeys(const std::vector<std::string>& keys, Metrics& metrics);

  // Replaces the keys from the file. A key whose name stays keeps its account and what it has used.
  void set_file_keys(const std::vector<ClientKey>& keys);

  // Finds the client by the header "Authorization: Bearer KEY" (OpenAI's) or, without it, by
  // "X-Api-Key: KEY" (Anthropic's).
  [[nodiscard]] ApiResult<Client> check(std::string_view authorization,
                                        std::string_view x_api_key) const;

 private:
  struct Entry {
    KeyDigest digest;
    Client client;
  };
  using Entries = std::vector<Entry>;
  [[nodiscard]] Entry make_entry(const ClientKey& key) const;
  [[nodiscard]] std::shared_ptr<const Entries> entries() const;

  Metrics& metrics_;
  Entries fixed_;  // from the command line
  mutable Mutex mutex_;
  // Null: everybody may use the server. Shared with checks that are running when it is replaced.
  std::shared_ptr<const Entries> entries_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream
