// Which files are never read, because their names say that they hold keys or passwords.
//
// The list is by name, so that such a file is not even opened. holds_private_key() looks at a text
// that was read: a key may lie in any file.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace slipstream {

// A name of a file or a folder, without its path.
[[nodiscard]] bool is_secret_file(std::string_view name);
[[nodiscard]] bool is_secret_folder(std::string_view name);

// Whether the text has a private key in it, as OpenSSL, OpenSSH and GnuPG write it.
[[nodiscard]] bool holds_private_key(std::string_view text);

// Why this folder cannot be a project: it is the system's, or all of it is secret. nullopt: it can.
[[nodiscard]] std::optional<std::string_view> why_no_project(const std::filesystem::path& root,
                                                             const std::filesystem::path& home);

}  // namespace slipstream
