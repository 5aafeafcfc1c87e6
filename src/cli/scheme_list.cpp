#include "cli/scheme_list.h"

namespace slipstream {

std::vector<std::string> join_schemes(std::span<const std::string> parts) {
  std::vector<std::string> schemes;
  for (const std::string& part : parts) {
    if (part.contains('=') && !schemes.empty()) {
      schemes.back() += "," + part;
    } else if (!part.empty()) {
      schemes.push_back(part);
    }
  }
  return schemes;
}

}  // namespace slipstream
