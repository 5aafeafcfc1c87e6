#include "engine/sampling/reasoning_watch.h"

#include <algorithm>
#include <utility>

namespace slipstream {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Whether the text ends between two characters.
bool ends_whole(std::string_view text) {
  std::size_t n = 0;  // continuation bytes at the end
  while (n < 3 && n < text.size() && is_continuation(text[text.size() - 1 - n])) ++n;
  if (n == text.size()) return true;
  const auto lead = static_cast<unsigned char>(text[text.size() - 1 - n]);
  const std::size_t n_wanted = lead >= 0xF0U ? 3 : lead >= 0xE0U ? 2 : lead >= 0xC0U ? 1 : 0;
  return n >= n_wanted;
}

}  // namespace

ReasoningWatch::ReasoningWatch(ReasoningParams params, Markup markup)
    : params_(std::move(params)), markup_(std::move(markup)) {
  n_kept_ = params_.open.size();
  for (const std::string& end : params_.ends) n_kept_ = std::max(n_kept_, end.size());
  if (!params_.is_open) return;
  state_ = State::kReasoning;
  end_if_spent();
}

std::optional<Token> ReasoningWatch::forced() const {
  if (!n_forced_) return std::nullopt;
  return markup_.forced_end[*n_forced_];
}

std::optional<Token> ReasoningWatch::banned() const {
  if (!is_spent() || state_ == State::kReasoning) return std::nullopt;
  const bool would_open = params_.opens_anywhere
                              ? text_.ends_with(markup_.open_head)
                              : state_ == State::kStart && text_ == markup_.open_head;
  if (!would_open) return std::nullopt;
  return markup_.open_last;
}

void ReasoningWatch::give_up() {
  n_forced_.reset();
  params_.n_tokens_max.reset();
}

void ReasoningWatch::accept(std::string_view piece) {
  if (n_forced_) {
    if (++*n_forced_ < markup_.forced_end.size()) return;
    n_forced_.reset();
    state_ = State::kStart;
    text_.clear();
    return;
  }
  text_ += piece;
  if (state_ == State::kReasoning) {
    follow_reasoning();
  } else {
    follow_answer();
  }
  if (text_.size() > n_kept_) text_.erase(0, text_.size() - n_kept_);
}

void ReasoningWatch::follow_answer() {
  std::size_t at = std::string::npos;
  if (params_.opens_anywhere) {
    at = text_.find(params_.open);
  } else if (state_ == State::kStart) {
    text_.erase(0, std::min(text_.find_first_not_of(kWhiteSpace), text_.size()));
    if (text_.starts_with(params_.open)) at = 0;
    if (at != 0 && !params_.open.starts_with(text_)) state_ = State::kAnswer;
  }
  if (at == std::string::npos) return;
  text_.erase(0, at + params_.open.size());
  state_ = State::kReasoning;
  end_if_spent();
}

void ReasoningWatch::follow_reasoning() {
  for (const std::string& end : params_.ends) {
    const std::size_t at = text_.find(end);
    if (at == std::string::npos) continue;
    text_.erase(0, at + end.size());
    state_ = State::kStart;
    return follow_answer();
  }
  ++n_tokens_;
  end_if_spent();
}

// Not within a character whose bytes are several tokens.
void ReasoningWatch::end_if_spent() {
  if (is_spent() && !markup_.forced_end.empty() && ends_whole(text_)) n_forced_ = 0;
}

}  // namespace slipstream
