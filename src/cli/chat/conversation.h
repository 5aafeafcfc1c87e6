// Conversation: one chat at a terminal, from the first prompt to /exit or Ctrl-D.
//
// Threads: the main thread, which receives Ctrl-C (interrupts.h).
// Errors:  none; failures are printed, and the conversation continues.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/chat/answer_printer.h"
#include "cli/chat/chat_client.h"
#include "cli/chat/line_editor.h"
#include "cli/chat/session.h"

namespace slipstream::chat {

class Conversation {
 public:
  Conversation(ChatClient& client, const ServerModel& model, Session& session);

  void run();
  // Asks one question without a terminal. Returns whether there was an answer.
  [[nodiscard]] bool answer_once(std::string question);

 private:
  struct CommandEntry;
  // Reads a message or a command, possibly of several lines; nullopt at the end of input.
  [[nodiscard]] std::optional<std::string> read_message(LineEditor& editor);
  // Returns whether the conversation continues.
  bool obey(std::string_view line);
  void answer();
  [[nodiscard]] Result<Answer> fetch_answer();
  void say(const std::string& text) const;

  void help(std::string_view argument);
  void clear(std::string_view argument);
  void system(std::string_view argument);
  void set(std::string_view argument);
  void regenerate(std::string_view argument);
  void save(std::string_view argument);
  void load(std::string_view argument);
  void stats(std::string_view argument);

  ChatClient& client_;
  const ServerModel model_;
  Session& session_;
  const Look look_;
  struct Totals {
    int n_answers = 0;
    int n_prompt = 0;
    int n_cached = 0;
    int n_generated = 0;
    double seconds = 0;
  };
  Totals totals_;
  std::string last_status_;
};

}  // namespace slipstream::chat
