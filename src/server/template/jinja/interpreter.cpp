#include "server/template/jinja/interpreter.h"

#include <map>

#include "base/format.h"
#include "engine/text/text_limits.h"
#include "server/template/jinja/filters.h"
#include "server/template/jinja/functions.h"
#include "server/template/jinja/items.h"
#include "server/template/jinja/operators.h"

namespace slipstream::jinja {
namespace {

// The maximum nesting of statements and expressions at run time, including macros.
constexpr int kCallDepthMax = 600;

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string, Value>> names = {};

  // There are few names, unless a client sends thousands of variables.
  const Value* find(std::string_view name, Budget& budget) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
      budget.step(scope->names.size() / 32);
      for (const auto& [key, value] : scope->names) {
        if (key == name) return &value;
      }
    }
    return nullptr;
  }
  void set(std::string_view name, Value value, Budget& budget) {
    budget.step(names.size() / 32);
    for (auto& [key, old] : names) {
      if (key == name) {
        old = std::move(value);
        return;
      }
    }
    names.emplace_back(name, std::move(value));
  }
};

class Interpreter {
 public:
  Interpreter(std::vector<std::pair<std::string, Value>> globals, Budget& budget)
      : budget_(budget) {
    globals_.names = std::move(globals);
  }
  // A namespace may hold itself. Emptying it breaks the cycle, so that it is freed.
  ~Interpreter() {
    for (const auto& space : namespaces_) space->items.clear();
  }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  MarkedText run(const Block& block) {
    MarkedText out;
    execute(block, globals_, out);
    return out;
  }

 private:
  enum class Flow { kNext, kBreak, kContinue };

  class Nesting {
   public:
    explicit Nesting(Interpreter& interpreter) : interpreter_(interpreter) {
      if (++interpreter_.n_nested_ > kCallDepthMax) {
        throw TemplateError{"macros or expressions are nested too deeply", true};
      }
    }
    ~Nesting() { --interpreter_.n_nested_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Interpreter& interpreter_;
  };

  void check_room(const MarkedText& out, std::size_t n_bytes) {
    budget_.step(n_bytes / 64);
    if (out.size() + n_bytes > kTextLimits.text_bytes_max) {
      throw TemplateError{"the prompt becomes too long", true};
    }
  }
  void write(const MarkedText& text, MarkedText& out) {
    check_room(out, text.size());
    budget_.step(text.client_ranges().size() / 4);
    out.append(text);
  }

  // Statements. --------------------------------------------------------------------------------

  Flow execute(const Block& block, Scope& scope, MarkedText& out) {
    const Nesting nesting(*this);
    for (const Statement& statement : block) {
      budget_.step();
      line_ = statement.line;
      const Flow flow = execute(statement, scope, out);
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

  Flow execute(const Statement& statement, Scope& scope, MarkedText& out) {
    switch (statement.kind) {
      case Statement::Kind::kText:
        check_room(out, statement.text.size());
        out.append(statement.text, Origin::kTemplate);
        break;
      case Statement::Kind::kOutput:
        write(to_text(evaluate(*statement.expression, scope), budget_), out);
        break;
      case Statement::Kind::kIf:
        for (const auto& [condition, body] : statement.branches) {
          if (condition == nullptr || evaluate(*condition, scope).truth()) {
            return execute(body, scope, out);
          }
        }
        break;
      case Statement::Kind::kFor: execute_for(statement, scope, out); break;
      case Statement::Kind::kSet: execute_set(statement, scope); break;
      case Statement::Kind::kSetBlock: execute_set_block(statement, scope); break;
      case Statement::Kind::kMacro: define_macro(statement, scope); break;
      case Statement::Kind::kCall: execute_call(statement, scope, out); break;
      case Statement::Kind::kFilter: {
        const Value text = Value::text(rendered(statement.body, scope), &budget_);
        write(to_text(apply_filter(*statement.expression, text, scope), budget_), out);
        break;
      }
      case Statement::Kind::kBlock: return execute(statement.body, scope, out);
      case Statement::Kind::kBreak: return Flow::kBreak;
      case Statement::Kind::kContinue: return Flow::kContinue;
    }
    return Flow::kNext;
  }

  MarkedText rendered(const Block& block, Scope& scope) {
    MarkedText text;
    execute(block, scope, text);
    return text;
  }

  void assign(const std::vector<std::string>& names, const Value& value, Scope& scope) {
    if (names.size() == 1) return scope.set(names[0], value, budget_);
    const std::vector<Value> parts = items_of(value, budget_);
    if (parts.size() != names.size()) {
      fail(format_text("line {}: {} values for {} names", line_, parts.size(), names.size()));
    }
    for (std::size_t i = 0; i < names.size(); ++i) scope.set(names[i], parts[i], budget_);
  }

  void execute_for(const Statement& statement, Scope& scope, MarkedText& out) {
    auto loop = std::make_shared<Loop>();
    const Value iterated = evaluate(*statement.expression, scope);
    for (Value& item : items_of(iterated, budget_)) {
      if (statement.condition != nullptr) {
        Scope inner{.parent = &scope};
        assign(statement.names, item, inner);
        if (!evaluate(*statement.condition, inner).truth()) continue;
      }
      loop->items.push_back(std::move(item));
    }
    if (loop->items.empty()) {
      execute(statement.otherwise, scope, out);
      return;
    }
    const std::size_t n_bytes = loop->items.size() * sizeof(Value);
    budget_.take_bytes(n_bytes);
    for (; loop->idx < loop->items.size(); ++loop->idx) {
      budget_.step(4);                // a scope costs about as much as four expressions
      Scope inner{.parent = &scope};  // names set in an iteration end with it
      inner.set("loop", Value(loop), budget_);
      assign(statement.names, loop->items[loop->idx], inner);
      if (execute(statement.body, inner, out) == Flow::kBreak) break;
    }
    // Code that kept `loop` now sees no items, because they are no longer counted.
    budget_.return_bytes(n_bytes);
    loop->items.clear();
    loop->idx = 0;
  }

  void execute_set(const Statement& statement, Scope& scope) {
    Value value = evaluate(*statement.expression, scope);
    if (statement.text.empty()) return assign(statement.names, value, scope);
    const Value* target = scope.find(statement.text, budget_);
    const auto* space = target == nullptr ? nullptr : target->as<std::shared_ptr<Namespace>>();
    if (space == nullptr) {
      fail(format_text("line {}: '{}' is no namespace", line_, statement.text));
    }
    (*space)->set(statement.names[0], std::move(value), budget_);
  }

  void execute_set_block(const Statement& statement, Scope& scope) {
    Value value = Value::text(rendered(statement.body, scope), &budget_);
    if (statement.expression != nullptr) {
      value = apply_filter(*statement.expression, value, scope);
    }
    scope.set(statement.names[0], std::move(value), budget_);
  }

  void define_macro(const Statement& statement, Scope& scope) {
    const auto [it, is_new] = macros_.try_emplace(&statement, Macro{.statement = &statement});
    scope.set(statement.text, Value(static_cast<const Macro*>(&it->second)), budget_);
  }

  void execute_call(const Statement& statement, Scope& scope, MarkedText& out) {
    // A template may keep caller() longer than the scope in which it was made.
    const auto is_alive = std::make_shared<bool>(true);
    const Value caller(std::make_shared<const std::function<Value(const Arguments&)>>(
        [this, &statement, &scope, is_alive](const Arguments&) {
          if (!*is_alive) fail("caller() is over");
          return Value::text(rendered(statement.body, scope), &budget_);
        }));
    if (statement.expression->kind != Expression::Kind::kCall) fail("'call' needs a call");
    const Value macro = evaluate(*statement.expression->children[0], scope);
    const auto* found = macro.as<const Macro*>();
    if (found == nullptr) fail("'call' needs a macro");
    const Arguments arguments = evaluate_arguments(*statement.expression, scope);
    write(to_text(call_macro(**found, arguments, &caller), budget_), out);
    *is_alive = false;
  }

  // Calls. -------------------------------------------------------------------------------------

  Value call_macro(const Macro& macro, const Arguments& arguments, const Value* caller) {
    const Nesting nesting(*this);
    const Statement& statement = *macro.statement;
    Scope scope{.parent = &globals_};
    if (arguments.values.size() > statement.parameters.size()) {
      fail(format_text("the macro '{}' takes fewer values", statement.text));
    }
    for (std::size_t i = 0; i < statement.parameters.size(); ++i) {
      const Parameter& parameter = statement.parameters[i];
      const Value* given = arguments.find(i, parameter.name);
      scope.set(parameter.name,
                given != nullptr             ? *given
                : parameter.value != nullptr ? evaluate(*parameter.value, scope)
                                             : Value(Undefined{parameter.name}),
                budget_);
    }
    if (caller != nullptr) scope.set("caller", *caller, budget_);
    return Value::text(rendered(statement.body, scope), &budget_);
  }

  Arguments evaluate_arguments(const Expression& call, Scope& scope) {
    Arguments arguments;
    for (std::size_t i = 1; i < call.children.size(); ++i) {
      arguments.values.push_back(evaluate(*call.children[i], scope));
    }
    for (const auto& [name, value] : call.named) {
      arguments.named.emplace_back(name, evaluate(*value, scope));
    }
    return arguments;
  }

  Value make_namespace(const Arguments& arguments) {
    auto space = std::make_shared<Namespace>();
    for (const auto& [name, value] : arguments.named) space->set(name, value, budget_);
    if (!arguments.values.empty() && arguments.values[0].dict() != nullptr) {
      for (const auto& [name, value] : arguments.values[0].dict()->items) {
        space->set(name, value, budget_);
      }
    }
    budget_.take_bytes(sizeof(Namespace));  // kept until the render ends
    namespaces_.push_back(space);
    return Value(space);
  }

  Value evaluate_call(const Expression& call, Scope& scope) {
    const Expression& callee = *call.children[0];
    const Arguments arguments = evaluate_arguments(call, scope);
    if (callee.kind == Expression::Kind::kAttribute) {
      const Value object = evaluate(*callee.children[0], scope);
      if (object.is_undefined() || object.is_none()) {
        fail(format_text("line {}: cannot call '{}' of {}", call.line, callee.name,
                         object.is_none() ? "none" : "what is undefined"));
      }
      if (auto result = call_method(callee.name, object, arguments, budget_)) return *result;
      return call_value(get_attribute(object, callee.name, budget_), callee.name, arguments);
    }
    if (callee.kind == Expression::Kind::kName && scope.find(callee.name, budget_) == nullptr) {
      if (callee.name == "namespace") return make_namespace(arguments);
      if (callee.name == "range") return make_range(arguments, budget_);
      if (callee.name == "dict") return Value::dict(arguments.named, Origin::kTemplate, budget_);
      if (callee.name == "raise_exception") {
        fail(arguments.values.empty() ? "raise_exception()"
                                      : to_text(arguments.values[0], budget_).text());
      }
    }
    return call_value(evaluate(callee, scope), callee.name, arguments);
  }

  Value call_value(const Value& callee, std::string_view name, const Arguments& arguments) {
    if (const auto* macro = callee.as<const Macro*>())
      return call_macro(**macro, arguments, nullptr);
    if (const auto* function = callee.as<Value::Function>()) return (**function)(arguments);
    fail(format_text("line {}: '{}' cannot be called", line_, name));
  }

  Value apply_filter(const Expression& filter, const Value& value, Scope& scope) {
    // This is a chain of filters in {% filter %} or {% set %}. The innermost filter has no operand
    // of its own.
    const Value operand = filter.children[0] == nullptr ? value
                          : filter.children[0]->kind == Expression::Kind::kFilter
                              ? apply_filter(*filter.children[0], value, scope)
                              : evaluate(*filter.children[0], scope);
    return call_filter(filter.name, operand, evaluate_arguments(filter, scope), budget_);
  }

  // Expressions. -------------------------------------------------------------------------------

  Value evaluate(const Expression& expression, Scope& scope) {
    const Nesting nesting(*this);
    budget_.step();
    switch (expression.kind) {
      case Expression::Kind::kLiteral: return expression.value;
      case Expression::Kind::kName: {
        const Value* found = scope.find(expression.name, budget_);
        return found != nullptr ? *found : Value(Undefined{expression.name});
      }
      case Expression::Kind::kList: {
        std::vector<Value> items;
        for (const auto& child : expression.children) items.push_back(evaluate(*child, scope));
        return Value::list(std::move(items), budget_);
      }
      case Expression::Kind::kDict: return evaluate_dict(expression, scope);
      case Expression::Kind::kAttribute: {
        const Value object = evaluate(*expression.children[0], scope);
        const bool is_index = expression.name[0] >= '0' && expression.name[0] <= '9';
        if (!is_index) return get_attribute(object, expression.name, budget_);
        return get_item(object,
                        Value(static_cast<std::int64_t>(std::stoi(expression.name.substr(0, 6)))),
                        budget_);
      }
      case Expression::Kind::kIndex: {
        const Value object = evaluate(*expression.children[0], scope);
        return get_item(object, evaluate(*expression.children[1], scope), budget_);
      }
      case Expression::Kind::kSlice: return evaluate_slice(expression, scope);
      case Expression::Kind::kCall: return evaluate_call(expression, scope);
      case Expression::Kind::kFilter: {
        const Value operand = evaluate(*expression.children[0], scope);
        return call_filter(expression.name, operand, evaluate_arguments(expression, scope),
                           budget_);
      }
      case Expression::Kind::kTest: {
        const Value operand = evaluate(*expression.children[0], scope);
        return Value(
            call_test(expression.name, operand, evaluate_arguments(expression, scope), budget_));
      }
      case Expression::Kind::kUnary:
        return apply_unary(expression.name, evaluate(*expression.children[0], scope));
      case Expression::Kind::kBinary: return evaluate_binary(expression, scope);
      case Expression::Kind::kIf:
        if (evaluate(*expression.children[1], scope).truth()) {
          return evaluate(*expression.children[0], scope);
        }
        if (expression.children[2] == nullptr) return Value(Undefined{"the missing else"});
        return evaluate(*expression.children[2], scope);
    }
    return {};
  }

  Value evaluate_dict(const Expression& expression, Scope& scope) {
    std::vector<Dict::Item> items;
    std::map<std::string, std::size_t> places;
    bool has_integers = !expression.children.empty();
    Origin key_origin = Origin::kTemplate;
    for (std::size_t i = 0; i + 1 < expression.children.size(); i += 2) {
      const Value key = evaluate(*expression.children[i], scope);
      has_integers = has_integers && key.as<std::int64_t>() != nullptr;
      const MarkedText key_text = to_text(key, budget_);
      if (key_text.origin() == Origin::kClient) key_origin = Origin::kClient;
      std::string name = key_text.text();
      Value value = evaluate(*expression.children[i + 1], scope);
      const auto [place, is_new] = places.try_emplace(name, items.size());
      if (is_new) {
        items.emplace_back(std::move(name), std::move(value));
      } else {
        items[place->second].second = std::move(value);
      }
    }
    Value dict = Value::dict(std::move(items), key_origin, budget_);
    (*dict.as<std::shared_ptr<Dict>>())->has_integer_keys = has_integers;
    return dict;
  }

  Value evaluate_slice(const Expression& expression, Scope& scope) {
    const Value object = evaluate(*expression.children[0], scope);
    const auto part = [&](std::size_t idx) {
      const ExpressionPtr& child = expression.children[idx];
      return child == nullptr ? Value(None{}) : evaluate(*child, scope);
    };
    const Value start = part(1);
    const Value end = part(2);
    const Value step = part(3);
    return get_slice(object, &start, &end, &step, budget_);
  }

  Value evaluate_binary(const Expression& expression, Scope& scope) {
    const std::string& symbol = expression.name;
    const Value left = evaluate(*expression.children[0], scope);
    if (symbol == "and") return left.truth() ? evaluate(*expression.children[1], scope) : left;
    if (symbol == "or") return left.truth() ? left : evaluate(*expression.children[1], scope);
    return apply_binary(symbol, left, evaluate(*expression.children[1], scope), line_, budget_);
  }

  Budget& budget_;
  Scope globals_;
  std::map<const Statement*, Macro> macros_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  int n_nested_ = 0;
  int line_ = 0;
};

}  // namespace

MarkedText render(const Block& block, std::vector<std::pair<std::string, Value>> globals,
                  Budget& budget) {
  return Interpreter(std::move(globals), budget).run(block);
}

}  // namespace slipstream::jinja
