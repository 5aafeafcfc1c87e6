// Value: what a chat template computes with, following Python. Budget: what a render may use.
//
// Texts, lists and dicts are shared, and are charged to the Budget of their render while they live.
// Lists and dicts are at most template_nesting_max deep, so that walking or destroying them cannot
// overflow the stack. Only a namespace may hold itself, and nothing walks through a namespace.
// Texts and keys know whether a client wrote them (marked_text.h). Numbers do not: digits alone are
// never a control token.
//
// Threads: thread-compatible; the values of one render belong to one thread.
// Errors:  TemplateError is thrown, only within this folder and chat_template.cpp: expressions are
//          evaluated at any depth, and every step can fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/text/marked_text.h"
#include "server/template/template_limits.h"

namespace slipstream::jinja {

struct TemplateError {
  std::string message;
  bool is_limit = false;  // the template exceeded a limit; it may be correct
};
[[noreturn]] void fail(std::string message);

// A limit for slow CPUs, where the steps of template_limits.h take longer than a second or two.
inline constexpr int kRenderSecondsMax = 10;

// How much a render has used of its limits (template_limits.h).
class Budget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Budget() : end_(latest_end()) {}
  Budget(std::size_t n_steps_max, std::size_t n_bytes_max, Time end)
      : n_steps_max_(n_steps_max), n_bytes_max_(n_bytes_max), end_(end) {}
  Budget(const Budget&) = delete;  // values refer to it
  Budget& operator=(const Budget&) = delete;
  // The deadline of a render that begins now.
  [[nodiscard]] static Time latest_end() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(kRenderSecondsMax);
  }

  void step(std::size_t n = 1);
  void take_bytes(std::size_t n);
  void return_bytes(std::size_t n) { n_bytes_ -= n; }
  [[nodiscard]] std::size_t n_steps() const { return n_steps_; }

 private:
  std::size_t n_steps_max_ = kTemplateLimits.template_steps_max;
  std::size_t n_bytes_max_ = kTemplateLimits.template_bytes_max;
  std::size_t n_steps_ = 0;
  std::size_t n_bytes_ = 0;
  std::size_t next_look_at_clock_ = 0;  // in steps
  Time end_;
};

class Value;
struct Text;
struct List;
struct Dict;
struct Namespace;
struct Macro;
struct Loop;
struct Undefined {
  Undefined() = default;
  // The name is for the message. It is cut: a key that a client chose may be megabytes long.
  explicit Undefined(std::string_view what)
      : text(std::make_shared<const std::string>(what.substr(0, 64))) {}
  [[nodiscard]] std::string_view name() const { return text ? std::string_view(*text) : ""; }
  std::shared_ptr<const std::string> text;  // shared, to keep every Value small
};
struct None {};

// Named and positional arguments of a call.
struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;
  // The argument at this position or with this name; null if there is none.
  [[nodiscard]] const Value* find(std::size_t idx, std::string_view name) const;
};

class Value {
 public:
  using Function = std::shared_ptr<const std::function<Value(const Arguments&)>>;
  using Variant =
      std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const Text>,
                   std::shared_ptr<List>, std::shared_ptr<Dict>, std::shared_ptr<Namespace>,
                   std::shared_ptr<Loop>, const Macro*, Function>;

  Value() = default;
  template <typename T>
  explicit Value(T value) : variant_(std::move(value)) {}
  static Value text(MarkedText text, Budget* budget);
  static Value list(std::vector<Value> items, Budget& budget);
  static Value dict(std::vector<std::pair<std::string, Value>> items, Origin key_origin,
                    Budget& budget);
  // All texts and keys get this `origin`. Each value is moved out of the JSON as it is converted.
  static Value from_json(nlohmann::ordered_json json, Origin origin, Budget& budget, int depth = 0);

  template <typename T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&variant_);
  }
  [[nodiscard]] bool is_undefined() const { return as<Undefined>() != nullptr; }
  [[nodiscard]] bool is_none() const { return as<None>() != nullptr; }
  [[nodiscard]] bool is_number() const;            // booleans too, as in Python
  [[nodiscard]] const MarkedText* marked() const;  // a text with its marks
  [[nodiscard]] const std::string* text() const;
  [[nodiscard]] const std::vector<Value>* list() const;
  [[nodiscard]] const Dict* dict() const;
  [[nodiscard]] const std::shared_ptr<List>* shared_list() const {
    return as<std::shared_ptr<List>>();
  }

  [[nodiscard]] bool truth() const;
  [[nodiscard]] int depth() const;
  [[nodiscard]] std::string_view type_name() const;

 private:
  Variant variant_;
};

struct Text {
  Text(MarkedText text, Budget* owner);
  ~Text();
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  [[nodiscard]] std::size_t n_bytes() const {
    return sizeof(Text) + text.size() + text.mark_bytes();
  }

  const MarkedText text;
  Budget* budget;  // null for a literal of the template, which is not charged
};

struct List {
  List(std::vector<Value> values, Budget& owner);
  ~List();
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  // Accepts only values that are less deep than the list, so that no list ever holds itself.
  void append(Value value);
  void remove(std::size_t idx);

  std::vector<Value> items;
  Budget& budget;
  int depth = 1;
};

struct Dict {
  using Item = std::pair<std::string, Value>;
  Dict(std::vector<Item> values, Origin key_origin, Budget& owner);
  ~Dict();
  Dict(const Dict&) = delete;
  Dict& operator=(const Dict&) = delete;
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] Value key(const Item& item) const;

  std::vector<Item> items;        // in order; each key is unique
  Origin key_origin;              // the client's if any key is the client's
  bool has_integer_keys = false;  // {1: "a"}: all keys are integers and are returned as such
  Budget& budget;
  int depth = 1;
};

// A namespace, changed by {% set ns.x = ... %}. The render owns all of them and empties them when
// it ends, so that one that holds itself is freed.
struct Namespace {
  std::vector<Dict::Item> items;
  [[nodiscard]] const Value* find(std::string_view key, Budget& budget) const;
  void set(std::string_view key, Value value, Budget& budget);
};

struct Loop {
  std::vector<Value> items;
  std::size_t idx = 0;
};

// How Python's str(), repr() and json.dumps() write a value.
struct JsonStyle {
  int indent = -1;
  bool ascii = false;
  bool sorted = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
[[nodiscard]] MarkedText to_text(const Value& value, Budget& budget);
[[nodiscard]] MarkedText to_json(const Value& value, const JsonStyle& style, Budget& budget);

[[nodiscard]] bool equal(const Value& a, const Value& b, Budget& budget);
// Compares numbers or texts; fails for other values.
[[nodiscard]] bool less(const Value& a, const Value& b, Budget& budget);
[[nodiscard]] double to_double(const Value& value);
[[nodiscard]] std::int64_t to_int(const Value& value);
[[nodiscard]] const std::string& expect_text(const Value& value, std::string_view what);

// The items of a list, the keys of a dict, or the characters of a text; fails for other values.
[[nodiscard]] std::vector<Value> items_of(const Value& value, Budget& budget);
[[nodiscard]] std::vector<std::string_view> characters(std::string_view text, Budget& budget);

}  // namespace slipstream::jinja
