// For tests, and for slipstream eval, which judges answers: a naive JSON Schema validator.
// It follows the specification keyword by keyword and shares no code with what it judges.
// The C library reads the patterns (POSIX extended), so only patterns that mean the same
// there may be used.
#pragma once

#include <regex.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"

namespace slipstream {

class NaiveValidator {
 public:
  using Json = nlohmann::ordered_json;

  explicit NaiveValidator(Json root) : root_(std::move(root)) {}
  [[nodiscard]] bool accepts(const Json& value) const { return valid(root_, value); }

 private:
  static bool equal(const Json& a, const Json& b) {
    return nlohmann::json(a) == nlohmann::json(b);  // ignores the order of keys; 1 == 1.0
  }
  static bool has_type(const Json& value, const std::string& type) {
    if (type == "null") return value.is_null();
    if (type == "boolean") return value.is_boolean();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object();
    return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
  }
  static std::size_t length(const std::string& text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
  }
  static bool finds(const std::string& pattern, const std::string& text) {
    regex_t compiled;
    SLIP_CHECK(regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) == 0, pattern);
    const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return found;
  }

  bool valid(const Json& schema, const Json& value) const {
    if (schema.is_boolean()) return schema.get<bool>();
    return valid_of_all(schema, value) && (!value.is_number() || valid_number(schema, value)) &&
           (!value.is_string() || valid_string(schema, value)) &&
           (!value.is_array() || valid_array(schema, value)) &&
           (!value.is_object() || valid_object(schema, value));
  }

  bool valid_of_all(const Json& schema, const Json& value) const {
    const auto accepts = [&](const Json& branch) { return valid(branch, value); };
    if (schema.contains("$ref")) {
      const std::string reference = schema["$ref"];
      if (!valid(root_.at(Json::json_pointer(reference.substr(1))), value)) return false;
    }
    if (schema.contains("type")) {
      const Json& type = schema["type"];
      const bool fits =
          type.is_string()
              ? has_type(value, type)
              : std::ranges::any_of(type, [&](const Json& one) { return has_type(value, one); });
      if (!fits) return false;
    }
    if (schema.contains("const") && !equal(schema["const"], value)) return false;
    if (schema.contains("enum") &&
        std::ranges::none_of(schema["enum"], [&](const Json& one) { return equal(one, value); })) {
      return false;
    }
    if (schema.contains("allOf") && !std::ranges::all_of(schema["allOf"], accepts)) return false;
    if (schema.contains("anyOf") && std::ranges::none_of(schema["anyOf"], accepts)) return false;
    return !schema.contains("oneOf") || std::ranges::count_if(schema["oneOf"], accepts) == 1;
  }

  static bool valid_number(const Json& schema, const Json& value) {
    if (schema.contains("minimum") && value < schema["minimum"]) return false;
    if (schema.contains("maximum") && value > schema["maximum"]) return false;
    if (schema.contains("exclusiveMinimum") && value <= schema["exclusiveMinimum"]) return false;
    if (schema.contains("exclusiveMaximum") && value >= schema["exclusiveMaximum"]) return false;
    if (!schema.contains("multipleOf")) return true;
    return is_multiple(value, schema["multipleOf"]);
  }

  static std::uint64_t magnitude(const Json& integer) {
    const auto bits = integer.get<std::uint64_t>();
    const bool is_negative = !integer.is_number_unsigned() && integer.get<std::int64_t>() < 0;
    return is_negative ? 0 - bits : bits;
  }

  // JSON's numbers are decimal, and 0.3 is a multiple of 0.1, though their doubles are not quite: a
  // quotient that is a whole number up to the rounding of three doubles counts as one.
  static bool is_multiple(const Json& value, const Json& of) {
    if (value.is_number_integer() && of.is_number_integer()) {
      return magnitude(of) != 0 && magnitude(value) % magnitude(of) == 0;
    }
    constexpr double kRounding = 2 * std::numeric_limits<double>::epsilon();
    const double quotient = value.get<double>() / of.get<double>();
    return std::abs(quotient - std::round(quotient)) <= kRounding * std::abs(quotient);
  }

  static bool valid_string(const Json& schema, const std::string& text) {
    if (length(text) < schema.value("minLength", 0U)) return false;
    if (length(text) > schema.value("maxLength", 1U << 30)) return false;
    return !schema.contains("pattern") || finds(schema["pattern"], text);
  }

  bool valid_array(const Json& schema, const Json& value) const {
    if (value.size() < schema.value("minItems", 0U)) return false;
    if (value.size() > schema.value("maxItems", 1U << 30)) return false;
    const Json prefix = schema.value("prefixItems", Json::array());
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!valid(i < prefix.size() ? prefix[i] : schema.value("items", Json(true)), value[i])) {
        return false;
      }
    }
    return true;
  }

  bool valid_object(const Json& schema, const Json& value) const {
    if (value.size() < schema.value("minProperties", 0U)) return false;
    if (value.size() > schema.value("maxProperties", 1U << 30)) return false;
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) return false;
    }
    const Json named = schema.value("properties", Json::object());
    const Json patterns = schema.value("patternProperties", Json::object());
    for (const auto& [name, member] : value.items()) {
      bool is_known = named.contains(name);
      if (is_known && !valid(named[name], member)) return false;
      for (const auto& [pattern, inside] : patterns.items()) {
        if (!finds(pattern, name)) continue;
        is_known = true;
        if (!valid(inside, member)) return false;
      }
      if (!is_known && !valid(schema.value("additionalProperties", Json(true)), member)) {
        return false;
      }
      if (!valid(schema.value("propertyNames", Json(true)), Json(name))) return false;
    }
    return true;
  }

  Json root_;
};

}  // namespace slipstream
