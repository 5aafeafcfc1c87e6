// SchemaDocument: the client's JSON, with a number for each schema in it. A combination of
// schemas is then a short list of numbers (Conjunction). The place of each schema is kept
// for error messages.
//
// Threads: thread-compatible; refers to the JSON, which must outlive it.
// Errors:  kInvalidArgument for what is not a schema; kUnsupported for references that leave the
//          document, and for documents larger than SchemaLimits::schema_* allow.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace slipstream {

using Json = nlohmann::ordered_json;  // the order of `properties` is the order of an answer's keys

using SchemaId = std::uint32_t;

// A value must meet all of these schemas. They are ascending and unique. An empty list
// allows any value.
using Conjunction = std::vector<SchemaId>;
[[nodiscard]] Conjunction both(const Conjunction& a, const Conjunction& b);

class SchemaDocument {
 public:
  [[nodiscard]] static Result<SchemaDocument> create(const Json& root);

  [[nodiscard]] const Json& json(SchemaId id) const { return *schemas_[id].json; }
  [[nodiscard]] const std::string& pointer(SchemaId id) const { return schemas_[id].pointer; }
  [[nodiscard]] SchemaId root() const { return 0; }
  [[nodiscard]] std::size_t n_schemas() const { return schemas_.size(); }

  // The number of the schema at this place. The same place always has the same number.
  [[nodiscard]] SchemaId schema_at(const Json& json, std::string pointer);
  // As schema_at(), but empty for `true` and {}, which demand nothing.
  [[nodiscard]] Conjunction conjunction_at(const Json& json, std::string pointer);
  // The schema that "$ref" in the schema `from` refers to.
  [[nodiscard]] Result<SchemaId> resolve(std::string_view reference, SchemaId from);

 private:
  struct Schema {
    const Json* json;
    std::string pointer;
  };

  SchemaDocument() = default;

  const Json* root_ = nullptr;
  std::deque<Schema> schemas_;  // pointer() stays valid while schemas are added
  std::unordered_map<const Json*, SchemaId> ids_;
};

}  // namespace slipstream
