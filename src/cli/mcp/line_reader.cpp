#include "cli/mcp/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace slipstream {

Result<bool> LineReader::read_more() {
  std::array<pollfd, 2> wait{{{.fd = input_, .events = POLLIN, .revents = 0},
                              {.fd = end_, .events = POLLIN, .revents = 0}}};
  while (::poll(wait.data(), wait.size(), -1) < 0) {
    if (errno != EINTR) return fail_errno(errno, "cannot wait for standard input");
  }
  if (wait[1].revents != 0) {  // half a line is no message
    unread_.clear();
    is_too_long_ = false;
    return false;
  }
  std::array<char, 65536> bytes;
  const ssize_t n = ::read(input_, bytes.data(), bytes.size());
  if (n < 0) {
    if (errno == EINTR || errno == EAGAIN) return true;
    return fail_errno(errno, "cannot read standard input");
  }
  unread_.append(bytes.data(), static_cast<std::size_t>(n));
  return n > 0;
}

Result<ReadLine> LineReader::next() {
  while (true) {
    const std::size_t end = unread_.find('\n', n_looked_at_);
    if (end != std::string::npos) {
      ReadLine line{.kind = ReadLine::Kind::kLine, .text = unread_.substr(0, end)};
      unread_.erase(0, end + 1);
      n_looked_at_ = 0;
      if (std::exchange(is_too_long_, false) || line.text.size() > line_bytes_max_) {
        return ReadLine{.kind = ReadLine::Kind::kTooLong};
      }
      if (line.text.ends_with('\r')) line.text.pop_back();
      return line;
    }
    if (has_ended_) {
      if (std::exchange(is_too_long_, false)) return ReadLine{.kind = ReadLine::Kind::kTooLong};
      if (unread_.empty()) return ReadLine{};
      n_looked_at_ = 0;
      return ReadLine{.kind = ReadLine::Kind::kLine, .text = std::exchange(unread_, {})};
    }
    n_looked_at_ = unread_.size();
    if (n_looked_at_ > line_bytes_max_) {
      is_too_long_ = true;
      unread_.clear();
      n_looked_at_ = 0;
    }
    const Result<bool> goes_on = read_more();
    if (!goes_on) return std::unexpected(goes_on.error());
    has_ended_ = !*goes_on;
  }
}

}  // namespace slipstream
