#include "server/routes/generated_answer.h"

#include <algorithm>
#include <utility>

#include "server/json.h"
#include "server/sse.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

bool has_failed(const Ending& ending) {
  return ending.reason == FinishReason::kFailed || ending.reason == FinishReason::kCancelled;
}

ApiError failure_of(const Ending& ending) {
  return {.status = 500,
          .message = ending.error.empty() ? "the request was cancelled" : ending.error};
}

Json to_json(const Usage& usage) {
  return {{"prompt_tokens", usage.n_prompt},
          {"completion_tokens", usage.n_generated},
          {"total_tokens", usage.n_prompt + usage.n_generated},
          {"prompt_tokens_details", {{"cached_tokens", usage.n_cached}}}};
}

}  // namespace

GeneratedAnswer::GeneratedAnswer(const Names& names, ServedModel& model, HttpExchange& exchange,
                                 const Client& client, GenerationOptions options,
                                 std::size_t n_choices)
    : names_(names),
      model_(model),
      options_(std::move(options)),
      n_choices_(n_choices),
      id_(new_id(names.id_prefix)),
      created_(std::time(nullptr)),
      stream_(model, exchange, client.account) {}

asio::awaitable<ApiResult<void>> GeneratedAnswer::send(HttpExchange& exchange,
                                                       WorkerPool& workers) {
  exchange.drop_body();  // the engine has what it needs of it
  return options_.streams ? send_events(exchange, workers) : send_whole(exchange, workers);
}

asio::awaitable<ApiResult<void>> GeneratedAnswer::send_whole(HttpExchange& exchange,
                                                             WorkerPool& workers) {
  while (!stream_.has_ended()) {
    auto items = co_await stream_.next();
    if (!items) co_return ApiResult<void>();
    for (EngineStream::Item& item : *items) {
      if (const auto& ending = item.event.ending) {
        if (has_failed(*ending)) co_return std::unexpected(failure_of(*ending));
        count(item.request, ending->usage);
      }
      collect(item.request, std::move(item.event));
      if (is_complete(item.request)) stream_.stop(item.request);
    }
  }
  const auto write = [this]() -> ApiResult<std::string> { return whole(); };
  ApiResult<std::string> body =
      wants_logprobs() ? co_await workers.go_on(exchange, write) : write();
  if (!body) co_return std::unexpected(body.error());
  (void)co_await exchange.reply({.body = std::move(*body)});
  co_return ApiResult<void>();
}

std::string GeneratedAnswer::whole() {
  Json choices = Json::array();
  for (std::size_t i = 0; i < n_choices_; ++i) choices.push_back(choice(i));
  Json whole = body(names_.whole, std::move(choices));
  whole["usage"] = to_json(usage_);
  return dump(whole);
}

asio::awaitable<ApiResult<void>> GeneratedAnswer::send_events(HttpExchange& exchange,
                                                              WorkerPool& workers) {
  if (!co_await exchange.begin_stream(event_stream_head())) co_return ApiResult<void>();
  std::string first;
  for (Json& choice : first_choices()) first += chunk(std::move(choice));
  if (!co_await exchange.send(first)) co_return ApiResult<void>();
  while (!stream_.has_ended()) {
    auto items = co_await stream_.next();
    if (!items) co_return ApiResult<void>();
    const bool is_long = std::ranges::any_of(
        *items, [](const auto& item) { return !item.event.prompt_logprobs.empty(); });
    const auto write = [&]() -> ApiResult<std::string> { return events_of(std::move(*items)); };
    const ApiResult<std::string> events =
        is_long ? co_await workers.go_on(exchange, write) : write();
    if (!events || !co_await exchange.send(*events)) co_return ApiResult<void>();
  }
  if (co_await exchange.send(last_events())) (void)co_await exchange.end_stream();
  co_return ApiResult<void>();
}

std::string GeneratedAnswer::last_events() const {
  std::string events;
  if (options_.wants_usage_in_stream) {
    Json last = body(names_.chunk, Json::array());
    last["usage"] = to_json(usage_);
    events += event_of(dump(last));
  }
  return events += kEventsDone;
}

std::string GeneratedAnswer::events_of(Items items) {
  std::string events;
  for (EngineStream::Item& item : items) {
    const std::size_t idx = item.request;
    events += events_of(std::move(item));
    if (is_complete(idx)) stream_.stop(idx);
  }
  return events;
}

std::string GeneratedAnswer::events_of(EngineStream::Item item) {
  if (const auto& ending = item.event.ending) {
    if (has_failed(*ending)) return event_of(slipstream::to_json(failure_of(*ending)));
    count(item.request, ending->usage);
  }
  std::string events;
  for (Json& choice : choices_of(item.request, std::move(item.event))) {
    events += chunk(std::move(choice));
  }
  return events;
}

std::string GeneratedAnswer::chunk(Json choice) const {
  return event_of(dump(body(names_.chunk, Json::array({std::move(choice)}))));
}

Json GeneratedAnswer::body(std::string_view object, Json choices) const {
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", model_.name},
          {"choices", std::move(choices)}};
}

// A prompt costs once, however many answers it has.
void GeneratedAnswer::count(std::size_t idx, const Usage& usage) {
  if (idx % static_cast<std::size_t>(options_.n) == 0) {
    usage_.n_prompt += usage.n_prompt;
    usage_.n_cached += usage.n_cached;
  }
  usage_.n_generated += usage.n_generated;
}

}  // namespace slipstream
