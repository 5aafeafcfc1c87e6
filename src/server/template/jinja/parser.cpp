// The parser: recursive descent over the tokens, with Jinja's precedences.
#include <charconv>
#include <initializer_list>

#include "base/format.h"
#include "server/template/jinja/lexer.h"
#include "server/template/jinja/syntax.h"
#include "server/template/template_limits.h"

namespace slipstream::jinja {
namespace {

using Kind = Expression::Kind;
constexpr int kDepthMax = static_cast<int>(kTemplateLimits.template_nesting_max);
// An expression in brackets takes four levels of functions.
constexpr int kParserDepthMax = 4 * kDepthMax;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Block run() {
    Block block = parse_block({});
    if (now().kind != Token::Kind::kEnd) fail_here("unexpected end of a statement");
    return block;
  }

 private:
  // Counts the parser's own recursion depth.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.n_nested_ > kParserDepthMax) parser_.fail_deep();
    }
    ~Nesting() { --parser_.n_nested_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  [[noreturn]] void fail_here(std::string_view message) const {
    fail(format_text("line {}: {}", now().line, message));
  }
  [[noreturn]] void fail_deep() const {
    throw TemplateError{format_text("line {}: it is nested too deeply", now().line), true};
  }

  [[nodiscard]] const Token& now() const { return tokens_[at_]; }
  [[nodiscard]] const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() {
    if (now().kind == Token::Kind::kEnd) fail_here("the template ends too early");
    return tokens_[at_++];
  }
  bool take_symbol(std::string_view symbol) {
    if (!now().is_symbol(symbol)) return false;
    ++at_;
    return true;
  }
  bool take_name(std::string_view name) {
    if (!now().is_name(name)) return false;
    ++at_;
    return true;
  }
  void expect_symbol(std::string_view symbol) {
    if (!take_symbol(symbol)) fail_here(format_text("expected '{}'", symbol));
  }
  std::string expect_name() {
    if (now().kind != Token::Kind::kName) fail_here("expected a name");
    return take().text;
  }
  void expect_close() {
    if (now().kind != Token::Kind::kClose) {
      fail_here(format_text("expected the end of the tag, not '{}'", now().text));
    }
    ++at_;
  }

  ExpressionPtr make(Kind kind, std::string name,
                     std::initializer_list<ExpressionPtr*> children = {}) {
    auto node = std::make_unique<Expression>(Expression{.kind = kind, .line = now().line});
    node->name = std::move(name);
    for (ExpressionPtr* child : children) add(*node, std::move(*child));
    return node;
  }
  void add(Expression& node, ExpressionPtr child) {
    if (child != nullptr) node.depth = std::max(node.depth, child->depth + 1);
    if (node.depth > kDepthMax) fail_deep();
    node.children.push_back(std::move(child));
  }

  // Statements. ------------------------------------------------------------------------------

  // Parses up to a statement that starts with one of these words. The caller takes that statement.
  Block parse_block(std::initializer_list<std::string_view> ends) {
    const Nesting nesting(*this);
    Block block;
    while (now().kind != Token::Kind::kEnd) {
      if (now().kind == Token::Kind::kText) {
        block.push_back({.kind = Statement::Kind::kText, .line = now().line, .text = take().text});
      } else if (now().kind == Token::Kind::kOpenOutput) {
        ++at_;
        block.push_back({.kind = Statement::Kind::kOutput, .line = now().line});
        block.back().expression = parse_expression();
        expect_close();
      } else {
        for (const std::string_view end : ends) {
          if (next().is_name(end)) return block;
        }
        ++at_;
        block.push_back(parse_statement());
      }
    }
    if (ends.size() > 0) fail_here(format_text("'{}' is missing", *(ends.end() - 1)));
    return block;
  }

  // Takes the statement that ended a block, such as {% endfor %}.
  void take_end(std::string_view name) {
    ++at_;
    if (!take_name(name)) fail_here(format_text("expected '{}'", name));
    expect_close();
  }

  Statement parse_statement() {
    const int line = now().line;
    const std::string keyword = expect_name();
    if (keyword == "if") return parse_if(line);
    if (keyword == "for") return parse_for(line);
    if (keyword == "set") return parse_set(line);
    if (keyword == "macro") return parse_macro(line);
    if (keyword == "call") {
      Statement statement{.kind = Statement::Kind::kCall, .line = line};
      statement.expression = parse_expression();
      return with_body(std::move(statement), "endcall");
    }
    if (keyword == "filter") {
      Statement statement{.kind = Statement::Kind::kFilter, .line = line};
      statement.expression = parse_filter(nullptr);
      return with_body(std::move(statement), "endfilter");
    }
    if (keyword == "generation") {  // marks training data; has no effect on rendering
      return with_body({.kind = Statement::Kind::kBlock, .line = line}, "endgeneration");
    }
    if (keyword == "break" || keyword == "continue") {
      expect_close();
      return {.kind = keyword == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue,
              .line = line};
    }
    fail_here(format_text("unknown statement '{}'", keyword));
  }

  Statement with_body(Statement statement, std::string_view end) {
    expect_close();
    statement.body = parse_block({end});
    take_end(end);
    return statement;
  }

  Statement parse_if(int line) {
    Statement statement{.kind = Statement::Kind::kIf, .line = line};
    ExpressionPtr condition = parse_expression();
    while (true) {
      expect_close();
      Block body = parse_block({"elif", "else", "endif"});
      statement.branches.emplace_back(std::move(condition), std::move(body));
      ++at_;
      const std::string keyword = expect_name();
      if (keyword == "endif") break;
      condition = keyword == "elif" ? parse_expression() : nullptr;
    }
    expect_close();
    return statement;
  }

  Statement parse_for(int line) {
    Statement statement{.kind = Statement::Kind::kFor, .line = line};
    const bool in_brackets = take_symbol("(");
    do {
      statement.names.push_back(expect_name());
    } while (take_symbol(","));
    if (in_brackets) expect_symbol(")");
    if (!take_name("in")) fail_here("expected 'in'");
    statement.expression = parse_or();  // "if" belongs to the loop
    if (take_name("if")) statement.condition = parse_expression();
    if (now().is_name("recursive")) fail_here("recursive loops are not supported");
    expect_close();
    statement.body = parse_block({"else", "endfor"});
    if (next().is_name("else")) {
      take_end("else");
      statement.otherwise = parse_block({"endfor"});
    }
    take_end("endfor");
    return statement;
  }

  Statement parse_set(int line) {
    Statement statement{.kind = Statement::Kind::kSet, .line = line};
    statement.names.push_back(expect_name());
    if (take_symbol(".")) {
      statement.text = statement.names[0];
      statement.names[0] = expect_name();
    }
    while (take_symbol(",")) statement.names.push_back(expect_name());
    if (take_symbol("=")) {
      statement.expression = parse_tuple();
      expect_close();
      return statement;
    }
    statement.kind = Statement::Kind::kSetBlock;
    if (take_symbol("|")) {
      --at_;
      statement.expression = parse_filters(nullptr);
    }
    return with_body(std::move(statement), "endset");
  }

  Statement parse_macro(int line) {
    Statement statement{.kind = Statement::Kind::kMacro, .line = line, .text = expect_name()};
    expect_symbol("(");
    while (!take_symbol(")")) {
      Parameter parameter{.name = expect_name(), .value = nullptr};
      if (take_symbol("=")) parameter.value = parse_expression();
      statement.parameters.push_back(std::move(parameter));
      if (!now().is_symbol(")")) expect_symbol(",");
    }
    return with_body(std::move(statement), "endmacro");
  }

  // Expressions, from the weakest to the strongest binding. ---------------------------------------

  ExpressionPtr parse_tuple() {
    ExpressionPtr first = parse_expression();
    if (!now().is_symbol(",")) return first;
    ExpressionPtr list = make(Kind::kList, "", {&first});
    while (take_symbol(",")) {
      if (now().kind == Token::Kind::kClose || now().is_symbol(")")) break;
      add(*list, parse_expression());
    }
    return list;
  }

  ExpressionPtr parse_expression() {
    const Nesting nesting(*this);
    ExpressionPtr value = parse_or();
    while (take_name("if")) {
      ExpressionPtr condition = parse_or();
      ExpressionPtr otherwise = take_name("else") ? parse_expression() : nullptr;
      value = make(Kind::kIf, "", {&value, &condition, &otherwise});
    }
    return value;
  }

  ExpressionPtr parse_or() {
    ExpressionPtr left = parse_and();
    while (take_name("or")) left = binary("or", std::move(left), parse_and());
    return left;
  }
  ExpressionPtr parse_and() {
    ExpressionPtr left = parse_not();
    while (take_name("and")) left = binary("and", std::move(left), parse_not());
    return left;
  }
  ExpressionPtr parse_not() {
    const Nesting nesting(*this);
    if (!take_name("not")) return parse_comparison();
    ExpressionPtr operand = parse_not();
    return make(Kind::kUnary, "not", {&operand});
  }

  ExpressionPtr parse_comparison() {
    ExpressionPtr left = parse_sum();
    while (true) {
      std::string symbol;
      for (const std::string_view s : {"==", "!=", "<=", ">=", "<", ">"}) {
        if (symbol.empty() && take_symbol(s)) symbol = s;
      }
      if (symbol.empty() && take_name("in")) symbol = "in";
      if (symbol.empty() && now().is_name("not") && next().is_name("in")) {
        at_ += 2;
        symbol = "not in";
      }
      if (symbol.empty()) return left;
      left = binary(symbol, std::move(left), parse_sum());
    }
  }

  ExpressionPtr parse_sum() {
    ExpressionPtr left = parse_concat();
    while (now().is_symbol("+") || now().is_symbol("-")) {
      const std::string symbol = take().text;
      left = binary(symbol, std::move(left), parse_concat());
    }
    return left;
  }
  ExpressionPtr parse_concat() {
    ExpressionPtr left = parse_product();
    while (take_symbol("~")) left = binary("~", std::move(left), parse_product());
    return left;
  }
  ExpressionPtr parse_product() {
    ExpressionPtr left = parse_unary();
    while (now().is_symbol("*") || now().is_symbol("/") || now().is_symbol("//") ||
           now().is_symbol("%")) {
      const std::string symbol = take().text;
      left = binary(symbol, std::move(left), parse_unary());
    }
    return left;
  }
  ExpressionPtr parse_unary() {
    const Nesting nesting(*this);
    if (now().is_symbol("-") || now().is_symbol("+")) {
      const std::string symbol = take().text;
      ExpressionPtr operand = parse_unary();
      return make(Kind::kUnary, symbol, {&operand});
    }
    ExpressionPtr base = parse_tests(parse_filters(parse_postfix(parse_primary())));
    if (!take_symbol("**")) return base;
    return binary("**", std::move(base), parse_unary());
  }

  ExpressionPtr binary(std::string symbol, ExpressionPtr left, ExpressionPtr right) {
    return make(Kind::kBinary, std::move(symbol), {&left, &right});
  }

  ExpressionPtr parse_filters(ExpressionPtr value) {
    while (take_symbol("|")) value = parse_filter(std::move(value));
    return value;
  }
  ExpressionPtr parse_filter(ExpressionPtr value) {
    ExpressionPtr filter = make(Kind::kFilter, expect_name());
    add(*filter, std::move(value));
    if (take_symbol("(")) parse_arguments(*filter);
    return filter;
  }

  ExpressionPtr parse_tests(ExpressionPtr value) {
    while (take_name("is")) {
      const bool negated = take_name("not");
      ExpressionPtr test = make(Kind::kTest, expect_name(), {&value});
      if (take_symbol("(")) {
        parse_arguments(*test);
      } else if (now().kind == Token::Kind::kString || now().kind == Token::Kind::kInteger ||
                 now().is_symbol("[")) {
        add(*test, parse_postfix(parse_primary()));
      }
      value = std::move(test);
      if (negated) value = make(Kind::kUnary, "not", {&value});
      value = parse_filters(std::move(value));
    }
    return value;
  }

  ExpressionPtr parse_postfix(ExpressionPtr value) {
    while (true) {
      if (take_symbol(".")) {
        value = make(Kind::kAttribute,
                     now().kind == Token::Kind::kInteger ? take().text : expect_name(), {&value});
      } else if (take_symbol("[")) {
        value = parse_subscript(std::move(value));
      } else if (take_symbol("(")) {
        value = make(Kind::kCall, "", {&value});
        parse_arguments(*value);
      } else {
        return value;
      }
    }
  }

  ExpressionPtr parse_subscript(ExpressionPtr value) {
    ExpressionPtr parts[3];
    int n_colons = 0;
    while (!take_symbol("]")) {
      if (take_symbol(":")) {
        if (++n_colons > 2) fail_here("a slice has at most two colons");
      } else {
        if (parts[n_colons] != nullptr) fail_here("expected ']'");
        parts[n_colons] = parse_expression();
      }
    }
    if (n_colons > 0) return make(Kind::kSlice, "", {&value, &parts[0], &parts[1], &parts[2]});
    if (parts[0] == nullptr) fail_here("expected an index");
    return make(Kind::kIndex, "", {&value, &parts[0]});
  }

  void parse_arguments(Expression& call) {
    while (!take_symbol(")")) {
      if (now().is_symbol("*") || now().is_symbol("**")) fail_here("'*' is not supported in calls");
      if (now().kind == Token::Kind::kName && next().is_symbol("=")) {
        std::string name = take().text;
        ++at_;
        ExpressionPtr value = parse_expression();
        call.depth = std::max(call.depth, value->depth + 1);
        call.named.emplace_back(std::move(name), std::move(value));
      } else {
        add(call, parse_expression());
      }
      if (!now().is_symbol(")")) expect_symbol(",");
    }
  }

  ExpressionPtr literal(Value value) {
    ExpressionPtr node = make(Kind::kLiteral, "");
    node->value = std::move(value);
    return node;
  }

  ExpressionPtr parse_primary() {
    const Nesting nesting(*this);
    const Token token = take();
    switch (token.kind) {
      case Token::Kind::kString: {
        std::string text = token.text;
        while (now().kind == Token::Kind::kString) text += take().text;
        return literal(Value::text(MarkedText(std::move(text), Origin::kTemplate), nullptr));
      }
      case Token::Kind::kInteger: {
        std::int64_t number = 0;
        const char* end = token.text.data() + token.text.size();
        const auto [stop, error] = std::from_chars(token.text.data(), end, number);
        if (stop != end || error != std::errc()) fail_here("a number is too large");
        return literal(Value(number));
      }
      case Token::Kind::kFloat: return literal(Value(std::stod(token.text)));
      case Token::Kind::kName: return parse_name(token.text);
      default: break;
    }
    if (token.is_symbol("(")) {
      if (take_symbol(")")) return make(Kind::kList, "");
      ExpressionPtr inner = parse_tuple();
      expect_symbol(")");
      return inner;
    }
    if (token.is_symbol("[")) return parse_list();
    if (token.is_symbol("{")) return parse_dict();
    fail_here(format_text("unexpected '{}'", token.text));
  }

  ExpressionPtr parse_name(const std::string& name) {
    if (name == "true" || name == "True") return literal(Value(true));
    if (name == "false" || name == "False") return literal(Value(false));
    if (name == "none" || name == "None") return literal(Value(None{}));
    return make(Kind::kName, name);
  }

  ExpressionPtr parse_list() {
    ExpressionPtr list = make(Kind::kList, "");
    while (!take_symbol("]")) {
      add(*list, parse_expression());
      if (!now().is_symbol("]")) expect_symbol(",");
    }
    return list;
  }

  ExpressionPtr parse_dict() {
    ExpressionPtr dict = make(Kind::kDict, "");
    while (!take_symbol("}")) {
      add(*dict, parse_expression());
      expect_symbol(":");
      add(*dict, parse_expression());
      if (!now().is_symbol("}")) expect_symbol(",");
    }
    return dict;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int n_nested_ = 0;
};

}  // namespace

Block parse(std::string_view source) { return Parser(tokenize(source)).run(); }

}  // namespace slipstream::jinja
