#include "retrieval/files/secrets.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace slipstream {
namespace {

// Patterns of fnmatch(3), in lower case. What holds an example of a secret, and no secret, is read.
constexpr auto kPublic = std::to_array<const char*>(
    {".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub", "*.pub.pem"});
constexpr auto kSecretFiles = std::to_array<const char*>({
    // environments and settings with passwords in them
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".dockercfg",
    ".s3cfg",
    ".boto",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "credentials.y*ml",
    "secret.*",
    "secrets.*",
    "client_secret*.json",
    "service-account*.json",
    "service_account*.json",
    "*.tfstate",
    "*.tfvars",
    "shadow",
    "shadow-",
    "gshadow",
    "*.ovpn",
    "wpa_supplicant.conf",
    // keys, and stores of keys and passwords
    "*.key",
    "*.pem",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.jceks",
    "*.keystore",
    "*.kdb",
    "*.kdbx",
    "*.ppk",
    "*.gpg",
    "*.pgp",
    "*.keychain",
    "*.keychain-db",
    "*.agekey",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "ssh_host_*_key",
    "wallet.dat",
    "key3.db",
    "key4.db",
    "logins.json",
    "cookies.sqlite",
    "login data",
    // what somebody has typed
    ".*_history",
    ".lesshst",
});
constexpr auto kSecretFolders = std::to_array<const char*>(
    {".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".password-store",
     ".mozilla", ".thunderbird", ".electrum", ".bitcoin", "secrets", ".secrets",
     "private-keys-v1.d", "keyrings"});
constexpr auto kSystemFolders = std::to_array<const char*>(
    {"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/media", "/mnt", "/opt", "/proc",
     "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var"});

std::string lower_case(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool is_one_of(const std::string& name, std::span<const char* const> patterns) {
  return std::ranges::any_of(
      patterns, [&](const char* pattern) { return fnmatch(pattern, name.c_str(), 0) == 0; });
}

bool is_base64(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/' || c == '=';
}

}  // namespace

bool is_secret_file(std::string_view name) {
  const std::string lower = lower_case(name);
  return !is_one_of(lower, kPublic) && is_one_of(lower, kSecretFiles);
}

bool is_secret_folder(std::string_view name) { return is_one_of(lower_case(name), kSecretFolders); }

bool holds_private_key(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr std::string_view kEnd = "PRIVATE KEY";
  constexpr std::size_t kLabelBytesMax = 64;
  constexpr std::size_t kHeadersBytesMax = 512;  // "Proc-Type: 4,ENCRYPTED", ...
  constexpr std::size_t kKeyBytesMin = 40;
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos;
       at = text.find(kBegin, at + 1)) {
    const std::string_view label = text.substr(at, kLabelBytesMax);
    const std::size_t end = label.find(kEnd);
    if (end == std::string_view::npos || label.substr(0, end).contains('\n')) continue;
    // Source code that reads keys has the label and no key after it.
    std::size_t n_run = 0;
    for (const char c : text.substr(at + end + kEnd.size(), kHeadersBytesMax)) {
      n_run = is_base64(c) ? n_run + 1 : 0;
      if (n_run >= kKeyBytesMin) return true;
    }
  }
  return false;
}

std::optional<std::string_view> why_no_project(const std::filesystem::path& root,
                                               const std::filesystem::path& home) {
  if (is_one_of(root.string(), kSystemFolders)) {
    return "it is a folder of the system: name a folder of yours below it";
  }
  if (root == home) return "it is your home directory: name the folders in it that you work on";
  const bool is_secret = std::ranges::any_of(
      root, [](const std::filesystem::path& part) { return is_secret_folder(part.string()); });
  if (is_secret) return "its name says that it holds keys or passwords";
  return std::nullopt;
}

}  // namespace slipstream
