#include "server/template/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "engine/text/text_limits.h"
#include "server/output/json_reader.h"
#include "server/template/template_limits.h"

namespace slipstream::jinja {
namespace {

constexpr int kNestingMax = static_cast<int>(kTemplateLimits.template_nesting_max);
// The bytes that are charged for one value in a list or dict.
constexpr std::size_t kItemBytes = sizeof(Value) + 16;

// This many steps take a few milliseconds.
constexpr std::size_t kStepsBetweenLooks = std::size_t{1} << 14;

// Removes the first character from the text and returns it.
std::string_view take_character(std::string_view& text) {
  std::size_t n = 1;
  while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) ++n;
  const std::string_view character = text.substr(0, n);
  text.remove_prefix(n);
  return character;
}

int checked_depth(int depth) {
  if (depth > kNestingMax) throw TemplateError{"lists or objects are nested too deeply", true};
  return depth;
}

std::string float_text(double number) {
  if (!std::isfinite(number)) return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  char buffer[64];
  const double size = std::fabs(number);
  const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e16);  // as Python decides
  const auto format = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number, format);
  std::string text(buffer, end.ptr);
  if (is_plain && !text.contains('.')) text += ".0";
  return text;
}

// Writes values in Python's notation or as JSON.
class Writer {
 public:
  Writer(const JsonStyle* json, Budget& budget) : json_(json), budget_(budget) {}

  void write(const Value& value, int level) {
    budget_.step();
    if (const auto* boolean = value.as<bool>()) {
      put(json_ != nullptr ? (*boolean ? "true" : "false") : (*boolean ? "True" : "False"));
    } else if (value.is_none()) {
      put(json_ != nullptr ? "null" : "None");
    } else if (const auto* integer = value.as<std::int64_t>()) {
      put(std::to_string(*integer));
    } else if (const auto* number = value.as<double>()) {
      put(float_text(*number));
    } else if (const MarkedText* text = value.marked()) {
      write_text(*text);
    } else if (const auto* list = value.list()) {
      write_items(*list, "[", "]", level, [&](const Value& item) { write(item, level + 1); });
    } else if (value.dict() != nullptr) {
      write_dict(*value.dict(), level);
    } else if (json_ != nullptr) {
      fail(format_text("a value of type {} has no JSON", value.type_name()));
    } else if (value.is_undefined()) {
      put("Undefined");
    } else {
      put(format_text("<{}>", value.type_name()));
    }
  }
  MarkedText take() { return std::move(out_); }

 private:
  void put(std::string_view text) { out_.append(text, Origin::kTemplate); }

  void write_dict(const Dict& dict, int level) {
    const auto write_item = [&](const Dict::Item& item) {
      write_text(MarkedText(item.first, dict.key_origin));
      put(json_ != nullptr ? json_->key_separator : ": ");
      write(item.second, level + 1);
    };
    if (json_ == nullptr || !json_->sorted) {
      write_items(dict.items, "{", "}", level, write_item);
      return;
    }
    std::vector<Dict::Item> items = dict.items;
    std::ranges::stable_sort(items, {}, &Dict::Item::first);
    write_items(items, "{", "}", level, write_item);
  }

  template <typename Items, typename WriteItem>
  void write_items(const Items& items, std::string_view open, std::string_view close, int level,
                   WriteItem&& write_item) {
    const bool in_lines = json_ != nullptr && json_->indent >= 0 && !items.empty();
    const auto new_line = [&](int n) {
      if (!in_lines) return;
      put("\n");
      put(std::string(static_cast<std::size_t>(n) * static_cast<std::size_t>(json_->indent), ' '));
    };
    put(open);
    bool first = true;
    for (const auto& item : items) {
      if (!first) put(in_lines ? "," : json_ != nullptr ? json_->item_separator : ", ");
      first = false;
      new_line(level + 1);
      write_item(item);
      check_size();
    }
    new_line(level);
    put(close);
  }

  void write_text(const MarkedText& marked) {
    budget_.step(marked.size() / 16);
    const std::string& text = marked.text();
    const bool is_double = json_ != nullptr || (text.contains('\'') && !text.contains('"'));
    put(is_double ? "\"" : "'");
    marked.for_each_run([&](std::string_view run, Origin origin) {
      out_.append(json_ != nullptr ? json_escaped(run) : python_escaped(run, is_double), origin);
    });
    put(is_double ? "\"" : "'");
  }

  [[nodiscard]] std::string json_escaped(std::string_view run) const {
    std::string escaped;
    append_json_escaped(run, escaped);
    if (!json_->ascii) return escaped;
    const auto value =
        nlohmann::json::parse('"' + escaped + '"', nullptr, /*allow_exceptions=*/false);
    const std::string quoted =
        value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
    return value.is_string() ? quoted.substr(1, quoted.size() - 2) : quoted;
  }

  static std::string python_escaped(std::string_view run, bool is_double) {
    std::string escaped;
    for (const char byte : run) {
      if (byte == (is_double ? '"' : '\'') || byte == '\\') escaped += '\\';
      escaped += byte == '\n'   ? "\\n"
                 : byte == '\t' ? "\\t"
                 : byte == '\r' ? "\\r"
                                : std::string(1, byte);
    }
    return escaped;
  }

  void check_size() const {
    if (out_.size() > kTextLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
  }

  const JsonStyle* json_;
  Budget& budget_;
  MarkedText out_;
};

}  // namespace

void fail(std::string message) { throw TemplateError{std::move(message)}; }

void Budget::step(std::size_t n) {
  n_steps_ += n;
  if (n_steps_ > n_steps_max_) throw TemplateError{"it takes too many steps", true};
  if (n_steps_ < next_look_at_clock_) return;
  next_look_at_clock_ = n_steps_ + kStepsBetweenLooks;
  if (std::chrono::steady_clock::now() > end_) throw TemplateError{"it takes too long", true};
}

void Budget::take_bytes(std::size_t n) {
  if (n > n_bytes_max_ || n_bytes_ + n > n_bytes_max_) {
    throw TemplateError{"it takes too much memory", true};
  }
  n_bytes_ += n;
}

Text::Text(MarkedText value, Budget* owner) : text(std::move(value)), budget(owner) {
  if (budget == nullptr) return;
  if (text.size() > kTextLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
  budget->step(text.client_ranges().size() / 4);
  budget->take_bytes(n_bytes());
}
Text::~Text() {
  if (budget != nullptr) budget->return_bytes(n_bytes());
}

List::List(std::vector<Value> values, Budget& owner) : items(std::move(values)), budget(owner) {
  // An empty list may be filled later, so it counts as being as deep as it may become.
  if (items.empty()) depth = kNestingMax / 2;
  for (const Value& item : items) depth = std::max(depth, checked_depth(item.depth() + 1));
  budget.step(items.size());
  budget.take_bytes(items.size() * kItemBytes);
}
List::~List() { budget.return_bytes(items.size() * kItemBytes); }
void List::append(Value value) {
  if (value.depth() >= depth)
    throw TemplateError{"a list is filled with itself or one as deep", true};
  budget.step();
  budget.take_bytes(kItemBytes);
  items.push_back(std::move(value));
}

void List::remove(std::size_t idx) {
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(idx));
  budget.return_bytes(kItemBytes);
}

Dict::Dict(std::vector<Item> values, Origin origin, Budget& owner)
    : items(std::move(values)), key_origin(origin), budget(owner) {
  std::size_t n_bytes = items.size() * kItemBytes;
  for (const auto& [key, item] : items) {
    depth = std::max(depth, checked_depth(item.depth() + 1));
    n_bytes += key.size();
  }
  budget.step(items.size());
  budget.take_bytes(n_bytes);
}
Dict::~Dict() {
  std::size_t n_bytes = items.size() * kItemBytes;
  for (const auto& item : items) n_bytes += item.first.size();
  budget.return_bytes(n_bytes);
}
const Value* Dict::find(std::string_view key) const {
  budget.step(1 + items.size() / 8);
  const auto it = std::ranges::find(items, key, &Item::first);
  return it == items.end() ? nullptr : &it->second;
}

Value Dict::key(const Item& item) const {
  if (!has_integer_keys) return Value::text(MarkedText(item.first, key_origin), &budget);
  return Value(static_cast<std::int64_t>(std::strtoll(item.first.c_str(), nullptr, 10)));
}

const Value* Namespace::find(std::string_view key, Budget& budget) const {
  budget.step(1 + items.size() / 8);
  const auto it = std::ranges::find(items, key, &Dict::Item::first);
  return it == items.end() ? nullptr : &it->second;
}
void Namespace::set(std::string_view key, Value value, Budget& budget) {
  budget.step(1 + items.size() / 8);
  const auto it = std::ranges::find(items, key, &Dict::Item::first);
  if (it != items.end()) {
    it->second = std::move(value);
  } else {
    budget.take_bytes(kItemBytes + key.size());  // until the render ends, like the namespace itself
    items.emplace_back(key, std::move(value));
  }
}

const Value* Arguments::find(std::size_t idx, std::string_view name) const {
  if (idx < values.size()) return &values[idx];
  const auto it =
      std::ranges::find(named, name, [](const auto& item) { return std::string_view(item.first); });
  return it == named.end() ? nullptr : &it->second;
}

Value Value::text(MarkedText text, Budget* budget) {
  return Value(std::shared_ptr<const Text>(std::make_shared<Text>(std::move(text), budget)));
}
Value Value::list(std::vector<Value> items, Budget& budget) {
  return Value(std::make_shared<List>(std::move(items), budget));
}
Value Value::dict(std::vector<std::pair<std::string, Value>> items, Origin key_origin,
                  Budget& budget) {
  return Value(std::make_shared<Dict>(std::move(items), key_origin, budget));
}

Value Value::from_json(nlohmann::ordered_json json, Origin origin, Budget& budget, int depth) {
  checked_depth(depth);
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::boolean: return Value(json.get<bool>());
    case nlohmann::ordered_json::value_t::number_integer: return Value(json.get<std::int64_t>());
    case nlohmann::ordered_json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() <= INT64_MAX) return Value(json.get<std::int64_t>());
      return Value(json.get<double>());
    case nlohmann::ordered_json::value_t::number_float: return Value(json.get<double>());
    case nlohmann::ordered_json::value_t::string:
      return text(MarkedText(std::move(json.get_ref<std::string&>()), origin), &budget);
    case nlohmann::ordered_json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (auto& item : json) {
        items.push_back(from_json(std::move(item), origin, budget, depth + 1));
      }
      return list(std::move(items), budget);
    }
    case nlohmann::ordered_json::value_t::object: {
      std::vector<Dict::Item> items;
      items.reserve(json.size());
      for (auto& [key, item] : json.get_ref<nlohmann::ordered_json::object_t&>()) {
        items.emplace_back(key, from_json(std::move(item), origin, budget, depth + 1));
      }
      return dict(std::move(items), origin, budget);
    }
    default: return Value(None{});
  }
}

bool Value::is_number() const {
  return as<std::int64_t>() != nullptr || as<double>() != nullptr || as<bool>() != nullptr;
}
const MarkedText* Value::marked() const {
  const auto* text = as<std::shared_ptr<const Text>>();
  return text == nullptr ? nullptr : &(*text)->text;
}
const std::string* Value::text() const {
  const MarkedText* text = marked();
  return text == nullptr ? nullptr : &text->text();
}
const std::vector<Value>* Value::list() const {
  const auto* list = as<std::shared_ptr<List>>();
  return list == nullptr ? nullptr : &(*list)->items;
}
const Dict* Value::dict() const {
  const auto* dict = as<std::shared_ptr<Dict>>();
  return dict == nullptr ? nullptr : dict->get();
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (const auto* boolean = as<bool>()) return *boolean;
  if (is_number()) return to_double(*this) != 0;
  if (text() != nullptr) return !text()->empty();
  if (list() != nullptr) return !list()->empty();
  if (dict() != nullptr) return !dict()->items.empty();
  return true;
}

int Value::depth() const {
  if (const auto* list = as<std::shared_ptr<List>>()) return (*list)->depth;
  return dict() != nullptr ? dict()->depth : 0;
}

std::string_view Value::type_name() const {
  constexpr std::string_view kNames[] = {"undefined", "none", "boolean", "integer",
                                         "float",     "text", "list",    "object",
                                         "namespace", "loop", "macro",   "function"};
  return kNames[variant_.index()];
}

MarkedText to_text(const Value& value, Budget& budget) {
  if (value.marked() != nullptr) return *value.marked();
  if (value.is_undefined()) return {};
  Writer writer(nullptr, budget);
  writer.write(value, 0);
  return writer.take();
}

MarkedText to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  Writer writer(&style, budget);
  writer.write(value, 0);
  return writer.take();
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (a.is_number() && b.is_number()) return to_double(a) == to_double(b);
  if (a.text() != nullptr && b.text() != nullptr) {
    budget.step(a.text()->size() / 64);
    return *a.text() == *b.text();
  }
  if (a.list() != nullptr && b.list() != nullptr) {
    return std::ranges::equal(*a.list(), *b.list(),
                              [&](const Value& x, const Value& y) { return equal(x, y, budget); });
  }
  if (a.dict() != nullptr && b.dict() != nullptr) {
    return a.dict()->items.size() == b.dict()->items.size() &&
           std::ranges::all_of(a.dict()->items, [&](const Dict::Item& item) {
             const Value* other = b.dict()->find(item.first);
             return other != nullptr && equal(item.second, *other, budget);
           });
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

bool less(const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (a.is_number() && b.is_number()) return to_double(a) < to_double(b);
  if (a.text() != nullptr && b.text() != nullptr) {
    budget.step(std::min(a.text()->size(), b.text()->size()) / 64);
    return *a.text() < *b.text();
  }
  fail(format_text("cannot compare {} with {}", a.type_name(), b.type_name()));
}

double to_double(const Value& value) {
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* integer = value.as<std::int64_t>()) return static_cast<double>(*integer);
  if (const auto* boolean = value.as<bool>()) return *boolean ? 1 : 0;
  fail(format_text("expected a number, not {}", value.type_name()));
}

std::int64_t to_int(const Value& value) {
  if (const auto* integer = value.as<std::int64_t>()) return *integer;
  if (const auto* boolean = value.as<bool>()) return *boolean ? 1 : 0;
  fail(format_text("expected an integer, not {}", value.type_name()));
}

const std::string& expect_text(const Value& value, std::string_view what) {
  if (value.text() != nullptr) return *value.text();
  if (const auto* undefined = value.as<Undefined>(); undefined != nullptr) {
    fail(format_text("{} needs a text, and '{}' is undefined", what, undefined->name()));
  }
  fail(format_text("{} needs a text, not {}", what, value.type_name()));
}

std::vector<std::string_view> characters(std::string_view text, Budget& budget) {
  budget.step(text.size());
  // The bytes are returned at once because they are used briefly. Taking them limits the peak.
  const std::size_t n_bytes = text.size() * sizeof(std::string_view);
  budget.take_bytes(n_bytes);
  budget.return_bytes(n_bytes);
  std::vector<std::string_view> found;
  found.reserve(text.size());
  while (!text.empty()) found.push_back(take_character(text));
  return found;
}

std::vector<Value> items_of(const Value& value, Budget& budget) {
  if (value.list() != nullptr) {
    budget.step(value.list()->size());
    return *value.list();
  }
  std::vector<Value> items;
  if (value.dict() != nullptr) {
    for (const auto& item : value.dict()->items) items.push_back(value.dict()->key(item));
  } else if (value.text() != nullptr) {
    for (std::string_view rest = *value.text(); !rest.empty();) {
      budget.step();
      items.push_back(Value::text(value.marked()->slice(take_character(rest)), &budget));
    }
  } else if (!value.is_undefined() && !value.is_none()) {  // some templates iterate over no tools
    fail(format_text("cannot iterate over {}", value.type_name()));
  }
  budget.step(items.size());
  return items;
}

}  // namespace slipstream::jinja
