// Client: who asks.
//
// Threads: plain data; the account is thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/request.h"
#include "server/client_account.h"

namespace slipstream {

struct Client {
  std::string name;                             // clients take turns
  Salt salt = 0;                                // and see no prefixes of each other's
  int priority = 1;                             // 2 has twice the turns of 1
  std::shared_ptr<ClientAccount> account = {};  // null: nobody counts; shared with the list of keys

  void charge_prompt(std::size_t n_tokens) const {
    if (account) account->charge_prompt(n_tokens);
  }
};

}  // namespace slipstream
