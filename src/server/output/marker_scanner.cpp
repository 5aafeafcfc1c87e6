#include "server/output/marker_scanner.h"

#include <utility>

namespace slipstream {

std::optional<std::size_t> MarkerScanner::push(char byte, std::string& text) {
  held_ += byte;
  while (!held_.empty()) {
    for (std::size_t i = 0; i < markers_.size(); ++i) {
      if (!markers_[i].starts_with(held_)) continue;
      if (markers_[i].size() > held_.size()) return std::nullopt;
      held_.clear();
      return i;
    }
    text += held_.front();
    held_.erase(0, 1);
  }
  return std::nullopt;
}

std::string MarkerScanner::take_held() { return std::exchange(held_, {}); }

}  // namespace slipstream
