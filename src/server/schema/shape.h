// Shape: everything that is demanded of a value, for each type. A schema without choices is one
// shape. With anyOf it is several shapes, and a value must match one of them.
//
// Demands on the parts of a value stay schemas (Conjunction), because a schema may contain itself.
// They are read only as deep as the grammar needs.
//
// Threads: plain data; shared parts are immutable. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/schema/automaton.h"
#include "server/schema/number_range.h"
#include "server/schema/schema_document.h"

namespace slipstream {

enum class JsonType : std::uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };
inline constexpr JsonType kJsonTypes[] = {JsonType::kNull,   JsonType::kBoolean, JsonType::kNumber,
                                          JsonType::kString, JsonType::kArray,   JsonType::kObject};

class TypeSet {
 public:
  [[nodiscard]] static TypeSet all() { return TypeSet(0x3F); }
  TypeSet() = default;
  void add(JsonType type) { bits_ |= bit(type); }
  [[nodiscard]] bool has(JsonType type) const { return (bits_ & bit(type)) != 0; }
  [[nodiscard]] bool empty() const { return bits_ == 0; }
  [[nodiscard]] TypeSet operator&(TypeSet other) const { return TypeSet(bits_ & other.bits_); }

 private:
  explicit TypeSet(unsigned bits) : bits_(bits) {}
  static unsigned bit(JsonType type) { return 1U << static_cast<unsigned>(type); }
  unsigned bits_ = 0;
};

[[nodiscard]] JsonType type_of(const Json& value);

// A number of items, characters or properties. If n_min > n_max, no number is allowed.
struct CountRange {
  std::size_t n_min = 0;
  std::optional<std::size_t> n_max;
  void intersect(const CountRange& other);
  [[nodiscard]] bool contains(std::size_t n) const { return n >= n_min && (!n_max || n <= *n_max); }
  [[nodiscard]] bool empty() const { return n_max && *n_max < n_min; }
  auto operator<=>(const CountRange&) const = default;
};

struct StringDemands {
  CountRange length;
  std::vector<std::shared_ptr<const Automaton>> languages;  // shared by the shapes of one keyword
};

// What one schema says about items: by position, and about the rest.
struct ItemSchemas {
  std::vector<Conjunction> prefix;
  Conjunction rest;
  [[nodiscard]] const Conjunction& of(std::size_t i) const {
    return i < prefix.size() ? prefix[i] : rest;
  }
};

struct ArrayDemands {
  CountRange count;
  std::vector<std::shared_ptr<const ItemSchemas>> items;  // one per schema; all apply
  [[nodiscard]] Conjunction of(std::size_t i) const;
  // All items from this index on have the same schemas.
  [[nodiscard]] std::size_t n_prefix() const;
};

// What one schema says about properties: by name, by pattern, and about those that match neither.
struct PropertySchemas {
  struct Pattern {
    std::shared_ptr<const Automaton> names;
    Conjunction schema;
  };
  std::map<std::string, Conjunction> named;
  std::vector<std::string> order;  // the names in the order of the schema
  std::vector<Pattern> patterns;
  Conjunction rest;
  [[nodiscard]] Conjunction of(const std::string& name) const;
};

struct ObjectDemands {
  CountRange count;
  std::set<std::string> required;
  std::vector<std::shared_ptr<const PropertySchemas>> properties;  // one per schema; all apply
  Conjunction names;                                               // propertyNames
  [[nodiscard]] Conjunction of(const std::string& name) const;
};

// A value of `enum` or `const`. Equal values have equal keys.
struct EnumValue {
  const Json* json;
  std::string key;
};
[[nodiscard]] EnumValue enum_value(const Json& json);

struct Shape {
  TypeSet types = TypeSet::all();
  NumberRange number;
  StringDemands string;
  ArrayDemands array;
  ObjectDemands object;
  std::optional<std::vector<EnumValue>> values;  // only these, if they also meet the rest

  void intersect(const Shape& other);
  [[nodiscard]] bool empty() const { return types.empty() || (values && values->empty()); }
};

using Shapes = std::vector<Shape>;

}  // namespace slipstream
