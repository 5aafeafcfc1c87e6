// BrowserGuard: keeps web pages from using a server through the browser of somebody who may.
//
// A page of another origin says so in Origin, and is refused unless its origin was allowed. A page
// whose name was pointed at this address (DNS rebinding) gives itself away by its name in Host: a
// server only answers to its own names, to those that were allowed and, if others can reach it, to
// addresses, which nobody can point elsewhere. Where every request needs a key it may answer to all
// names: no page knows the key.
//
// Threads: immutable. Errors: 403.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"

namespace slipstream {

struct BrowserGuardOptions {
  bool is_local = true;                   // the server listens on a loopback address
  bool answers_to_all = false;            // unless it is local
  std::vector<std::string> hosts = {};    // further names for this server, without a port; "*": all
  std::vector<std::string> origins = {};  // "https://chat.example.org"; "*" for all
};

class BrowserGuard {
 public:
  explicit BrowserGuard(BrowserGuardOptions options) : options_(std::move(options)) {}

  // The headers of a request; empty if absent. The result is the origin that the answer is to allow
  // by CORS; empty: none.
  [[nodiscard]] ApiResult<std::string> check(std::string_view host, std::string_view origin) const;

 private:
  [[nodiscard]] bool knows_host(std::string_view host) const;

  const BrowserGuardOptions options_;
};

}  // namespace slipstream
