#include "cli/scratch_folder.h"

#include <cerrno>
#include <cstdlib>

#include "base/format.h"

namespace slipstream {

Result<ScratchFolder> ScratchFolder::create(const std::filesystem::path& parent) {
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  std::string path = (parent / "slipstream-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    return fail_errno(errno, format_text("cannot make {}", path));
  }
  return ScratchFolder(path);
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace slipstream
