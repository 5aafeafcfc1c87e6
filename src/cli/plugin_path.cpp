#include "cli/plugin_path.h"

#include <system_error>

#include "base/format.h"
#include "cli/version.h"

namespace slipstream {

Result<std::filesystem::path> find_turbo_plugin() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path prefix = program.parent_path().parent_path();
  const std::filesystem::path installed = prefix / kPluginDir / kPluginName;
  const std::filesystem::path built = prefix / "lib" / kPluginName;
  for (const std::filesystem::path& path : {installed, built}) {
    if (std::filesystem::exists(path, error)) return path;
  }
  return fail(Code::kNotFound,
              format_text("neither {} nor {} exists", installed.string(), built.string()));
}

}  // namespace slipstream
