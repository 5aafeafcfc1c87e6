// ApiKeys: who may ask. Without keys, everybody.
//
// Keys are compared in a time that does not depend on where they differ, and each key's prefixes
// are salted with it: one tenant cannot find out what another has asked.
//
// Threads: immutable. Errors: 401.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/routes/generation.h"

namespace slipstream {

class ApiKeys {
 public:
  explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  // authorization: the header, "Bearer KEY".
  [[nodiscard]] ApiResult<Client> check(std::string_view authorization) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace slipstream
