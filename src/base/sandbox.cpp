#include "base/sandbox.h"

namespace slipstream {

std::vector<std::string> sandbox_command(bool has_user_namespace) {
  std::vector<std::string> command = {kBubblewrap};
  if (has_user_namespace) {
    command.insert(command.end(), {"--unshare-user", "--uid", "65534", "--gid", "65534"});
  }
  command.insert(command.end(), {"--unshare-ipc",
                                 "--unshare-pid",
                                 "--unshare-net",
                                 "--unshare-uts",
                                 "--unshare-cgroup-try",
                                 "--die-with-parent",
                                 "--new-session",
                                 "--cap-drop",
                                 "ALL",
                                 "--clearenv",
                                 "--ro-bind",
                                 "/usr",
                                 "/usr",
                                 "--symlink",
                                 "usr/lib",
                                 "/lib",
                                 "--symlink",
                                 "usr/lib64",
                                 "/lib64",
                                 "--chdir",
                                 "/"});
  return command;
}

}  // namespace slipstream
