// sandbox_command(): the beginning of a command that runs a program apart from everything else, with
// bubblewrap: in namespaces of its own it sees /usr, read-only, and nothing else: no other file, no
// process, no network, no environment. It has no capabilities, and ends with its parent.
//
//   auto command = sandbox_command(true);
//   command.insert(command.end(), {"--tmpfs", "/tmp", "/usr/bin/pdftotext", "-", "-"});
//
// Threads: pure function. Errors: none: whether it works is seen by trying it.
#pragma once

#include <string>
#include <vector>

namespace slipstream {

// Not looked for in PATH: what confines programs is the system's own.
inline constexpr const char* kBubblewrap = "/usr/bin/bwrap";

// With a user namespace the program is nobody. Without one it is who we are, which only root can
// have, and needs where user namespaces are not allowed: in a chroot, in many containers.
[[nodiscard]] std::vector<std::string> sandbox_command(bool has_user_namespace);

}  // namespace slipstream
