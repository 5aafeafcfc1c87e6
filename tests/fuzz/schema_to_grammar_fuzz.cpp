// Whatever a client sends as a schema, it is refused within the limits, or becomes a grammar that
// the engine takes, never leads into a dead end, and only ends with JSON. Input: bytes that choose
// the answer, a line feed, the schema.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/check.h"
#include "harness.h"
#include "server/bounded_json.h"
#include "server/schema/schema_matcher.h"
#include "server/schema/schema_to_grammar.h"

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  constexpr std::size_t kChoicesMax = 64;
  const std::string_view input(reinterpret_cast<const char*>(data), n_bytes);
  const std::size_t end = input.find('\n');
  if (end == input.npos || end > kChoicesMax) return 0;
  const auto schema = slipstream::parse_bounded(input.substr(end + 1));
  if (!schema) return 0;
  const auto grammar = slipstream::grammar_of_schema(*schema);
  if (!grammar) return 0;

  slipstream::SchemaMatcher matcher(*grammar);
  std::string answer;
  for (const char choice : input.substr(0, end)) {
    const std::string bytes = matcher.allowed();
    SLIP_CHECK(!bytes.empty() || matcher.may_end(), "a dead end");
    if (bytes.empty()) break;
    const char next = bytes[static_cast<unsigned char>(choice) % bytes.size()];
    SLIP_CHECK(matcher.accept(next), "what is allowed is not accepted");
    answer += next;
  }
  if (matcher.may_end()) {
    SLIP_CHECK(nlohmann::json::accept(answer), "an answer that is not JSON");
  }
  return 0;
}
