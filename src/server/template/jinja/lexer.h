// Lexer: splits a Jinja template into text and the tokens of its expressions and statements.
//
// It uses the settings of Hugging Face, which chat templates expect: it drops a line feed after a
// statement (trim_blocks), white space before a statement that starts a line (lstrip_blocks), and
// the line feed at the end of the template.
//
// Threads: immutable. Errors: TemplateError with the line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slipstream::jinja {

struct Token {
  enum class Kind {
    kText,
    kOpenOutput,
    kOpenStatement,
    kClose,
    kName,
    kString,
    kInteger,
    kFloat,
    kSymbol,
    kEnd
  };
  Kind kind;
  std::string text;
  int line;

  [[nodiscard]] bool is_symbol(std::string_view symbol) const {
    return kind == Kind::kSymbol && text == symbol;
  }
  [[nodiscard]] bool is_name(std::string_view name) const {
    return kind == Kind::kName && text == name;
  }
};

[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

}  // namespace slipstream::jinja
