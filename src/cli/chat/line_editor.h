// LineEditor: lines from the terminal, with editing and a history that outlives the program
// (libedit; its ~/.editrc is honoured).
//
// The history is readable by its owner only. Where it cannot be kept, there is one for this run.
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
    std::string line = {};  // without its line feed
  };
  [[nodiscard]] Input read(const std::string& prompt);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// $XDG_STATE_HOME/slipstream/chat_history, else in ~/.local/state.
[[nodiscard]] std::filesystem::path history_path();

}  // namespace slipstream::chat
