#include "server/schema/schema_document.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"
#include "server/schema/schema_error.h"
#include "server/schema/schema_limits.h"

namespace slipstream {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char character = decode_utf8(text);
    if (character.kind != Utf8Char::Kind::kValid) return false;
    text.remove_prefix(character.n_bytes);
  }
  return true;
}

// Whether the value can occur in JSON. A program could also have made bytes, infinities
// or broken text.
bool is_json(const Json& value) {
  if (value.is_string()) return is_utf8(value.get_ref<const std::string&>());
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  return !value.is_binary() && !value.is_discarded();
}

// Not recursive: a document may be too deep for any stack.
Result<void> check_size(const Json& root) {
  struct Level {
    Json::const_iterator next;
    Json::const_iterator end;
    bool has_keys;
  };
  std::size_t n_values = 1;
  std::size_t n_bytes = 0;
  bool all_json = true;
  std::vector<Level> path;
  const auto enter = [&](const Json& value) {
    all_json = all_json && is_json(value);
    if (value.is_string()) n_bytes += value.get_ref<const std::string&>().size();
    if (value.is_structured()) path.push_back({value.begin(), value.end(), value.is_object()});
  };
  enter(root);
  while (!path.empty()) {
    if (path.size() > kSchemaLimits.schema_depth_max) {
      return refuse(Code::kInvalidArgument, "",
                    format_text("deeper than {} levels", kSchemaLimits.schema_depth_max));
    }
    Level& level = path.back();
    if (level.next == level.end) {
      path.pop_back();
      continue;
    }
    const Json::const_iterator value = level.next++;
    if (level.has_keys) {
      n_bytes += value.key().size();
      all_json = all_json && is_utf8(value.key());
    }
    enter(*value);
    if (++n_values > kSchemaLimits.schema_values_max || n_bytes > kSchemaLimits.schema_bytes_max) {
      return refuse(Code::kInvalidArgument, "",
                    format_text("more than {} values, or {} bytes of text",
                                kSchemaLimits.schema_values_max, kSchemaLimits.schema_bytes_max));
    }
  }
  if (!all_json) return refuse(Code::kInvalidArgument, "", "not JSON");
  return {};
}

// Decodes %41 and the like. Anything else stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    decoded += is_escape ? static_cast<char>(value) : text[i];
    if (is_escape) i += 2;
  }
  return decoded;
}

std::string unescaped(std::string_view step) {
  std::string name;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool is_escape = step[i] == '~' && i + 1 < step.size();
    if (is_escape) ++i;
    name += is_escape ? (step[i] == '1' ? '/' : '~') : step[i];
  }
  return name;
}

const Json* child(const Json& value, const std::string& step) {
  if (value.is_object()) {
    const auto found = value.find(step);
    return found == value.end() ? nullptr : &*found;
  }
  if (!value.is_array()) return nullptr;
  std::size_t i = 0;
  const char* const end = step.data() + step.size();
  const auto parsed = std::from_chars(step.data(), end, i);
  return parsed.ec == std::errc() && parsed.ptr == end && i < value.size() ? &value[i] : nullptr;
}

}  // namespace

Conjunction both(const Conjunction& a, const Conjunction& b) {
  Conjunction all;
  std::ranges::set_union(a, b, std::back_inserter(all));
  return all;
}

Result<SchemaDocument> SchemaDocument::create(const Json& root) {
  if (const Result<void> fits = check_size(root); !fits) return std::unexpected(fits.error());
  SchemaDocument document;
  document.root_ = &root;
  (void)document.schema_at(root, "");
  return document;
}

SchemaId SchemaDocument::schema_at(const Json& json, std::string pointer) {
  const auto next = static_cast<SchemaId>(schemas_.size());
  const auto [found, is_new] = ids_.try_emplace(&json, next);
  if (is_new) schemas_.push_back({&json, std::move(pointer)});
  return found->second;
}

Conjunction SchemaDocument::conjunction_at(const Json& json, std::string pointer) {
  const bool says_nothing = json == true || (json.is_object() && json.empty());
  if (says_nothing) return {};
  return {schema_at(json, std::move(pointer))};
}

Result<SchemaId> SchemaDocument::resolve(std::string_view reference, SchemaId from) {
  const std::string place = pointer(from) + "/$ref";
  if (!reference.starts_with('#') || (reference.size() > 1 && reference[1] != '/')) {
    return refuse(Code::kUnsupported, place, "only references such as #/$defs/name are followed");
  }
  const std::string target = percent_decoded(reference.substr(1));
  const Json* at = root_;
  std::string_view rest = target;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::size_t end = std::min(rest.find('/'), rest.size());
    at = child(*at, unescaped(rest.substr(0, end)));
    rest.remove_prefix(end);
    if (at == nullptr) return refuse(Code::kInvalidArgument, place, "refers to nothing");
    if (at->is_object() && at->contains("$id") && (*at)["$id"].is_string()) {
      return refuse(Code::kUnsupported, place, "leads into a schema with its own $id");
    }
  }
  return schema_at(*at, target);
}

}  // namespace slipstream
