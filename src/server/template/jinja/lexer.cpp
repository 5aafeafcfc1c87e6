#include "server/template/jinja/lexer.h"

#include <array>

#include "base/format.h"
#include "server/ascii.h"
#include "server/output/json_reader.h"
#include "server/template/jinja/value.h"

namespace slipstream::jinja {
namespace {

using TokenKind = Token::Kind;

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    if (source_.ends_with('\n')) source_.remove_suffix(1);
    if (source_.ends_with('\r')) source_.remove_suffix(1);
  }

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = find_tag();
      take_text(tag);
      if (at_ >= source_.size()) break;
      const char kind = source_[at_ + 1];
      if (kind == '#') {
        take_comment();
      } else {
        take_tag(kind == '%');
      }
    }
    tokens_.push_back({TokenKind::kEnd, "", line_});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(std::string_view message) const {
    fail(format_text("line {}: {}", line_, message));
  }

  [[nodiscard]] std::size_t find_tag() const {
    for (std::size_t i = source_.find('{', at_); i != source_.npos; i = source_.find('{', i + 1)) {
      if (i + 1 < source_.size() && std::string_view("{%#").contains(source_[i + 1])) return i;
    }
    return source_.size();
  }

  // Adds the text before the tag at `end`, without the white space that belongs to the
  // tags around it.
  void take_text(std::size_t end) {
    std::string_view text = source_.substr(at_, end - at_);
    if (strip_after_) {
      while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    } else if (trim_after_) {
      if (text.starts_with("\r\n")) text.remove_prefix(1);
      if (text.starts_with('\n')) text.remove_prefix(1);
    }
    const bool is_tag = end + 2 < source_.size();
    const char control = is_tag ? source_[end + 2] : ' ';
    if (is_tag && control == '-') {
      while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    } else if (is_tag && source_[end + 1] != '{' && control != '+') {
      const std::size_t line_start = text.find_last_of('\n');
      const bool starts_template = at_ == 0 && line_start == text.npos;
      const std::string_view rest = line_start == text.npos ? text : text.substr(line_start + 1);
      const bool is_blank = rest.find_first_not_of(" \t") == rest.npos;
      const bool starts_line =
          line_start != text.npos || starts_template || (trimmed_line_feed(end) && !strip_after_);
      if (is_blank && starts_line) text.remove_suffix(rest.size());
    }
    if (!text.empty()) tokens_.push_back({TokenKind::kText, std::string(text), line_});
    count_lines(source_.substr(at_, end - at_));
    at_ = end;
    strip_after_ = trim_after_ = false;
  }

  // Whether the text before `end` began with a line feed that the previous tag removed.
  [[nodiscard]] bool trimmed_line_feed(std::size_t end) const {
    const std::string_view text = source_.substr(at_, end - at_);
    return trim_after_ && (text.starts_with('\n') || text.starts_with("\r\n"));
  }

  void take_comment() {
    const std::size_t end = source_.find("#}", at_ + 2);
    if (end == source_.npos) fail_here("a comment has no end");
    count_lines(source_.substr(at_, end - at_));
    strip_after_ = source_[end - 1] == '-';
    trim_after_ = true;
    at_ = end + 2;
  }

  void take_tag(bool is_statement) {
    tokens_.push_back(
        {is_statement ? TokenKind::kOpenStatement : TokenKind::kOpenOutput, "", line_});
    at_ += 2;
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) ++at_;
    const std::string_view close = is_statement ? "%}" : "}}";
    int n_open = 0;
    while (true) {
      skip_space();
      if (at_ >= source_.size()) fail_here("a tag has no end");
      const std::string_view rest = source_.substr(at_);
      // "}}" may also close two objects.
      if (n_open == 0 || is_statement) {
        const bool has_control = rest.size() > 2 && (rest[0] == '-' || rest[0] == '+');
        if (rest.starts_with(close) || (has_control && rest.substr(1).starts_with(close))) {
          strip_after_ = has_control && rest[0] == '-';
          trim_after_ = is_statement && !(has_control && rest[0] == '+');
          at_ += close.size() + (has_control ? 1 : 0);
          break;
        }
      }
      take_token();
      if (tokens_.back().is_symbol("{")) ++n_open;
      if (tokens_.back().is_symbol("}")) --n_open;
    }
    tokens_.push_back({TokenKind::kClose, "", line_});
  }

  void take_token() {
    const char first = source_[at_];
    if (first == '"' || first == '\'') return take_string(first);
    if (is_digit(first)) return take_number();
    if (is_name_byte(first)) {
      const std::size_t start = at_;
      while (at_ < source_.size() && is_name_byte(source_[at_])) ++at_;
      tokens_.push_back({TokenKind::kName, std::string(source_.substr(start, at_ - start)), line_});
      return;
    }
    constexpr std::array<std::string_view, 6> kLong = {"==", "!=", "<=", ">=", "//", "**"};
    for (const std::string_view symbol : kLong) {
      if (source_.substr(at_).starts_with(symbol)) return take_symbol(symbol);
    }
    if (!std::string_view("()[]{},.:|~+-*/%<>=").contains(first)) {
      fail_here(format_text("unexpected character '{}'", first));
    }
    take_symbol(source_.substr(at_, 1));
  }

  void take_symbol(std::string_view symbol) {
    tokens_.push_back({TokenKind::kSymbol, std::string(symbol), line_});
    at_ += symbol.size();
  }

  void take_string(char quote) {
    std::string text;
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      if (source_[at_] == '\n') ++line_;
      if (source_[at_] != '\\' || at_ + 1 >= source_.size()) {
        text += source_[at_];
        continue;
      }
      const char escape = source_[++at_];
      if (escape == 'u' && at_ + 4 < source_.size()) {
        text += json_unescaped(std::string("\\") + std::string(source_.substr(at_, 5)));
        at_ += 4;
        continue;
      }
      constexpr std::string_view kEscapes = "nrtbf\\'\"";
      constexpr std::string_view kMeanings = "\n\r\t\b\f\\'\"";
      const std::size_t idx = kEscapes.find(escape);
      if (idx == kEscapes.npos) text += '\\';
      text += idx == kEscapes.npos ? escape : kMeanings[idx];
    }
    if (at_ >= source_.size()) fail_here("a text has no end");
    ++at_;
    tokens_.push_back({TokenKind::kString, std::move(text), line_});
  }

  void take_number() {
    const std::size_t start = at_;
    bool is_float = false;
    while (at_ < source_.size() && (is_digit(source_[at_]) || source_[at_] == '.')) {
      if (source_[at_] == '.') {
        const bool digit_follows = at_ + 1 < source_.size() && is_digit(source_[at_ + 1]);
        if (is_float || !digit_follows) break;
        is_float = true;
      }
      ++at_;
    }
    tokens_.push_back({is_float ? TokenKind::kFloat : TokenKind::kInteger,
                       std::string(source_.substr(start, at_ - start)), line_});
  }

  void skip_space() {
    for (; at_ < source_.size() && is_space(source_[at_]); ++at_) {
      if (source_[at_] == '\n') ++line_;
    }
  }
  void count_lines(std::string_view text) {
    for (const char byte : text) line_ += byte == '\n' ? 1 : 0;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool strip_after_ = false;  // the last tag ended with a minus sign
  bool trim_after_ = false;   // the last tag removes the line feed after it
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace slipstream::jinja
