#include "server/turn/turn.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace slipstream {

namespace {

bool has_failed(const Ending& ending) {
  return ending.reason == FinishReason::kFailed || ending.reason == FinishReason::kCancelled;
}

ApiError failure_of(const Ending& ending) {
  return {.status = 500,
          .message = ending.error.empty() ? "the request was cancelled" : ending.error};
}

}  // namespace

Turn::Turn(ServedModel& model, HttpExchange& exchange, std::shared_ptr<ClientAccount> account,
           Options options)
    : options_(std::move(options)), stream_(model, exchange, std::move(account)) {}

Result<void> Turn::submit(GenerateRequest request) {
  Choice choice;
  if (options_.parsing) choice.parser = std::make_unique<OutputParser>(*options_.parsing);
  if (options_.sources) choice.citations.emplace(options_.sources);
  if (choices_.size() % static_cast<std::size_t>(options_.n_per_prompt) == 0) {
    n_prompt_ += request.prompt.size();
  }
  choices_.push_back(std::move(choice));
  return stream_.submit(std::move(request));
}

ApiResult<TurnStep> Turn::take(EngineStream::Item item) {
  Event& event = item.event;
  if (event.ending) {
    if (has_failed(*event.ending)) return std::unexpected(failure_of(*event.ending));
    count(item.request, event.ending->usage);
  }
  Choice& choice = choices_[item.request];
  TurnStep step{.choice = item.request,
                .deltas = deltas_of(choice, event),
                .tokens = std::move(event.tokens),
                .prompt_logprobs = std::move(event.prompt_logprobs),
                .progress = event.progress,
                .usage = event.usage};
  if (choice.is_complete) stream_.stop(item.request);
  if (event.ending) step.end = end_of(choice, std::move(*event.ending));
  return step;
}

ChatDeltas Turn::deltas_of(Choice& choice, Event& event) {
  ChatDeltas deltas;
  if (choice.parser) {
    deltas = choice.parser->push(event.text);
    choice.is_complete = choice.parser->is_over();
    if (event.ending) std::ranges::move(choice.parser->finish(), std::back_inserter(deltas));
  } else if (!event.text.empty()) {
    deltas.push_back({.kind = ChatDelta::Kind::kContent, .text = std::move(event.text)});
  }
  for (const ChatDelta& delta : deltas) {
    choice.has_calls |= delta.kind == ChatDelta::Kind::kCallBegin;
    if (choice.citations && delta.kind == ChatDelta::Kind::kContent) {
      choice.citations->push(delta.text);
    }
  }
  choice.has_said_something |= !deltas.empty();
  return deltas;
}

TurnEnd Turn::end_of(const Choice& choice, Ending ending) {
  const bool has_stopped = choice.is_complete || ending.reason == FinishReason::kStop;
  TurnEnd end{.reason = ending.reason == FinishReason::kStop ? TurnEnd::Reason::kStop
                                                             : TurnEnd::Reason::kLength,
              .matched_stop = std::move(ending.matched_stop),
              .said_nothing = !choice.has_said_something};
  if (choice.citations) end.citations = choice.citations->finish();
  if (choice.has_calls && has_stopped) end.reason = TurnEnd::Reason::kToolCalls;
  return end;
}

void Turn::count(std::size_t choice, const Usage& usage) {
  if (choice % static_cast<std::size_t>(options_.n_per_prompt) == 0) {
    usage_.n_prompt += usage.n_prompt;
    usage_.n_cached += usage.n_cached;
    usage_.n_recomputed += usage.n_recomputed;
  }
  // Choices are computed at the same time, so their times do not add up.
  usage_.prompt_time = std::max(usage_.prompt_time, usage.prompt_time);
  usage_.generation_time = std::max(usage_.generation_time, usage.generation_time);
  usage_.n_generated += usage.n_generated;
  usage_.n_reasoning += usage.n_reasoning;
  usage_.n_drafted += usage.n_drafted;
  usage_.n_accepted += usage.n_accepted;
}

}  // namespace slipstream
