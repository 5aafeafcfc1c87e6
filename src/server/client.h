// Client: the sender of a request.
//
// Threads: plain data; the account is thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/request.h"
#include "mcp/project_rights.h"
#include "server/client_account.h"

namespace slipstream {

struct Client {
  std::string name;                             // clients take turns, by this name
  Salt salt = 0;                                // keeps clients from sharing cached prefixes
  int priority = 1;                             // 2 gets twice as many turns as 1
  std::shared_ptr<ClientAccount> account = {};  // null: not counted; shared with the list of keys

  std::shared_ptr<const ProjectRights> rights = {};  // to projects of the index; null: all

  void charge_prompt(std::size_t n_tokens) const {
    if (account) account->charge_prompt(n_tokens);
  }
};

}  // namespace slipstream
