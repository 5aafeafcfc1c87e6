#include "server/routes/chat.h"

#include <chrono>
#include <memory>
#include <utility>

#include "server/api/chat_request.h"
#include "server/chat/chat_answer.h"
#include "server/chat/output_parser.h"
#include "server/engine_stream.h"
#include "server/sse.h"

namespace slipstream {

namespace asio = boost::asio;

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
    if (!sampled.logprobs) continue;
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
    if (event.ending) std::ranges::move(parser->finish(), std::back_inserter(deltas));
    for (const ChatDelta& delta : deltas) has_calls |= delta.kind == ChatDelta::Kind::kCallBegin;
    return deltas;
  }

  // A model that calls tools waits for their results.
  [[nodiscard]] Json finish_reason(const Ending& ending) const {
    if (has_calls && ending.reason == FinishReason::kStop) return "tool_calls";
    return finish_reason_of(ending);
  }

  std::unique_ptr<OutputParser> parser;
  bool has_calls = false;
};

class ChatExchange {
 public:
  ChatExchange(const ServedModel& model, ChatRequest request, OutputParser::Options options)
      : model_(model),
        request_(std::move(request)),
        id_(new_id("chatcmpl")),
        created_(std::time(nullptr)) {
    for (int i = 0; i < request_.options.n; ++i) choices_.emplace_back(options);
  }

  [[nodiscard]] const GenerationOptions& options() const { return request_.options; }

  asio::awaitable<ApiResult<void>> answer_whole(EngineStream& stream, HttpExchange& exchange) {
    std::vector<ChatAnswer> answers(choices_.size());
    std::vector<std::vector<Sampled>> tokens(choices_.size());
    std::vector<Ending> endings(choices_.size());
    while (!stream.has_ended()) {
      auto items = co_await stream.next();
      if (!items) co_return ApiResult<void>();
      for (EngineStream::Item& item : *items) {
        answers[item.request].add(choices_[item.request].take(item.event));
        std::ranges::move(item.event.tokens, std::back_inserter(tokens[item.request]));
        if (item.event.ending) endings[item.request] = *item.event.ending;
      }
    }
    Json choices = Json::array();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (has_failed(endings[i])) co_return std::unexpected(failure_of(endings[i]));
      count(i, endings[i]);
      choices.push_back({{"index", i},
                         {"message", message_of(answers[i])},
                         {"logprobs", logprobs(tokens[i])},
                         {"finish_reason", choices_[i].finish_reason(endings[i])}});
    }
    Json body = this->body("chat.completion", std::move(choices));
    body["usage"] = usage();
    (void)co_await exchange.reply({.body = dump(body)});
    co_return ApiResult<void>();
  }

  asio::awaitable<void> answer_in_events(EngineStream& stream, HttpExchange& exchange) {
    if (!co_await exchange.begin_stream(event_stream_head())) co_return;
    std::string events;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      events += chunk(i, {{"role", "assistant"}, {"content", ""}}, Json(), Json());
    }
    if (!co_await exchange.send(events)) co_return;
    while (!stream.has_ended()) {
      auto items = co_await stream.next();
      if (!items) co_return;
      events.clear();
      for (const EngineStream::Item& item : *items) events += events_of(item);
      if (!co_await exchange.send(events)) co_return;
    }
    events.clear();
    if (options().wants_usage_in_stream) {
      Json body = this->body("chat.completion.chunk", Json::array());
      body["usage"] = usage();
      events += event_of(dump(body));
    }
    events += kEventsDone;
    if (co_await exchange.send(events)) (void)co_await exchange.end_stream();
  }

 private:
  static bool has_failed(const Ending& ending) {
    return ending.reason == FinishReason::kFailed || ending.reason == FinishReason::kCancelled;
  }

  std::string events_of(const EngineStream::Item& item) {
    const auto& [idx, event] = item;
    if (event.ending && has_failed(*event.ending)) {
      return event_of(to_json(failure_of(*event.ending)));
    }
    std::string events;
    Json pending_logprobs = logprobs(event.tokens);
    for (const ChatDelta& delta : choices_[idx].take(event)) {
      const Json json = delta_of(delta);
      if (!json.is_null()) {
        events += chunk(idx, json, std::exchange(pending_logprobs, Json()), Json());
      }
    }
    // Of tokens whose text is held back, or is no text.
    if (!pending_logprobs.is_null()) {
      events += chunk(idx, Json::object(), std::move(pending_logprobs), Json());
    }
    if (event.ending) {
      count(idx, *event.ending);
      events += chunk(idx, Json::object(), Json(), choices_[idx].finish_reason(*event.ending));
    }
    return events;
  }

  // Null: nothing to tell.
  [[nodiscard]] static Json delta_of(const ChatDelta& delta) {
    switch (delta.kind) {
      case ChatDelta::Kind::kContent: return {{"content", delta.text}};
      case ChatDelta::Kind::kReasoning: return {{"reasoning_content", delta.text}};
      case ChatDelta::Kind::kCallBegin:
        return {{"tool_calls",
                 Json::array({{{"index", delta.call_idx},
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

  [[nodiscard]] static Json message_of(const ChatAnswer& answer) {
    Json message = {{"role", "assistant"},
                    {"content", answer.content.empty() && !answer.calls.empty()
                                    ? Json()
                                    : Json(answer.content)}};
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    for (const ChatAnswer::Call& call : answer.calls) {
      message["tool_calls"].push_back(
          {{"id", new_id("call")},
           {"type", "function"},
           {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    return message;
  }

  [[nodiscard]] Json logprobs(const std::vector<Sampled>& tokens) const {
    if (options().sampling.n_top_logprobs < 0 || tokens.empty()) return {};
    return logprobs_of(model_.engine->vocabulary(), tokens);
  }

  [[nodiscard]] std::string chunk(std::size_t idx, const Json& delta, Json logprobs,
                                  Json finish_reason) const {
    return event_of(dump(body("chat.completion.chunk",
                              Json::array({{{"index", idx},
                                            {"delta", delta},
                                            {"logprobs", std::move(logprobs)},
                                            {"finish_reason", std::move(finish_reason)}}}))));
  }

  [[nodiscard]] Json body(std::string_view object, Json choices) const {
    return {{"id", id_},
            {"object", object},
            {"created", created_},
            {"model", model_.name},
            {"choices", std::move(choices)}};
  }

  void count(std::size_t idx, const Ending& ending) {
    if (idx == 0) {
      n_prompt_ = ending.usage.n_prompt;
      n_cached_ = ending.usage.n_cached;
    }
    n_generated_ += ending.usage.n_generated;
  }
  [[nodiscard]] Json usage() const { return usage_of(n_prompt_, n_cached_, n_generated_); }

  const ServedModel& model_;
  const ChatRequest request_;
  const std::string id_;
  const std::time_t created_;
  std::vector<Choice> choices_;
  int n_prompt_ = 0;
  int n_cached_ = 0;
  int n_generated_ = 0;
};

ApiResult<std::string> render(const ServedModel& model, const ChatRequest& request) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  Result<std::string> text = model.chat_template->render({.messages = request.messages,
                                                          .tools = request.tools,
                                                          .variables = request.template_variables,
                                                          .now = now});
  if (!text) return refuse("messages", text.error().message);
  return std::move(*text);
}

ApiResult<std::vector<Token>> to_tokens(const ServedModel& model, const std::string& text) {
  const Vocabulary& vocabulary = model.engine->vocabulary();
  // Most templates write the beginning of the text themselves.
  const auto bos = vocabulary.bos();
  const bool has_bos = bos && text.starts_with(vocabulary.piece(*bos, true));
  Result<std::vector<Token>> tokens = vocabulary.tokenize(text, !has_bos, true);
  if (!tokens) return refuse("messages", tokens.error().message);
  return std::move(*tokens);
}

}  // namespace

asio::awaitable<ApiResult<void>> answer_chat(ServedModel& model, HttpExchange& exchange,
                                             const Json& body, const Client& client) {
  if (!model.chat_template) {
    co_return refuse("model", "This model has no chat template: use /v1/completions");
  }
  ApiResult<ChatRequest> request = read_chat_request(body);
  if (!request) co_return std::unexpected(request.error());
  const ApiResult<std::string> prompt = render(model, *request);
  if (!prompt) co_return std::unexpected(prompt.error());
  const ApiResult<std::vector<Token>> tokens = to_tokens(model, *prompt);
  if (!tokens) co_return std::unexpected(tokens.error());
  const ApiResult<int> n_tokens =
      tokens_to_generate(tokens->size(), request->options, model.engine->n_context());
  if (!n_tokens) co_return std::unexpected(n_tokens.error());

  const ChatFormat& format = model.chat_template->format();
  OutputParser::Options parsing{.format = format,
                                .tools = ToolSet(request->tools),
                                .starts_in_reasoning = opens_reasoning(*prompt, format.reasoning)};
  ChatExchange chat(model, std::move(*request), std::move(parsing));
  EngineStream stream(*model.engine, exchange);
  for (int i = 0; i < chat.options().n; ++i) {
    GenerateRequest generate = make_request(chat.options(), *tokens, *n_tokens, i, client);
    generate.shows_control_tokens = true;  // markup is made of them
    const Result<void> submitted = stream.submit(std::move(generate));
    if (!submitted) co_return std::unexpected(to_api_error(submitted.error()));
  }
  if (!chat.options().streams) co_return co_await chat.answer_whole(stream, exchange);
  co_await chat.answer_in_events(stream, exchange);
  co_return ApiResult<void>();
}

}  // namespace slipstream
