// LineEditor: reads lines from the terminal, with editing and a persistent history (libedit;
// ~/.editrc is honoured).
//
// Only its owner can read the history. If it cannot be stored, it lasts for this run only.
//
// Threads: the main thread, which receives Ctrl-C (interrupts.h). Errors: none.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace slipstream::chat {

class LineEditor {
 public:
  explicit LineEditor(std::filesystem::path history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Outcome { kLine, kInterrupted, kEnd };
  struct Input {
    Outcome outcome;
    std::string line = {};  // without the line feed
  };
  [[nodiscard]] Input read(const std::string& prompt);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// $XDG_STATE_HOME/slipstream/chat_history, else in ~/.local/state.
[[nodiscard]] std::filesystem::path history_path();

}  // namespace slipstream::chat
