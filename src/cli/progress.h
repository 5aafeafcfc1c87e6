// Progress: one line on standard error that shows the progress of long work. On a terminal the line
// is redrawn and erased at the end. A log gets one line a minute, so that it stays short and still
// shows that work of hours continues.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace slipstream {

// "reading weights [#####-----]  48%  0:03 left". The remaining time is shown once it
// can be estimated.
std::string progress_line(std::string_view what, double done, double seconds);

// What the work knows better than an estimate from its start, because part of it was done before.
struct ProgressNote {
  std::string text;  // "1.2 GiB of 4.4 GiB, 35.1 MB/s"
  std::optional<double> seconds_left;
};
std::string progress_line(std::string_view what, double done, const ProgressNote& note);

class Progress {
 public:
  explicit Progress(std::string what,
                    std::chrono::milliseconds log_every = std::chrono::minutes(1));
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void rename(std::string what) { what_ = std::move(what); }
  void show(double done);  // from 0 to 1; may be called as often as wanted
  void show(double done, const ProgressNote& note);

 private:
  [[nodiscard]] bool is_time_to_draw();
  void draw(const std::string& line) const;

  std::string what_;
  bool is_terminal_;
  std::chrono::milliseconds draw_every_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace slipstream
