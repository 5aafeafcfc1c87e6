// Tool calls, unconstrained: a model is offered one tool, asked for something that needs it, and
// its answer is read by the server's own parsers. And answers under a JSON schema, which the
// server's grammars constrain: they must all be valid, and are measured all the same.
//
// A validator reads the schema apart from the grammars (server/schema/naive_validator.h).
//
// Threads: pure functions. Errors: as of Asker::ask().
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bench/quality/asker.h"
#include "bench/quality/divergence_pass.h"

namespace slipstream::quality {

struct ToolCallOutcome {
  std::string asked = {};   // the name to look up
  std::string answer = {};  // "name(arguments)", or what was said instead
  bool is_call = false;     // exactly one, complete
  bool right_name = false;
  bool valid = false;  // a call of the right name, its arguments valid under the tool's schema
  bool as_expected = false;  // and with the name that was asked for
};

struct SchemaOutcome {
  std::string schema = {};  // its title
  std::string answer = {};
  bool valid = false;
};

[[nodiscard]] Result<std::vector<ToolCallOutcome>> try_tool_calls(const Asker& asker, int n_calls,
                                                                  const OnProgress& on_progress);
[[nodiscard]] Result<std::vector<SchemaOutcome>> try_schemas(const Asker& asker,
                                                             const OnProgress& on_progress);

// Judges an answer to "look up `asked`".
[[nodiscard]] ToolCallOutcome judge_tool_call(const ChatAnswer& answer, const std::string& asked);

}  // namespace slipstream::quality
