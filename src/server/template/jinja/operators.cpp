#include "server/template/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/format.h"
#include "engine/text/text_limits.h"
#include "server/template/jinja/items.h"

namespace slipstream::jinja {
namespace {

Value concatenate(MarkedText left, const MarkedText& right, Budget& budget) {
  const std::size_t n_bytes = left.size() + right.size();
  budget.step(n_bytes / 64);
  budget.take_bytes(n_bytes);  // before the memory is allocated
  budget.return_bytes(n_bytes);
  left.append(right);
  return Value::text(std::move(left), &budget);
}

Value repeat(const MarkedText& marked, std::int64_t n, Budget& budget) {
  const std::string& text = marked.text();
  std::string result;
  if (n > 0 && !text.empty()) {
    const std::size_t n_max = kTextLimits.text_bytes_max / text.size();
    if (static_cast<std::uint64_t>(n) > n_max) throw TemplateError{"a text is too long", true};
    const std::size_t n_bytes = static_cast<std::size_t>(n) * text.size();
    budget.step(n_bytes / 64);
    budget.take_bytes(n_bytes);
    budget.return_bytes(n_bytes);
    result.reserve(n_bytes);
    result = text;
    while (result.size() < n_bytes) {  // by doubling: takes at most the steps that were counted
      result.append(result, 0, std::min(result.size(), n_bytes - result.size()));
    }
  }
  return Value::text(MarkedText(std::move(result), marked.origin()), &budget);
}

Value calculate(std::string_view symbol, const Value& left, const Value& right, int line) {
  for (const Value* operand : {&left, &right}) {
    if (operand->is_number()) continue;
    const auto* undefined = operand->as<Undefined>();
    fail(format_text("line {}: '{}' cannot be applied to {}{}", line, symbol, operand->type_name(),
                     undefined == nullptr ? "" : format_text(" ('{}')", undefined->name())));
  }
  const bool is_float = left.as<double>() != nullptr || right.as<double>() != nullptr;
  if (is_float || symbol == "/" || symbol == "**") {
    const double a = to_double(left);
    const double b = to_double(right);
    if ((symbol == "/" || symbol == "//" || symbol == "%") && b == 0) fail("division by zero");
    double result = 0;
    if (symbol == "+") result = a + b;
    if (symbol == "-") result = a - b;
    if (symbol == "*") result = a * b;
    if (symbol == "/") result = a / b;
    if (symbol == "//") result = std::floor(a / b);
    if (symbol == "%") result = a - b * std::floor(a / b);
    if (symbol == "**") result = std::pow(a, b);
    const bool is_whole = !is_float && symbol == "**" && std::fabs(result) < 9e15;
    return is_whole && to_int(right) >= 0 ? Value(static_cast<std::int64_t>(result))
                                          : Value(result);
  }
  const std::int64_t a = to_int(left);
  const std::int64_t b = to_int(right);
  std::int64_t result = 0;
  bool overflows = false;
  if (symbol == "+") overflows = __builtin_add_overflow(a, b, &result);
  if (symbol == "-") overflows = __builtin_sub_overflow(a, b, &result);
  if (symbol == "*") overflows = __builtin_mul_overflow(a, b, &result);
  if (symbol == "//" || symbol == "%") {
    if (b == 0) fail("division by zero");
    overflows = a == INT64_MIN && b == -1;
    if (!overflows) {
      const std::int64_t rest = a % b;
      const bool rounds_down = rest != 0 && (rest < 0) != (b < 0);
      result = symbol == "//" ? a / b - (rounds_down ? 1 : 0) : rest + (rounds_down ? b : 0);
    }
  }
  if (overflows) fail("a number is too large");
  return Value(result);
}

}  // namespace

Value apply_unary(std::string_view symbol, const Value& operand) {
  if (symbol == "not") return Value(!operand.truth());
  if (symbol == "+") return operand;
  if (operand.as<double>() != nullptr) return Value(-to_double(operand));
  std::int64_t result = 0;
  if (__builtin_sub_overflow(std::int64_t{0}, to_int(operand), &result))
    fail("a number is too large");
  return Value(result);
}

Value apply_binary(std::string_view symbol, const Value& left, const Value& right, int line,
                   Budget& budget) {
  if (symbol == "==") return Value(equal(left, right, budget));
  if (symbol == "!=") return Value(!equal(left, right, budget));
  if (symbol == "<") return Value(less(left, right, budget));
  if (symbol == ">") return Value(less(right, left, budget));
  if (symbol == "<=") return Value(!less(right, left, budget));
  if (symbol == ">=") return Value(!less(left, right, budget));
  if (symbol == "in") return Value(contains(right, left, budget));
  if (symbol == "not in") return Value(!contains(right, left, budget));
  if (symbol == "~") return concatenate(to_text(left, budget), to_text(right, budget), budget);
  if (symbol == "+" && left.text() != nullptr) {
    (void)expect_text(right, "'+'");
    return concatenate(*left.marked(), *right.marked(), budget);
  }
  if (symbol == "+" && left.list() != nullptr && right.list() != nullptr) {
    std::vector<Value> items = items_of(left, budget);
    for (Value& item : items_of(right, budget)) items.push_back(std::move(item));
    return Value::list(std::move(items), budget);
  }
  if (symbol == "*" && left.text() != nullptr) {
    return repeat(*left.marked(), to_int(right), budget);
  }
  return calculate(symbol, left, right, line);
}

}  // namespace slipstream::jinja
