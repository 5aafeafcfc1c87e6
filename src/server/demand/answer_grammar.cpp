#include "server/demand/answer_grammar.h"

#include <utility>
#include <vector>

#include "base/format.h"
#include "server/ascii.h"
#include "server/demand/call_grammar.h"
#include "server/demand/call_markup.h"
#include "server/json.h"
#include "server/output/chat_format.h"
#include "server/schema/schema_to_grammar.h"

namespace slipstream {
namespace {

std::vector<MarkupToken> markup_tokens_in(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<MarkupToken> tokens;
  for (const Token token : vocabulary.special_tokens_in(text)) {
    std::string piece = vocabulary.piece(token, true);
    // In some vocabularies, runs of white space are special tokens. They are not markup.
    if (trim(piece).empty()) continue;
    tokens.push_back({std::move(piece), token, vocabulary.is_end(token)});
  }
  return tokens;
}

// What is needed to answer a request.
struct Answerer {
  const ChatTemplate& chat;
  const Vocabulary& vocabulary;
  std::string_view prompt;
};

CallGrammar empty_grammar(const Answerer& answerer, const ToolChoice& choice, CallMarkup markup) {
  return CallGrammar(
      {.markup = std::move(markup),
       .format = answerer.chat.format(),
       .prompt = answerer.prompt,
       .allows_several = choice.allows_several && choice.kind != ToolChoice::Kind::kNamed,
       .markup_tokens = [&vocabulary = answerer.vocabulary](std::string_view text) {
         return markup_tokens_in(vocabulary, text);
       }});
}

ApiResult<void> add_tools(CallGrammar& grammar, const ChatRequest& request) {
  const ToolChoice& choice = request.tool_choice;
  const bool is_named = choice.kind == ToolChoice::Kind::kNamed;
  for (std::size_t i = 0; i < request.tools.size(); ++i) {
    const Json& function = request.tools[i]["function"];
    if (is_named && function["name"] != choice.name) continue;
    const std::string path = format_text("tools[{}].function", i);
    if (!is_callable_name(function["name"].get<std::string>())) {
      return refuse(path + ".name",
                    format_text("'{}.name' must be of letters, digits, '_', '-' and '.' for a "
                                "call to be demanded",
                                path));
    }
    if (const Result<void> added = grammar.add(function); !added) {
      return refuse(path + ".parameters", added.error().message);
    }
  }
  return {};
}

// The grammar of an answer that calls what "tool_choice" demands.
ApiResult<std::string> grammar_of_calls(const Answerer& answerer, const ChatRequest& request) {
  Result<CallMarkup> markup = call_markup_of(answerer.chat);
  if (!markup) return refuse("tool_choice", markup.error().message);
  CallGrammar grammar = empty_grammar(answerer, request.tool_choice, std::move(*markup));
  if (const auto added = add_tools(grammar, request); !added) {
    return std::unexpected(added.error());
  }
  Result<std::string> text = grammar.text();
  if (!text) return refuse("tool_choice", text.error().message);
  return std::move(*text);
}

// The grammar for "response_format". The model may call tools instead. It first ends reasoning that
// its template has opened.
ApiResult<std::string> grammar_of_response(const Answerer& answerer, const ChatRequest& request,
                                           const Json& schema) {
  constexpr const char* kParam = "response_format.json_schema.schema";
  const bool may_call = request.tools.is_array() && !request.tools.empty();
  if (!may_call && !opens_reasoning(answerer.prompt, answerer.chat.format().reasoning)) {
    Result<std::string> text = grammar_of_schema(schema);
    if (!text) return refuse(kParam, text.error().message);
    return std::move(*text);
  }
  CallMarkup markup;
  if (may_call) {
    Result<CallMarkup> found = call_markup_of(answerer.chat);
    if (!found) {
      return refuse("response_format",
                    format_text("'response_format' and 'tools' exclude each other with this model, "
                                "unless 'tool_choice' is \"none\": {}",
                                found.error().message));
    }
    markup = std::move(*found);
  }
  CallGrammar grammar = empty_grammar(answerer, request.tool_choice, std::move(markup));
  if (const Result<void> allowed = grammar.allow_value(schema); !allowed) {
    return refuse(kParam, allowed.error().message);
  }
  if (may_call) {
    if (const auto added = add_tools(grammar, request); !added) {
      return std::unexpected(added.error());
    }
  }
  Result<std::string> text = grammar.text();
  if (!text) return refuse(kParam, text.error().message);
  return std::move(*text);
}

}  // namespace

ApiResult<std::string> grammar_of_answer(const ChatTemplate& chat, const Vocabulary& vocabulary,
                                         const ChatRequest& request, std::string_view prompt) {
  const Answerer answerer{.chat = chat, .vocabulary = vocabulary, .prompt = prompt};
  if (request.tool_choice.kind != ToolChoice::Kind::kAuto) {
    return grammar_of_calls(answerer, request);
  }
  if (request.response_schema) {
    return grammar_of_response(answerer, request, *request.response_schema);
  }
  return request.options.sampling.grammar;
}

}  // namespace slipstream
