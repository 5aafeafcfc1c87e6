#include "cli/chat/answer_printer.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/format.h"
#include "cli/chat/terminal_text.h"

namespace slipstream::chat {
namespace {

constexpr const char* kDim = "\x1b[2m";
constexpr const char* kNormal = "\x1b[0m";

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Look look_of_terminal() {
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  return {.has_colors = is_terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb",
          .shows_reasoning = is_terminal};
}

std::string dimmed(const std::string& text, const Look& look) {
  return look.has_colors ? kDim + text + kNormal : text;
}

void AnswerPrinter::print(const Piece& piece) {
  if (piece.kind == Piece::Kind::kReasoning && !look_.shows_reasoning) return;
  if (!has_begun_ || piece.kind != kind_) enter(piece.kind);
  write(terminal_text(piece.text));
  std::fflush(stdout);
}

void AnswerPrinter::enter(Piece::Kind kind) {
  const bool was_dim = has_begun_ && kind_ != Piece::Kind::kContent;
  if (was_dim && look_.has_colors) std::fputs(kNormal, stdout);
  if (has_begun_ && !is_at_line_begin_) write("\n");
  if (look_.has_colors) {
    if (was_dim && kind == Piece::Kind::kContent) write("\n");
    if (kind != Piece::Kind::kContent) std::fputs(kDim, stdout);
  } else if (kind == Piece::Kind::kReasoning) {
    write("[thinking]\n");
  } else if (was_dim && kind == Piece::Kind::kContent) {
    write("[answer]\n");
  }
  has_begun_ = true;
  kind_ = kind;
}

void AnswerPrinter::write(const std::string& text) {
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  is_at_line_begin_ = text.ends_with('\n');
}

void AnswerPrinter::finish() {
  if (look_.has_colors && has_begun_ && kind_ != Piece::Kind::kContent) {
    std::fputs(kNormal, stdout);
  }
  if (!is_at_line_begin_) write("\n");
  std::fflush(stdout);
}

std::string status_line(const Answer& answer, const std::optional<KvUse>& kv) {
  std::string line;
  const auto add = [&](const std::string& part) { line += (line.empty() ? "" : " | ") + part; };
  if (const auto speed = tokens_per_second(answer)) add(format_text("{:.1f} tokens/s", *speed));
  if (answer.first_token_s > 0) add(format_text("first token {:.2f} s", answer.first_token_s));
  if (answer.n_prompt > 0) {
    add(format_text("prompt {} tokens, {} cached", answer.n_prompt, answer.n_cached));
  }
  if (kv) {
    constexpr double kMiB = 1 << 20;
    add(format_text("KV {:.1f} of {:.1f} MiB, {}", kv->used_bytes / kMiB, kv->all_bytes / kMiB,
                    kv->scheme));
  }
  if (answer.is_stopped) add("stopped");
  if (answer.finish_reason == "length") add("stopped at the token limit");
  if (!answer.notice.empty()) add(answer.notice);
  return terminal_text(line);
}

}  // namespace slipstream::chat
