#include "cli/chat/conversation.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <utility>

#include "base/format.h"
#include "cli/chat/interrupts.h"
#include "cli/chat/terminal_text.h"

namespace slipstream::chat {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// The first word, and the rest.
std::pair<std::string_view, std::string_view> split_word(std::string_view text) {
  const std::size_t space = std::min(text.find_first_of(" \t\n"), text.size());
  return {text.substr(0, space), without_spaces(text.substr(space))};
}

}  // namespace

struct Conversation::CommandEntry {
  std::string_view name;
  std::string_view usage;
  std::string_view what;
  void (Conversation::*run)(std::string_view);  // null: ends the conversation

  static std::span<const CommandEntry> all() {
    static constexpr std::array kCommands = {
        CommandEntry{"/help", "/help", "these lines", &Conversation::help},
        CommandEntry{"/clear", "/clear", "a new conversation", &Conversation::clear},
        CommandEntry{"/system", "/system TEXT", "the system prompt", &Conversation::system},
        CommandEntry{"/set", "/set NAME VALUE", "temperature, max_tokens, ...; alone: what is set",
                     &Conversation::set},
        CommandEntry{"/regen", "/regen", "generate the last answer again",
                     &Conversation::regenerate},
        CommandEntry{"/save", "/save FILE", "the conversation, as JSON", &Conversation::save},
        CommandEntry{"/load", "/load FILE", "one that was saved", &Conversation::load},
        CommandEntry{"/stats", "/stats", "tokens and times of this run", &Conversation::stats},
        CommandEntry{"/exit", "/exit", "quit, as Ctrl-D does", nullptr},
    };
    return kCommands;
  }
};

Conversation::Conversation(ChatClient& client, const ServerModel& model, Session& session)
    : client_(client), model_(model), session_(session), look_(look_of_terminal()) {}

void Conversation::say(const std::string& text) const {
  std::printf("%s\n", dimmed(terminal_text(text), look_).c_str());
}

void Conversation::run() {
  LineEditor editor(history_path());
  say(format_text("{}: /help shows commands, Ctrl-C stops an answer, Ctrl-D quits", model_.name));
  while (const std::optional<std::string> message = read_message(editor)) {
    const std::string_view text = without_spaces(*message);
    if (text.empty()) continue;
    if (text.starts_with('/') && !text.contains('\n')) {
      if (!obey(text)) return;
      continue;
    }
    session_.say(*message);
    answer();
  }
  std::printf("\n");
}

std::optional<std::string> Conversation::read_message(LineEditor& editor) {
  using Outcome = LineEditor::Outcome;
  while (true) {
    LineEditor::Input input = editor.read("> ");
    std::string text = std::move(input.line);
    const bool is_quoted = text.starts_with(kQuotes);
    if (is_quoted) text.erase(0, kQuotes.size());
    const auto wants_more = [&] {
      return is_quoted ? !text.ends_with(kQuotes) : text.ends_with('\\');
    };
    while (input.outcome == Outcome::kLine && wants_more()) {
      if (!is_quoted) text.pop_back();
      input = editor.read("... ");
      text += "\n" + input.line;
    }
    if (input.outcome == Outcome::kEnd) return std::nullopt;
    if (input.outcome == Outcome::kInterrupted) continue;
    if (!is_quoted) return text;
    text.erase(text.size() - kQuotes.size());
    // Line feeds next to the quotes do not belong to the text.
    if (text.ends_with('\n')) text.pop_back();
    if (text.starts_with('\n')) text.erase(0, 1);
    return text;
  }
}

bool Conversation::obey(std::string_view line) {
  const auto [name, argument] = split_word(line);
  const auto commands = CommandEntry::all();
  const auto command = std::ranges::find(commands, name, &CommandEntry::name);
  if (command == commands.end()) {
    say(format_text("there is no command {}: /help lists them", name));
    return true;
  }
  if (command->run == nullptr) return false;
  (this->*command->run)(argument);
  return true;
}

Result<Answer> Conversation::fetch_answer() {
  AnswerPrinter printer(look_);
  Interrupts::clear();
  Result<Answer> answer = client_.ask(
      session_.request(), [&](const Piece& piece) { printer.print(piece); }, Interrupts::happened);
  printer.finish();
  return answer;
}

void Conversation::answer() {
  const Result<Answer> answer = fetch_answer();
  if (!answer) {
    session_.drop_question();  // the user may ask again or differently
    say(answer.error().message);
    return;
  }
  if (answer->content.empty()) {
    session_.drop_question();  // servers refuse an empty answer
  } else {
    session_.take_answer(answer->content);
  }
  ++totals_.n_answers;
  totals_.n_prompt += answer->n_prompt;
  totals_.n_cached += answer->n_cached;
  totals_.n_generated += answer->n_generated;
  totals_.seconds += answer->seconds;
  std::optional<KvUse> kv;
  if (model_.is_ours) kv = client_.kv_use(model_, answer->n_prompt + answer->n_generated);
  last_status_ = status_line(*answer, kv);
  say(last_status_);
}

bool Conversation::answer_once(std::string question) {
  session_.say(std::move(question));
  const Result<Answer> answer = fetch_answer();
  if (!answer) {
    std::fprintf(stderr, "slipstream chat: %s\n", terminal_text(answer.error().message).c_str());
    return false;
  }
  std::fprintf(stderr, "%s\n", status_line(*answer, std::nullopt).c_str());
  return !answer->is_stopped;
}

void Conversation::help(std::string_view /*argument*/) {
  for (const CommandEntry& command : CommandEntry::all()) {
    say(format_text("{:<16} {}", command.usage, command.what));
  }
  say("A line that ends with \\ continues in the next; \"\"\" begins and ends a text of several "
      "lines.");
}

void Conversation::clear(std::string_view /*argument*/) {
  session_.clear();
  say("a new conversation");
}

void Conversation::system(std::string_view argument) {
  if (argument.empty() && session_.system().empty()) {
    say("there is no system prompt: /system TEXT sets one, /system - removes it");
  } else if (argument.empty()) {
    say(session_.system());
  } else {
    session_.set_system(argument == "-" ? "" : std::string(argument));
    say(session_.system().empty() ? "no system prompt" : "the system prompt is set");
  }
}

void Conversation::set(std::string_view argument) {
  const auto [name, value] = split_word(argument);
  if (!name.empty()) {
    // "-" resets the setting.
    const Result<void> done = session_.set(name, value == "-" ? "" : value);
    if (!done) return say(done.error().message);
  }
  say(session_.settings().empty() ? "every setting is the server's own"
                                  : session_.settings().dump());
}

void Conversation::regenerate(std::string_view /*argument*/) {
  if (!session_.drop_answer()) return say("nothing was asked yet");
  answer();
}

void Conversation::save(std::string_view argument) {
  if (argument.empty()) return say("where to? /save FILE");
  const Result<void> saved = session_.save(std::string(argument));
  say(saved ? format_text("saved in {}", argument) : saved.error().message);
}

void Conversation::load(std::string_view argument) {
  if (argument.empty()) return say("from where? /load FILE");
  const Result<void> loaded = session_.load(std::string(argument));
  say(loaded ? format_text("{} messages", session_.n_messages()) : loaded.error().message);
}

void Conversation::stats(std::string_view /*argument*/) {
  say(format_text("{} answers of {} tokens in {:.1f} s; prompts of {} tokens, {} cached",
                  totals_.n_answers, totals_.n_generated, totals_.seconds, totals_.n_prompt,
                  totals_.n_cached));
  if (!last_status_.empty()) say("the last: " + last_status_);
}

}  // namespace slipstream::chat
