#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/format.h"

namespace slipstream {

namespace {

std::string bar(std::string_view what, double done) {
  constexpr int kWidth = 24;
  done = std::clamp(done, 0.0, 1.0);
  const auto n_full = static_cast<std::size_t>(done * kWidth);
  return format_text("{} [{}{}] {:3.0f}%", what, std::string(n_full, '#'),
                     std::string(kWidth - n_full, '-'), done * 100);
}

std::string time_left(double seconds) {
  const auto left = std::lround(seconds);
  return format_text("  {}:{:02} left", left / 60, left % 60);
}

}  // namespace

std::string progress_line(std::string_view what, double done, double seconds) {
  // Below this share, an estimate means nothing.
  constexpr double kEstimateFrom = 0.02;
  std::string line = bar(what, done);
  if (done >= kEstimateFrom && done < 1) line += time_left(seconds / done * (1 - done));
  return line;
}

std::string progress_line(std::string_view what, double done, const ProgressNote& note) {
  std::string line = format_text("{}  {}", bar(what, done), note.text);
  if (note.seconds_left) line += time_left(*note.seconds_left);
  return line;
}

Progress::Progress(std::string what, std::chrono::milliseconds log_every)
    : what_(std::move(what)),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      draw_every_(is_terminal_ ? std::chrono::milliseconds(100) : log_every),
      started_(std::chrono::steady_clock::now()),
      drawn_(started_) {}

Progress::~Progress() {
  if (is_terminal_) std::fputs("\r\x1b[K", stderr);
}

bool Progress::is_time_to_draw() {
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < draw_every_) return false;
  drawn_ = now;
  return true;
}

void Progress::draw(const std::string& line) const {
  std::fprintf(stderr, is_terminal_ ? "\r\x1b[K%s" : "%s\n", line.c_str());
}

void Progress::show(double done) {
  if (!is_time_to_draw()) return;
  draw(progress_line(what_, done, std::chrono::duration<double>(drawn_ - started_).count()));
}

void Progress::show(double done, const ProgressNote& note) {
  if (is_time_to_draw()) draw(progress_line(what_, done, note));
}

}  // namespace slipstream
