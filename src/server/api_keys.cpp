#include "server/api_keys.h"

#include <boost/hash2/sha2.hpp>
#include <cstring>

#include "base/format.h"

namespace slipstream {
namespace {

// Of the same length whatever is compared: digests, not keys.
auto digest_of(std::string_view text) {
  boost::hash2::sha2_256 hash;
  hash.update(text.data(), text.size());
  return hash.result();
}

bool are_equal(std::string_view a, std::string_view b) {
  const auto digest_a = digest_of(a);
  const auto digest_b = digest_of(b);
  unsigned difference = 0;
  for (std::size_t i = 0; i < digest_a.size(); ++i) {
    difference |= static_cast<unsigned>(digest_a[i] ^ digest_b[i]);
  }
  return difference == 0;
}

}  // namespace

ApiResult<Client> ApiKeys::check(std::string_view authorization) const {
  if (keys_.empty()) return Client{};
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given =
      authorization.starts_with(kScheme) ? authorization.substr(kScheme.size()) : "";
  const std::string* found = nullptr;
  std::size_t number = 0;
  for (std::size_t i = 0; i < keys_.size(); ++i) {  // all of them, whichever it is
    if (are_equal(keys_[i], given)) {
      found = &keys_[i];
      number = i;
    }
  }
  if (found == nullptr) {
    return std::unexpected(
        ApiError{.status = 401,
                 .message = given.empty() ? "An API key is needed: Authorization: Bearer KEY"
                                          : "This API key is not known",
                 .code = "invalid_api_key"});
  }
  Client client{.name = format_text("key {}", number + 1)};
  const auto digest = digest_of(*found);
  std::memcpy(&client.salt, digest.data(), sizeof(client.salt));
  return client;
}

}  // namespace slipstream
