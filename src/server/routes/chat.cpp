#include "server/routes/chat.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/format.h"
#include "server/api/chat_request.h"
#include "server/ascii.h"
#include "server/bounded_json.h"
#include "server/demand/call_grammar.h"
#include "server/output/chat_answer.h"
#include "server/output/output_parser.h"
#include "server/routes/generated_answer.h"
#include "server/schema/schema_to_grammar.h"

namespace slipstream {

namespace {

// The log-probabilities of one token, as the chat API has them.
Json entry_of(const Vocabulary& vocabulary, Token token, float logprob) {
  const std::string piece = vocabulary.piece(token, true);
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", piece}, {"logprob", logprob}, {"bytes", std::move(bytes)}};
}

Json logprobs_of(const Vocabulary& vocabulary, const std::vector<Sampled>& tokens) {
  Json content = Json::array();
  for (const Sampled& sampled : tokens) {
    if (!sampled.logprobs || vocabulary.is_end(sampled.token)) continue;  // the end is no content
    Json entry = entry_of(vocabulary, sampled.token, sampled.logprobs->logprob);
    entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& top : sampled.logprobs->top) {
      entry["top_logprobs"].push_back(entry_of(vocabulary, top.token, top.logprob));
    }
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

// One answer of the model: its parser, and what has come of it.
struct Choice {
  explicit Choice(const OutputParser::Options& options)
      : parser(std::make_unique<OutputParser>(options)) {}

  ChatDeltas take(const Event& event) {
    ChatDeltas deltas = parser->push(event.text);
    is_complete = parser->is_over();
    if (event.ending) std::ranges::move(parser->finish(), std::back_inserter(deltas));
    for (const ChatDelta& delta : deltas) has_calls |= delta.kind == ChatDelta::Kind::kCallBegin;
    has_said_something |= !deltas.empty();
    return deltas;
  }

  // A model that calls tools waits for their results.
  [[nodiscard]] Json finish_reason(const Ending& ending) const {
    const bool has_stopped = is_complete || ending.reason == FinishReason::kStop;
    if (has_calls && has_stopped) return "tool_calls";
    return finish_reason_of(ending);
  }

  std::unique_ptr<OutputParser> parser;
  bool has_calls = false;
  bool has_said_something = false;
  bool is_complete = false;  // the model wrote the only call that it may
  // Of an answer that is sent whole.
  ChatAnswer answer = {};
  std::vector<Sampled> tokens = {};
  std::optional<Ending> end = {};
};

// As OpenAI's chunks have it; null: nothing to tell.
Json to_json(const ChatDelta& delta) {
  switch (delta.kind) {
    case ChatDelta::Kind::kContent: return {{"content", delta.text}};
    case ChatDelta::Kind::kReasoning: return {{"reasoning_content", delta.text}};
    case ChatDelta::Kind::kCallBegin:
      return {
          {"tool_calls", Json::array({{{"index", delta.call_idx},
                                       {"id", new_id("call")},
                                       {"type", "function"},
                                       {"function", {{"name", delta.text}, {"arguments", ""}}}}})}};
    case ChatDelta::Kind::kCallArguments:
      return {{"tool_calls", Json::array({{{"index", delta.call_idx},
                                           {"function", {{"arguments", delta.text}}}}})}};
    case ChatDelta::Kind::kCallEnd: return {};
  }
  return {};
}

Json message_of(const ChatAnswer& answer) {
  const bool says_nothing = answer.content.empty() && !answer.calls.empty();
  Json message = {{"role", "assistant"},
                  {"content", says_nothing ? Json() : Json(answer.content)},
                  {"refusal", nullptr}};
  if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
  for (const ChatAnswer::Call& call : answer.calls) {
    message["tool_calls"].push_back(
        {{"id", new_id("call")},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return message;
}

Json chunk_choice(std::size_t idx, Json delta, Json logprobs, Json finish_reason) {
  return {{"index", idx},
          {"delta", std::move(delta)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", std::move(finish_reason)}};
}

// An empty answer looks like a failure of the client's or of ours.
void note_silence(const Choice& choice, Json& json) {
  if (!choice.has_said_something) json["notice"] = "The model ended its answer without a word";
}

class Chat final : public GeneratedAnswer {
 public:
  Chat(ServedModel& model, HttpExchange& exchange, const Client& client,
       const GenerationOptions& options, const OutputParser::Options& parsing)
      : GeneratedAnswer(
            {.id_prefix = "chatcmpl", .whole = "chat.completion", .chunk = "chat.completion.chunk"},
            model, exchange, client, options, static_cast<std::size_t>(options.n)) {
    for (std::size_t i = 0; i < n_choices(); ++i) choices_.emplace_back(parsing);
  }

 private:
  std::vector<Json> first_choices() override {
    std::vector<Json> chunks;
    for (std::size_t i = 0; i < n_choices(); ++i) {
      chunks.push_back(chunk_choice(i, {{"role", "assistant"}, {"content", ""}}, {}, {}));
    }
    return chunks;
  }

  std::vector<Json> choices_of(std::size_t idx, Event event) override {
    std::vector<Json> chunks;
    Json pending_logprobs = logprobs(event.tokens);
    for (const ChatDelta& delta : choices_[idx].take(event)) {
      Json json = to_json(delta);
      if (json.is_null()) continue;
      chunks.push_back(
          chunk_choice(idx, std::move(json), std::exchange(pending_logprobs, Json()), {}));
    }
    // Of tokens whose text is held back, or is no text.
    if (!pending_logprobs.is_null()) {
      chunks.push_back(chunk_choice(idx, Json::object(), std::move(pending_logprobs), {}));
    }
    if (event.ending) {
      Json reason = choices_[idx].finish_reason(*event.ending);
      chunks.push_back(chunk_choice(idx, Json::object(), {}, std::move(reason)));
      note_silence(choices_[idx], chunks.back());
    }
    return chunks;
  }

  void collect(std::size_t idx, Event event) override {
    Choice& choice = choices_[idx];
    choice.answer.add(choice.take(event));
    std::ranges::move(event.tokens, std::back_inserter(choice.tokens));
    choice.end = std::move(event.ending);
  }

  Json choice(std::size_t idx) override {
    const Choice& choice = choices_[idx];
    Json json = {{"index", idx},
                 {"message", message_of(choice.answer)},
                 {"logprobs", logprobs(choice.tokens)},
                 {"finish_reason", choice.end ? choice.finish_reason(*choice.end) : Json()}};
    note_silence(choice, json);
    return json;
  }

  [[nodiscard]] bool is_complete(std::size_t idx) const override {
    return choices_[idx].is_complete;
  }

  [[nodiscard]] Json logprobs(const std::vector<Sampled>& tokens) const {
    if (!wants_logprobs() || tokens.empty()) return {};
    return logprobs_of(vocabulary(), tokens);
  }

  std::vector<Choice> choices_;
};

// Each value of messages and tools takes memory many times its text, and most of them tokens. What
// has more of them than this never fits, and is refused before a template sees it.
std::size_t n_values_max(const ServedModel& model) {
  constexpr std::size_t kPerToken = 4;  // clients add some that no template reads
  constexpr std::size_t kAlways = 1024;
  return kAlways + kPerToken * static_cast<std::size_t>(model.engine->n_context());
}

ApiResult<void> check_values(const ServedModel& model, const Json& body) {
  std::size_t n = 0;
  for (const char* name : {"messages", "tools"}) {
    if (body.contains(name)) n += n_values(body[name]);
  }
  if (n <= n_values_max(model)) return {};
  return std::unexpected(ApiError{
      .message = format_text("'messages' and 'tools' have {} values, more than the {} that "
                             "a context of {} tokens takes: leave out old messages, or tools",
                             n, n_values_max(model), model.engine->n_context()),
      .param = "messages",
      .code = "context_length_exceeded"});
}

// Takes the messages and variables: values of the template are made of them.
ApiResult<MarkedText> render(const ServedModel& model, ChatRequest& request) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  Result<MarkedText> text =
      model.chat_template->render({.messages = std::move(request.messages),
                                   .tools = request.tools,
                                   .variables = std::move(request.template_variables),
                                   .now = now,
                                   .n_argument_values_max = n_values_max(model)});
  if (!text) return refuse("messages", text.error().message);
  return std::move(*text);
}

ApiResult<std::vector<Token>> to_tokens(const ServedModel& model, const MarkedText& prompt) {
  const Vocabulary& vocabulary = model.engine->vocabulary();
  const int n_context = model.engine->n_context();
  if (const auto fits = check_length(vocabulary, "messages", prompt.text(), n_context); !fits) {
    return std::unexpected(fits.error());
  }
  Result<std::vector<Token>> tokens =
      vocabulary.tokenize_chat(prompt, static_cast<std::size_t>(n_context));
  if (!tokens) return refuse("messages", tokens.error().message);
  return std::move(*tokens);
}

std::vector<MarkupToken> markup_tokens_in(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<MarkupToken> tokens;
  for (const Token token : vocabulary.special_tokens_in(text)) {
    std::string piece = vocabulary.piece(token, true);
    // Some vocabularies have runs of white space among them, which are no markup.
    if (trim(piece).empty()) continue;
    tokens.push_back({std::move(piece), token, vocabulary.is_end(token)});
  }
  return tokens;
}

CallGrammar empty_grammar(const ServedModel& model, const ChatRequest& request,
                          std::string_view prompt, CallMarkup markup) {
  const ToolChoice& choice = request.tool_choice;
  const Vocabulary& vocabulary = model.engine->vocabulary();
  return CallGrammar(
      {.markup = std::move(markup),
       .format = model.chat_template->format(),
       .prompt = prompt,
       .allows_several = choice.allows_several && choice.kind != ToolChoice::Kind::kNamed,
       .markup_tokens = [&vocabulary](std::string_view text) {
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

// Of an answer that calls what "tool_choice" demands.
ApiResult<std::string> grammar_of_calls(const ServedModel& model, const ChatRequest& request,
                                        std::string_view prompt) {
  Result<CallMarkup> markup = call_markup_of(*model.chat_template);
  if (!markup) return refuse("tool_choice", markup.error().message);
  CallGrammar grammar = empty_grammar(model, request, prompt, std::move(*markup));
  if (const auto added = add_tools(grammar, request); !added) {
    return std::unexpected(added.error());
  }
  Result<std::string> text = grammar.text();
  if (!text) return refuse("tool_choice", text.error().message);
  return std::move(*text);
}

// Of "response_format". A model may call tools instead, and first ends the reasoning that its
// template has opened.
ApiResult<std::string> grammar_of_response(const ServedModel& model, const ChatRequest& request,
                                           const Json& schema, std::string_view prompt) {
  constexpr const char* kParam = "response_format.json_schema.schema";
  const bool may_call = request.tools.is_array() && !request.tools.empty();
  if (!may_call && !opens_reasoning(prompt, model.chat_template->format().reasoning)) {
    Result<std::string> text = grammar_of_schema(schema);
    if (!text) return refuse(kParam, text.error().message);
    return std::move(*text);
  }
  CallMarkup markup;
  if (may_call) {
    Result<CallMarkup> found = call_markup_of(*model.chat_template);
    if (!found) {
      return refuse("response_format",
                    format_text("'response_format' and 'tools' exclude each other with this model, "
                                "unless 'tool_choice' is \"none\": {}",
                                found.error().message));
    }
    markup = std::move(*found);
  }
  CallGrammar grammar = empty_grammar(model, request, prompt, std::move(markup));
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

Prepared prepare_chat(ServedModel& model, HttpExchange& exchange, Json& body,
                      const Client& client) {
  // Before anything is built for it; submit() asks again.
  if (const Result<void> room = model.engine->check_room(); !room) {
    return std::unexpected(to_api_error(room.error()));
  }
  if (!model.chat_template) {
    return refuse("model", "This model has no chat template: use /v1/completions");
  }
  if (const auto fits = check_values(model, body); !fits) return std::unexpected(fits.error());
  ApiResult<ChatRequest> request = read_chat_request(body);
  if (!request) return std::unexpected(request.error());
  const ApiResult<MarkedText> rendered = render(model, *request);
  if (!rendered) return std::unexpected(rendered.error());
  const std::string& prompt = rendered->text();
  const ApiResult<std::vector<Token>> tokens = to_tokens(model, *rendered);
  if (!tokens) return std::unexpected(tokens.error());
  const ApiResult<int> n_tokens =
      tokens_to_generate("messages", tokens->size(), request->options, model.engine->n_context());
  if (!n_tokens) return std::unexpected(n_tokens.error());

  if (request->tool_choice.kind != ToolChoice::Kind::kAuto) {
    ApiResult<std::string> grammar = grammar_of_calls(model, *request, prompt);
    if (!grammar) return std::unexpected(grammar.error());
    request->options.sampling.grammar = std::move(*grammar);
  } else if (const std::optional<Json>& schema = request->response_schema; schema.has_value()) {
    ApiResult<std::string> grammar = grammar_of_response(model, *request, *schema, prompt);
    if (!grammar) return std::unexpected(grammar.error());
    request->options.sampling.grammar = std::move(*grammar);
  }
  const ChatFormat& format = model.chat_template->format();
  const OutputParser::Options parsing{
      .format = format,
      .tools = ToolSet(request->tools),
      .starts_in_reasoning = opens_reasoning(prompt, format.reasoning),
      .ends_with_call = !request->tool_choice.allows_several};
  auto chat = std::make_unique<Chat>(model, exchange, client, request->options, parsing);
  for (int i = 0; i < chat->options().n; ++i) {
    GenerateRequest generate = make_request(chat->options(), *tokens, *n_tokens, i, client);
    generate.shows_control_tokens = true;  // markup is made of them
    const Result<void> submitted = chat->stream().submit(std::move(generate));
    if (!submitted) return std::unexpected(to_api_error(submitted.error()));
  }
  client.charge_prompt(tokens->size());
  return chat;
}

}  // namespace slipstream
