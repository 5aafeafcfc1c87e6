#include "server/routes/completions.h"

#include <utility>

#include "server/api/completion_request.h"
#include "server/engine_stream.h"
#include "server/sse.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

// One answer as it grows.
struct Choice {
  std::string text = {};
  std::vector<Sampled> tokens = {};
  std::vector<TokenLogprobs> prompt_logprobs = {};
  std::optional<Ending> ending = {};
};

class CompletionAnswer {
 public:
  CompletionAnswer(const ServedModel& model, CompletionRequest request,
                   std::vector<std::vector<Token>> prompts)
      : model_(model),
        request_(std::move(request)),
        prompts_(std::move(prompts)),
        id_(new_id("cmpl")),
        created_(std::time(nullptr)),
        n_emitted_(n_choices()) {}

  [[nodiscard]] std::size_t n_choices() const {
    return prompts_.size() * static_cast<std::size_t>(request_.options.n);
  }

  // What has come of a choice since the last time, as OpenAI writes it.
  [[nodiscard]] Json choice(std::size_t idx, Choice news) {
    std::size_t& n_emitted = n_emitted_[idx];
    const bool is_first = n_emitted == 0;
    std::string text = std::move(news.text);
    if (request_.echoes && is_first) text = prompt_text(idx) + text;
    Json choice = {{"index", idx},
                   {"text", text},
                   {"logprobs", nullptr},
                   {"finish_reason", news.ending ? finish_reason_of(*news.ending) : Json()}};
    if (request_.options.sampling.n_top_logprobs >= 0) {
      choice["logprobs"] = logprobs(idx, news, is_first);
    }
    ++n_emitted;
    return choice;
  }

  [[nodiscard]] Json body(Json choices) const {
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", model_.name},
            {"choices", std::move(choices)}};
  }

  void count(std::size_t idx, const Ending& ending) {
    const auto n = static_cast<std::size_t>(request_.options.n);
    if (idx % n == 0) {
      n_prompt_ += ending.usage.n_prompt;
      n_cached_ += ending.usage.n_cached;
    }
    n_generated_ += ending.usage.n_generated;
  }
  [[nodiscard]] Json usage() const { return usage_of(n_prompt_, n_cached_, n_generated_); }

  [[nodiscard]] const CompletionRequest& request() const { return request_; }
  [[nodiscard]] const std::vector<Token>& prompt(std::size_t idx) const {
    return prompts_[idx / static_cast<std::size_t>(request_.options.n)];
  }

 private:
  [[nodiscard]] std::string prompt_text(std::size_t idx) const {
    std::string text;
    for (const Token token : prompt(idx)) text += piece(token);
    return text;
  }
  [[nodiscard]] std::string piece(Token token) const {
    return model_.engine->vocabulary().piece(token, true);
  }

  void add(Json& logprobs, Token token, const TokenLogprobs* of) const {
    logprobs["tokens"].push_back(piece(token));
    logprobs["token_logprobs"].push_back(of == nullptr ? Json() : Json(of->logprob));
    Json top = of == nullptr ? Json() : Json::object();
    if (of != nullptr) {
      for (const TokenLogprob& other : of->top) top[piece(other.token)] = other.logprob;
    }
    logprobs["top_logprobs"].push_back(std::move(top));
  }

  [[nodiscard]] Json logprobs(std::size_t idx, const Choice& news, bool is_first) const {
    Json result = {{"tokens", Json::array()},
                   {"token_logprobs", Json::array()},
                   {"top_logprobs", Json::array()}};
    if (request_.echoes && is_first) {
      const std::vector<Token>& tokens = prompt(idx);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool is_known = i > 0 && i <= news.prompt_logprobs.size();
        add(result, tokens[i], is_known ? &news.prompt_logprobs[i - 1] : nullptr);
      }
    }
    for (const Sampled& sampled : news.tokens) {
      add(result, sampled.token, sampled.logprobs ? &*sampled.logprobs : nullptr);
    }
    return result;
  }

  const ServedModel& model_;
  const CompletionRequest request_;
  const std::vector<std::vector<Token>> prompts_;
  const std::string id_;
  const std::time_t created_;
  std::vector<std::size_t> n_emitted_;
  int n_prompt_ = 0;
  int n_cached_ = 0;
  int n_generated_ = 0;
};

void add(Choice& choice, Event event) {
  choice.text += event.text;
  std::ranges::move(event.tokens, std::back_inserter(choice.tokens));
  std::ranges::move(event.prompt_logprobs, std::back_inserter(choice.prompt_logprobs));
  if (event.ending) choice.ending = std::move(event.ending);
}

bool has_failed(const Ending& ending) {
  return ending.reason == FinishReason::kFailed || ending.reason == FinishReason::kCancelled;
}

asio::awaitable<ApiResult<void>> answer_whole(CompletionAnswer& answer, EngineStream& stream,
                                              HttpExchange& exchange) {
  std::vector<Choice> choices(answer.n_choices());
  while (!stream.has_ended()) {
    auto items = co_await stream.next();
    if (!items) co_return ApiResult<void>();
    for (EngineStream::Item& item : *items) add(choices[item.request], std::move(item.event));
  }
  Json all = Json::array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Ending ending = choices[i].ending.value_or(Ending{.reason = FinishReason::kFailed});
    if (has_failed(ending)) co_return std::unexpected(failure_of(ending));
    answer.count(i, ending);
    all.push_back(answer.choice(i, std::move(choices[i])));
  }
  Json body = answer.body(std::move(all));
  body["usage"] = answer.usage();
  (void)co_await exchange.reply({.body = dump(body)});
  co_return ApiResult<void>();
}

asio::awaitable<void> answer_in_events(CompletionAnswer& answer, EngineStream& stream,
                                       HttpExchange& exchange) {
  if (!co_await exchange.begin_stream(event_stream_head())) co_return;
  while (!stream.has_ended()) {
    auto items = co_await stream.next();
    if (!items) co_return;
    std::string events;
    for (EngineStream::Item& item : *items) {
      Choice news;
      add(news, std::move(item.event));
      if (news.ending && has_failed(*news.ending)) {
        events += event_of(to_json(failure_of(*news.ending)));
        continue;
      }
      if (news.ending) answer.count(item.request, *news.ending);
      // A token whose text is held back says nothing yet, unless its probability is asked for.
      const bool says_nothing =
          news.text.empty() && !news.ending && answer.request().options.sampling.n_top_logprobs < 0;
      if (says_nothing) continue;
      events +=
          event_of(dump(answer.body(Json::array({answer.choice(item.request, std::move(news))}))));
    }
    if (!co_await exchange.send(events)) co_return;
  }
  std::string end;
  if (answer.request().options.wants_usage_in_stream) {
    Json body = answer.body(Json::array());
    body["usage"] = answer.usage();
    end += event_of(dump(body));
  }
  end += kEventsDone;
  if (co_await exchange.send(end)) (void)co_await exchange.end_stream();
}

ApiResult<std::vector<Token>> to_tokens(const ServedModel& model, const Prompt& prompt) {
  if (const auto* tokens = std::get_if<std::vector<Token>>(&prompt)) return *tokens;
  Result<std::vector<Token>> tokens =
      model.engine->vocabulary().tokenize(std::get<std::string>(prompt), true, true);
  if (!tokens) return refuse("prompt", tokens.error().message);
  return std::move(*tokens);
}

}  // namespace

asio::awaitable<ApiResult<void>> answer_completion(ServedModel& model, HttpExchange& exchange,
                                                   const Json& body, const Client& client) {
  ApiResult<CompletionRequest> request = read_completion_request(body);
  if (!request) co_return std::unexpected(request.error());
  std::vector<std::vector<Token>> prompts;
  for (const Prompt& prompt : request->prompts) {
    ApiResult<std::vector<Token>> tokens = to_tokens(model, prompt);
    if (!tokens) co_return std::unexpected(tokens.error());
    prompts.push_back(std::move(*tokens));
  }
  CompletionAnswer answer(model, std::move(*request), std::move(prompts));
  const GenerationOptions& options = answer.request().options;
  EngineStream stream(*model.engine, exchange);
  for (std::size_t i = 0; i < answer.n_choices(); ++i) {
    const std::vector<Token>& prompt = answer.prompt(i);
    const ApiResult<int> n_tokens =
        tokens_to_generate(prompt.size(), options, model.engine->n_context());
    if (!n_tokens) co_return std::unexpected(n_tokens.error());
    GenerateRequest generate =
        make_request(options, prompt, *n_tokens, static_cast<int>(i) % options.n, client);
    generate.wants_prompt_logprobs =
        answer.request().echoes && options.sampling.n_top_logprobs >= 0;
    const Result<void> submitted = stream.submit(std::move(generate));
    if (!submitted) co_return std::unexpected(to_api_error(submitted.error()));
  }
  if (!options.streams) co_return co_await answer_whole(answer, stream, exchange);
  co_await answer_in_events(answer, stream, exchange);
  co_return ApiResult<void>();
}

}  // namespace slipstream
