#include "server/routes/generated_answer.h"

#include <utility>

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

GeneratedAnswer::GeneratedAnswer(const Names& names, const ServedModel& model,
                                 GenerationOptions options, std::size_t n_choices)
    : names_(names),
      model_(model),
      options_(std::move(options)),
      n_choices_(n_choices),
      id_(new_id(names.id_prefix)),
      created_(std::time(nullptr)) {}

asio::awaitable<ApiResult<void>> GeneratedAnswer::send(EngineStream& stream,
                                                       HttpExchange& exchange) {
  if (!options_.streams) co_return co_await send_whole(stream, exchange);
  co_await send_events(stream, exchange);
  co_return ApiResult<void>();
}

asio::awaitable<ApiResult<void>> GeneratedAnswer::send_whole(EngineStream& stream,
                                                             HttpExchange& exchange) {
  while (!stream.has_ended()) {
    auto items = co_await stream.next();
    if (!items) co_return ApiResult<void>();
    for (EngineStream::Item& item : *items) {
      if (const auto& ending = item.event.ending) {
        if (has_failed(*ending)) co_return std::unexpected(failure_of(*ending));
        count(item.request, ending->usage);
      }
      collect(item.request, std::move(item.event));
      if (is_complete(item.request)) stream.stop(item.request);
    }
  }
  Json choices = Json::array();
  for (std::size_t i = 0; i < n_choices_; ++i) choices.push_back(choice(i));
  Json whole = body(names_.whole, std::move(choices));
  whole["usage"] = to_json(usage_);
  (void)co_await exchange.reply({.body = dump(whole)});
  co_return ApiResult<void>();
}

asio::awaitable<void> GeneratedAnswer::send_events(EngineStream& stream, HttpExchange& exchange) {
  if (!co_await exchange.begin_stream(event_stream_head())) co_return;
  std::string events;
  for (Json& choice : first_choices()) events += chunk(std::move(choice));
  if (!co_await exchange.send(events)) co_return;
  while (!stream.has_ended()) {
    auto items = co_await stream.next();
    if (!items) co_return;
    events.clear();
    for (EngineStream::Item& item : *items) {
      const std::size_t idx = item.request;
      events += events_of(std::move(item));
      if (is_complete(idx)) stream.stop(idx);
    }
    if (!co_await exchange.send(events)) co_return;
  }
  events.clear();
  if (options_.wants_usage_in_stream) {
    Json last = body(names_.chunk, Json::array());
    last["usage"] = to_json(usage_);
    events += event_of(dump(last));
  }
  events += kEventsDone;
  if (co_await exchange.send(events)) (void)co_await exchange.end_stream();
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
