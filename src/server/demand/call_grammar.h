// CallGrammar: a grammar (GBNF) for an answer that only calls tools, in the markup that the model
// was taught (call_markup.h), with arguments valid under the tools' schemas: tool_choice "required"
// or a tool's name. It may also allow a value under a schema beside or instead of calls:
// response_format, if the model may call tools or has to end its reasoning first.
// A model that reasons may do so first, and must if the prompt has opened the reasoning. Markup
// that is a special token of the vocabulary is demanded as that token. Arguments written one by one
// are those that the schema names, in its order; a text is written unescaped up to its end.
//
// Threads: thread-compatible.
// Errors:  add(), allow_value(): kInvalidArgument or kUnsupported for a schema that cannot be
//          obeyed, see schema_to_grammar.h; text(): kUnsupported for a grammar that is too large,
//          or for markup that ends answers in this vocabulary.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "server/demand/call_markup.h"
#include "server/output/chat_format.h"
#include "server/schema/gbnf_writer.h"
#include "server/schema/schema_limits.h"
#include "server/schema/work_budget.h"

namespace slipstream {

// A special token within a text of markup.
struct MarkupToken {
  std::string text;
  Token token;
  bool ends_answer;
};
// Returns the special tokens of the vocabulary in a text, in their order.
using MarkupTokens = std::function<std::vector<MarkupToken>(std::string_view)>;

// The characters that OpenAI's API allows in names, and a dot.
[[nodiscard]] bool is_callable_name(std::string_view name);

class CallGrammar {
 public:
  struct Options {
    CallMarkup markup;
    ChatFormat format;
    std::string_view prompt;          // tells whether reasoning was opened or ended
    bool allows_several = true;       // calls, if the model writes several
    MarkupTokens markup_tokens = {};  // if not set, all markup is plain text
  };
  explicit CallGrammar(Options options);

  // Adds a tool that may be called: {"name": ..., "parameters": ...}. REQUIRES: a callable name.
  [[nodiscard]] Result<void> add(const nlohmann::ordered_json& function);
  [[nodiscard]] Result<void> allow_value(const nlohmann::ordered_json& schema);
  [[nodiscard]] Result<std::string> text();

 private:
  [[nodiscard]] GbnfSequence calls();
  [[nodiscard]] Result<RuleId> arguments_rule(const nlohmann::ordered_json& function);
  // The markup with its special tokens as tokens. If one of them ends answers, text() fails.
  [[nodiscard]] GbnfSequence sequence_of(std::string_view markup);
  [[nodiscard]] GbnfSequence text_of(std::string_view markup) const;
  // The part before the token with which the model ends such an answer, if there is one.
  [[nodiscard]] std::string_view before_end(std::string_view markup) const;
  [[nodiscard]] GbnfSequence reasoning();
  [[nodiscard]] std::vector<MarkupToken> tokens_in(std::string_view markup) const;

  const Options options_;
  WorkBudget budget_{kSchemaLimits.schema_steps_max};
  GbnfWriter writer_;
  RuleId call_;
  bool has_calls_ = false;
  std::optional<RuleId> value_ = {};
  std::string wrong_end_;
};

}  // namespace slipstream
