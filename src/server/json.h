// The type of JSON that clients send and get, with functions to write it and to access members.
//
// Threads: immutable. Errors: none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace slipstream {

// Keys keep their order, because it matters to schemas and templates.
using Json = nlohmann::ordered_json;

// Writes JSON on one line. Bytes that are not UTF-8 are replaced, because JSON cannot contain them.
inline std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns null if there is no such member, or if `object` is not an object.
inline const Json* member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// Moves a member out of the object; null if there is no such member.
inline Json take(Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() ? Json() : std::move(*found);
}

}  // namespace slipstream
