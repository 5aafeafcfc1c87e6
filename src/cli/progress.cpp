#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/format.h"

namespace slipstream {

std::string progress_line(std::string_view what, double done, double seconds) {
  constexpr int kWidth = 24;
  // Before this much is done, an estimate says nothing.
  constexpr double kEstimateFrom = 0.02;
  done = std::clamp(done, 0.0, 1.0);
  const auto n_full = static_cast<std::size_t>(done * kWidth);
  std::string line = format_text("{} [{}{}] {:3.0f}%", what, std::string(n_full, '#'),
                                 std::string(kWidth - n_full, '-'), done * 100);
  if (done >= kEstimateFrom && done < 1) {
    const auto left = std::lround(seconds / done * (1 - done));
    line += format_text("  {}:{:02} left", left / 60, left % 60);
  }
  return line;
}

Progress::Progress(std::string what)
    : what_(std::move(what)),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      started_(std::chrono::steady_clock::now()),
      drawn_(started_) {}

Progress::~Progress() {
  if (is_terminal_) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(double done) {
  using std::chrono::steady_clock;
  const steady_clock::time_point now = steady_clock::now();
  if (!is_terminal_ || now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  std::fprintf(stderr, "\r\x1b[K%s", progress_line(what_, done, seconds).c_str());
}

}  // namespace slipstream
