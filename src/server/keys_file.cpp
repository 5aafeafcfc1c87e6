#include "server/keys_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/algorithm/hex.hpp>
#include <boost/hash2/sha2.hpp>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "server/api/json_fields.h"
#include "server/bounded_json.h"

namespace slipstream {
namespace {

constexpr std::size_t kNameBytesMax = 64;
constexpr int kPriorityMax = 100;
constexpr std::array<std::string_view, 7> kFields = {
    "name",    "key", "key_sha256", "priority", "max_parallel_requests", "tokens_per_minute",
    "projects"};

// The name becomes a word in the log and a label of metrics.
bool is_name(std::string_view name) {
  constexpr std::string_view kOthers = "-_.@";
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.contains(c);
  });
}

std::optional<KeyDigest> read_digest(std::string_view hex) {
  KeyDigest digest{};
  const auto is_digit = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  if (hex.size() != 2 * digest.size() || !std::ranges::all_of(hex, is_digit)) return std::nullopt;
  boost::algorithm::unhex(hex.begin(), hex.end(), digest.begin());
  return digest;
}

std::optional<KeyDigest> read_key(JsonFields& fields) {
  const std::optional<std::string> key = fields.text("key");
  const std::optional<std::string> hash = fields.text("key_sha256");
  if (key.has_value() == hash.has_value()) {
    fields.refuse("key", format_text("'{}' or '{}' is needed, and not both", fields.path_of("key"),
                                     fields.path_of("key_sha256")));
    return std::nullopt;
  }
  if (key) {
    if (key->empty()) fields.refuse("key", format_text("'{}' is empty", fields.path_of("key")));
    return digest_of_key(*key);
  }
  const std::optional<KeyDigest> digest = read_digest(*hash);
  if (!digest) {
    fields.refuse("key_sha256",
                  format_text("'{}' must be 64 hexadecimal digits, as sha256sum writes them",
                              fields.path_of("key_sha256")));
  }
  return digest;
}

// Links are followed where the folders exist, as the index does.
std::vector<std::string> read_projects(JsonFields& fields) {
  std::vector<std::string> projects = fields.texts("projects");
  for (std::string& project : projects) {
    if (!project.starts_with('/')) {
      fields.refuse("projects",
                    format_text("'{}' must be whole paths of folders, such as /srv/project",
                                fields.path_of("projects")));
      return {};
    }
    std::error_code error;
    const std::filesystem::path real = std::filesystem::weakly_canonical(project, error);
    if (!error) project = real.string();
    while (project.size() > 1 && project.ends_with('/')) project.pop_back();
  }
  return projects;
}

ApiResult<ClientKey> read_entry(const Json& entry, std::string path) {
  if (!entry.is_object()) return refuse(path, format_text("'{}' must be an object", path));
  JsonFields fields(entry, std::move(path));
  for (const auto& [name, value] : entry.items()) {
    if (!std::ranges::contains(kFields, name)) {
      fields.refuse(name, format_text("'{}' is not known", fields.path_of(name)));
    }
  }
  const std::string name = fields.text("name").value_or("");
  if (!is_name(name)) {
    fields.refuse("name", format_text("'{}' must be a name of up to {} letters, digits, '-', '_', "
                                      "'.' and '@'",
                                      fields.path_of("name"), kNameBytesMax));
  }
  const std::optional<KeyDigest> digest = read_key(fields);
  const auto priority = fields.integer("priority", 1, kPriorityMax);
  const auto n_requests = fields.integer("max_parallel_requests", 1, INT32_MAX);
  const auto n_tokens = fields.integer("tokens_per_minute", 1, INT32_MAX);
  std::vector<std::string> projects = read_projects(fields);
  if (fields.error()) return std::unexpected(*fields.error());
  return ClientKey{.name = name,
                   .digest = digest.value_or(KeyDigest{}),
                   .priority = static_cast<int>(priority.value_or(1)),
                   .limits = {.n_requests_max = static_cast<int>(n_requests.value_or(0)),
                              .n_tokens_per_minute_max = static_cast<int>(n_tokens.value_or(0))},
                   .projects = std::move(projects)};
}

ApiResult<std::vector<ClientKey>> read_entries(const Json& file) {
  if (!file.is_object()) return refuse("", "it must be an object");
  JsonFields fields(file);
  const Json* entries = fields.array("keys");
  if (fields.error()) return std::unexpected(*fields.error());
  if (file.size() != 1 || entries == nullptr || entries->empty()) {
    return refuse("keys", "it must have 'keys', a list of one key or more, and nothing else");
  }
  std::vector<ClientKey> keys;
  for (const Json& entry : *entries) {
    const std::string path = format_text("keys[{}]", keys.size());
    ApiResult<ClientKey> key = read_entry(entry, path);
    if (!key) return std::unexpected(key.error());
    if (std::ranges::contains(keys, key->name, &ClientKey::name)) {
      return refuse(path, format_text("two keys have the name '{}'", key->name));
    }
    if (std::ranges::contains(keys, key->digest, &ClientKey::digest)) {
      return refuse(path, format_text("'{}' has the same key as another", path));
    }
    keys.push_back(std::move(*key));
  }
  return keys;
}

bool has_plain_keys(const Json& file) {
  return std::ranges::any_of(file["keys"], [](const Json& entry) { return entry.contains("key"); });
}

bool is_open_to_others(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0;
}

}  // namespace

KeyDigest digest_of_key(std::string_view key) {
  boost::hash2::sha2_256 hash;
  hash.update(key.data(), key.size());
  const auto result = hash.result();
  KeyDigest digest{};
  std::ranges::copy(result, digest.begin());
  return digest;
}

Result<std::vector<ClientKey>> read_keys_file(const std::string& path) {
  const Result<std::string> text = read_small_file(path);
  if (!text) return std::unexpected(text.error());
  const Result<Json> file = parse_bounded(*text);
  if (!file) {
    // The message goes to the log. The parser's quote of what it read last is removed, because it
    // may be part of a key.
    const std::string& why = file.error().message;
    return fail(Code::kInvalidArgument,
                format_text("{} is no JSON: {}", path, why.substr(0, why.find(": "))));
  }
  ApiResult<std::vector<ClientKey>> keys = read_entries(*file);
  if (!keys) return fail(Code::kInvalidArgument, format_text("{}: {}", path, keys.error().message));
  if (has_plain_keys(*file) && is_open_to_others(path)) {
    return fail(Code::kPermission,
                format_text("{} has keys and everybody may read it: chmod o-r, or name each key by "
                            "its hash, as key_sha256",
                            path));
  }
  return std::move(*keys);
}

}  // namespace slipstream
