// ApiKeys: who may ask. Without keys, everybody.
//
// Keys come from the command line, without limits, and from a file (keys_file.h) that may be read
// again. They are compared in a time that does not depend on where they differ, and each key's
// prefixes are salted with it: one tenant cannot find out what another has asked.
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

  // In the place of those that were there. Who keeps its name keeps what it has used.
  void set_file_keys(const std::vector<ClientKey>& keys);

  // By the headers "Authorization: Bearer KEY" (OpenAI's) or, without it, "X-Api-Key: KEY" (Anthropic's).
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
  Entries fixed_;  // of the command line
  mutable Mutex mutex_;
  // Null: everybody may ask. Shared with checks that go on while it is replaced.
  std::shared_ptr<const Entries> entries_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream
