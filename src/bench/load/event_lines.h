// EventLines: extracts the data of server-sent events from bytes that arrive in any pieces.
//
// Threads: thread-compatible. Errors: none; lines other than "data:" are ignored.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace slipstream::bench {

class EventLines {
 public:
  // Calls on_data with the text after "data:" of each complete line.
  void take(std::string_view bytes, const std::function<void(std::string_view)>& on_data) {
    rest_ += bytes;
    std::size_t begin = 0;
    for (std::size_t end = rest_.find('\n'); end != std::string::npos;
         end = rest_.find('\n', begin)) {
      std::string_view line = std::string_view(rest_).substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      constexpr std::string_view kField = "data:";
      if (line.starts_with(kField)) {
        line.remove_prefix(kField.size());
        if (line.starts_with(' ')) line.remove_prefix(1);
        on_data(line);
      }
      begin = end + 1;
    }
    rest_.erase(0, begin);
  }
  // The text after the last line: the body of an error from a server that did not stream.
  [[nodiscard]] const std::string& rest() const { return rest_; }

 private:
  std::string rest_;
};

}  // namespace slipstream::bench
