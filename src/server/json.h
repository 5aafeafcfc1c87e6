// JSON as clients send it and get it: its type, how it is written, and a look at what may be any
// value.
//
// Threads: immutable. Errors: none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace slipstream {

// Keys keep their order: schemas and templates care.
using Json = nlohmann::ordered_json;

// On one line. What is not UTF-8 has no place in JSON and is replaced.
inline std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Null: it is not there, or this is no object.
inline const Json* member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// Moved out of the object; null if it is not there.
inline Json take(Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() ? Json() : std::move(*found);
}

}  // namespace slipstream
