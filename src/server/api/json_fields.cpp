#include "server/api/json_fields.h"

#include <cmath>

#include "base/format.h"
#include "server/bounded_json.h"

namespace slipstream {

namespace {

constexpr std::size_t kTextsMax = 1024;  // the users of these texts accept far fewer

}  // namespace

ApiResult<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  Result<Json> json = parse_bounded(text, limits);
  if (!json)
    return refuse("", format_text("the body cannot be read as JSON: {}", json.error().message));
  if (!json->is_object()) return refuse("", "the body must be a JSON object");
  return std::move(*json);
}

JsonFields::JsonFields(const Json& object, std::string path)
    : object_(object), path_(std::move(path)) {}

const Json* JsonFields::any(std::string_view name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json* JsonFields::typed(std::string_view name, bool (Json::*is_type)() const noexcept,
                              std::string_view expected) {
  const Json* value = any(name);
  if (value == nullptr || (value->*is_type)()) return value;
  refuse(name, format_text("'{}' must be {}, not {}", path_of(name), expected, value->type_name()));
  return nullptr;
}

std::optional<bool> JsonFields::boolean(std::string_view name) {
  const Json* value = typed(name, &Json::is_boolean, "a boolean");
  return value == nullptr ? std::nullopt : std::optional(value->get<bool>());
}

std::optional<std::int64_t> JsonFields::integer(std::string_view name, std::int64_t min,
                                                std::int64_t max) {
  const Json* value = typed(name, &Json::is_number, "an integer");
  if (value == nullptr) return std::nullopt;
  // 3.0 is an integer in JSON. Languages whose only number type is floating point write it.
  const double number = value->get<double>();
  if (number != std::floor(number)) {
    refuse(name, format_text("'{}' must be an integer", path_of(name)));
    return std::nullopt;
  }
  if (number < static_cast<double>(min) || number > static_cast<double>(max)) {
    refuse(name, format_text("'{}' must be from {} to {}", path_of(name), min, max));
    return std::nullopt;
  }
  return value->is_number_integer() ? value->get<std::int64_t>()
                                    : static_cast<std::int64_t>(number);
}

std::optional<double> JsonFields::number(std::string_view name, double min, double max) {
  const Json* value = typed(name, &Json::is_number, "a number");
  if (value == nullptr) return std::nullopt;
  const double number = value->get<double>();
  if (!(number >= min && number <= max)) {
    refuse(name, format_text("'{}' must be from {} to {}", path_of(name), min, max));
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> JsonFields::text(std::string_view name) {
  const Json* value = typed(name, &Json::is_string, "a string");
  return value == nullptr ? std::nullopt : std::optional(value->get<std::string>());
}

std::vector<std::string> JsonFields::texts(std::string_view name) {
  const Json* value = any(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  std::vector<std::string> texts;
  if (value->size() > kTextsMax) {
    refuse(name, format_text("'{}' must have at most {} texts", path_of(name), kTextsMax));
    return {};
  }
  if (value->is_array()) {
    for (const Json& item : *value) {
      if (!item.is_string()) break;
      texts.push_back(item.get<std::string>());
    }
    if (texts.size() == value->size()) return texts;
  }
  refuse(name, format_text("'{}' must be a string or an array of strings", path_of(name)));
  return {};
}

const Json* JsonFields::object(std::string_view name) {
  return typed(name, &Json::is_object, "an object");
}

const Json* JsonFields::array(std::string_view name) {
  return typed(name, &Json::is_array, "an array");
}

std::string JsonFields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : format_text("{}.{}", path_, name);
}

void JsonFields::refuse(std::string_view name, std::string message) {
  if (!error_) error_ = ApiError{.message = std::move(message), .param = path_of(name)};
}

}  // namespace slipstream
