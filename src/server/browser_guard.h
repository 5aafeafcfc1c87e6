// BrowserGuard: keeps foreign web pages from using the server through a permitted user's browser.
//
// A page of another origin has that origin in Origin, and is refused unless it was allowed. A page
// whose host name was pointed at this server (DNS rebinding) has that name in Host. So the server
// answers only to its own names, to allowed names and, if other machines can reach it, to IP
// addresses, which nobody can point elsewhere. If every request needs a key, the server may answer
// to all names, because no page knows the key.
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
  bool answers_to_all = false;            // to all names; ignored if it is local
  std::vector<std::string> hosts = {};    // further names for this server, without a port; "*": all
  std::vector<std::string> origins = {};  // "https://chat.example.org"; "*" for all
};

class BrowserGuard {
 public:
  explicit BrowserGuard(BrowserGuardOptions options) : options_(std::move(options)) {}

  // host, origin: the headers of a request; empty if absent. Returns the origin that the answer
  // must allow by CORS; empty if none.
  [[nodiscard]] ApiResult<std::string> check(std::string_view host, std::string_view origin) const;

 private:
  [[nodiscard]] bool knows_host(std::string_view host) const;

  const BrowserGuardOptions options_;
};

}  // namespace slipstream
