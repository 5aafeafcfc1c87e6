#include "cli/plugin_path.h"

#include <dlfcn.h>
#include <link.h>

#include <system_error>

#include "base/format.h"
#include "cli/version.h"

namespace slipstream {
namespace {

// The file that this code was loaded from: the program, or libslipstream.so inside another one.
std::filesystem::path own_file() {
  Dl_info found{};
  void* more = nullptr;
  std::error_code error;
  const bool is_known = ::dladdr1(kPluginName, &found, &more, RTLD_DL_LINKMAP) != 0;
  const auto* object = static_cast<const link_map*>(more);
  if (is_known && object != nullptr && *object->l_name != '\0') {  // a program has no name here
    return std::filesystem::absolute(object->l_name, error);
  }
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

}  // namespace

Result<std::filesystem::path> find_turbo_plugin() {
  // A library lies in prefix/lib/ARCHITECTURE, a program in prefix/bin.
  const std::filesystem::path folder = own_file().parent_path();
  std::error_code error;
  for (const std::filesystem::path& prefix :
       {folder.parent_path(), folder.parent_path().parent_path()}) {
    for (const std::filesystem::path& path :
         {prefix / kPluginDir / kPluginName, prefix / "lib" / kPluginName}) {
      if (std::filesystem::exists(path, error)) return path;
    }
  }
  const std::filesystem::path prefix = folder.parent_path();
  return fail(Code::kNotFound,
              format_text("neither {} nor {} exists", (prefix / kPluginDir / kPluginName).string(),
                          (prefix / "lib" / kPluginName).string()));
}

}  // namespace slipstream
