// Progress: one line on standard error that says how far a long piece of work is. On a terminal it
// is drawn over and over and wiped at the end; a log gets a line a minute, so that it stays short
// and work of hours still shows that it goes on.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace slipstream {

// "reading weights [#####-----]  48%  0:03 left"; the rest of the time only once it can be told.
std::string progress_line(std::string_view what, double done, double seconds);

// What the work itself knows better than an estimate from its start: part of it was done before.
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
  void show(double done);  // from 0 to 1; as often as the caller likes
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
