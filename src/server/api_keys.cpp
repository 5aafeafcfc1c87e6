#include "server/api_keys.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace slipstream {
namespace {

bool are_equal(const KeyDigest& a, const KeyDigest& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

// The rights of the key among all; null if no key names any project.
std::shared_ptr<const ProjectRights> rights_of(const std::vector<std::string>& own,
                                               const std::vector<ClientKey>& all) {
  std::vector<std::string> others;
  for (const ClientKey& key : all) {
    for (const std::string& project : key.projects) {
      if (!std::ranges::contains(own, project) && !std::ranges::contains(others, project)) {
        others.push_back(project);
      }
    }
  }
  if (own.empty() && others.empty()) return nullptr;
  return std::make_shared<const ProjectRights>(own, std::move(others));
}

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys, Metrics& metrics) : metrics_(metrics) {
  for (const std::string& key : keys) {
    fixed_.push_back(make_entry(
        {.name = format_text("key {}", fixed_.size() + 1), .digest = digest_of_key(key)}));
  }
  const MutexLock lock(mutex_);
  if (!fixed_.empty()) entries_ = std::make_shared<const Entries>(fixed_);
}

ApiKeys::Entry ApiKeys::make_entry(const ClientKey& key) const {
  Entry entry{.digest = key.digest,
              .client = {.name = key.name,
                         .priority = key.priority,
                         .account = std::make_shared<ClientAccount>(key.name, key.limits,
                                                                    metrics_.client(key.name))}};
  std::memcpy(&entry.client.salt, key.digest.data(), sizeof(entry.client.salt));
  return entry;
}

void ApiKeys::set_file_keys(const std::vector<ClientKey>& keys) {
  const std::shared_ptr<const Entries> before = entries();
  Entries all = fixed_;
  for (Entry& entry : all) entry.client.rights = rights_of({}, keys);
  for (const ClientKey& key : keys) {
    Entry entry = make_entry(key);
    entry.client.rights = rights_of(key.projects, keys);
    if (before) {
      const auto old =
          std::ranges::find(*before, key.name, [](const Entry& e) { return e.client.name; });
      if (old != before->end()) {
        entry.client.account = old->client.account;
        entry.client.account->set_limits(key.limits);
      }
    }
    all.push_back(std::move(entry));
  }
  const MutexLock lock(mutex_);
  entries_ = std::make_shared<const Entries>(std::move(all));
}

std::shared_ptr<const ApiKeys::Entries> ApiKeys::entries() const {
  const MutexLock lock(mutex_);
  return entries_;
}

ApiResult<Client> ApiKeys::check(std::string_view authorization, std::string_view x_api_key) const {
  const std::shared_ptr<const Entries> keys = entries();
  if (!keys) return Client{};
  constexpr std::string_view kScheme = "Bearer ";
  const bool is_bearer = boost::beast::iequals(authorization.substr(0, kScheme.size()), kScheme);
  const std::string_view given = is_bearer ? authorization.substr(kScheme.size()) : x_api_key;
  const KeyDigest digest = digest_of_key(given);
  const Client* found = nullptr;
  for (const Entry& entry : *keys) {  // no early exit, so that the time reveals nothing
    if (are_equal(entry.digest, digest)) found = &entry.client;
  }
  if (found != nullptr) return *found;
  return std::unexpected(ApiError{.status = 401,
                                  .message = given.empty()
                                                 ? "An API key is needed: Authorization: Bearer KEY"
                                                 : "This API key is not known",
                                  .code = "invalid_api_key"});
}

}  // namespace slipstream
