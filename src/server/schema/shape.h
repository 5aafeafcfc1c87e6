// Shape: all that is demanded of a value at once, type by type. A schema without choices is one
// shape; with anyOf it is several, of which a value needs to have one.
//
// Demands on a value's parts stay schemas (Conjunction): a schema may contain itself, and is read
// as deep as the grammar needs it.
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

// So many items, characters or properties. More at least than at most: none can be.
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

// What one schema says about items: by position, and of the rest.
struct ItemSchemas {
  std::vector<Conjunction> prefix;
  Conjunction rest;
  [[nodiscard]] const Conjunction& of(std::size_t i) const {
    return i < prefix.size() ? prefix[i] : rest;
  }
};

struct ArrayDemands {
  CountRange count;
  std::vector<std::shared_ptr<const ItemSchemas>> items;  // of each schema; all apply
  [[nodiscard]] Conjunction of(std::size_t i) const;
  // From here on all items are alike.
  [[nodiscard]] std::size_t n_prefix() const;
};

// What one schema says about properties: by name, by pattern, and of those that neither names.
struct PropertySchemas {
  struct Pattern {
    std::shared_ptr<const Automaton> names;
    Conjunction schema;
  };
  std::map<std::string, Conjunction> named;
  std::vector<std::string> order;  // of the names, as the schema lists them
  std::vector<Pattern> patterns;
  Conjunction rest;
  [[nodiscard]] Conjunction of(const std::string& name) const;
};

struct ObjectDemands {
  CountRange count;
  std::set<std::string> required;
  std::vector<std::shared_ptr<const PropertySchemas>> properties;  // of each schema; all apply
  Conjunction names;                                               // propertyNames
  [[nodiscard]] Conjunction of(const std::string& name) const;
};

// A value of `enum` or `const`; equal values have equal keys.
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
  std::optional<std::vector<EnumValue>> values;  // these, as far as they meet the rest

  void intersect(const Shape& other);
  [[nodiscard]] bool empty() const { return types.empty() || (values && values->empty()); }
};

using Shapes = std::vector<Shape>;

}  // namespace slipstream
