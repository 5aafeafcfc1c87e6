// SchemaLimits: how large a JSON schema may be.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct SchemaLimits {
  // A larger JSON schema is refused (server/schema). A pattern, a range of numbers or the names
  // that are taken become an automaton, each state a rule of the grammar. Steps are a measure of
  // time: all of them take about a tenth of a second.
  std::size_t schema_bytes_max = std::size_t{256} << 10;  // text of all names and strings
  std::size_t schema_values_max = std::size_t{1} << 15;
  std::size_t schema_depth_max = 128;
  // Of references, allOf, anyOf and oneOf, one inside the other without a value in between.
  std::size_t schema_nesting_max = 64;
  // Ways to meet a schema: three anyOf of ten in one allOf are 1,000.
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
