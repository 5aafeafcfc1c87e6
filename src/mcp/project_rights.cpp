#include "mcp/project_rights.h"

#include <algorithm>

namespace slipstream {
namespace {

// The length of the longest folder that has the path; 0: none has it.
std::size_t longest_around(const std::vector<std::string>& folders, std::string_view path) {
  std::size_t longest = 0;
  for (const std::string& folder : folders) {
    if (lies_in(path, folder)) longest = std::max(longest, folder.size());
  }
  return longest;
}

}  // namespace

bool lies_in(std::string_view path, std::string_view folder) {
  return path == folder ||
         (path.starts_with(folder) && (folder.ends_with('/') || path[folder.size()] == '/'));
}

bool ProjectRights::show(std::string_view root) const {
  // A project around a folder of others has files of theirs.
  if (std::ranges::any_of(others_, [root](const auto& folder) { return lies_in(folder, root); })) {
    return false;
  }
  // A folder within another's folder can belong to somebody else: the inner one counts.
  return longest_around(own_, root) >= longest_around(others_, root);
}

}  // namespace slipstream
