// Progress: one line on standard error that says how far a long piece of work is. On a terminal it
// is drawn over and over and wiped at the end; elsewhere nothing is printed, so that logs stay
// clean.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace slipstream {

// "reading weights [#####-----]  48%  0:03 left"; the rest of the time only once it can be told.
std::string progress_line(std::string_view what, double done, double seconds);

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void rename(std::string what) { what_ = std::move(what); }
  void show(double done);  // from 0 to 1; draws at most ten times a second

 private:
  std::string what_;
  bool is_terminal_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace slipstream
