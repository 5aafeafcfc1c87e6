// SchemaLimits: how large a JSON schema may be.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct SchemaLimits {
  // A larger JSON schema is refused (server/schema). A pattern, a range of numbers and a set of
  // used names each become an automaton, and each of its states becomes a rule of the grammar.
  // Steps measure time: schema_steps_max of them take about a tenth of a second.
  std::size_t schema_bytes_max = std::size_t{256} << 10;  // text of all names and strings
  std::size_t schema_values_max = std::size_t{1} << 15;
  std::size_t schema_depth_max = 128;
  // How deep references, allOf, anyOf and oneOf may be nested without a value in between.
  std::size_t schema_nesting_max = 64;
  // The number of alternative ways to meet a schema: three anyOf of ten in one allOf are 1,000.
  std::size_t schema_shapes_max = 1024;
  std::size_t schema_key_patterns_max = 4;
  std::size_t schema_steps_max = std::size_t{1} << 22;
  std::size_t pattern_bytes_max = std::size_t{4} << 10;
  std::size_t pattern_nesting_max = 64;
  std::size_t automaton_states_max = 4096;
  std::size_t multiple_of_max = 1000;
};

inline constexpr SchemaLimits kSchemaLimits{};

}  // namespace slipstream
