#include "server/writers/openai_writer.h"

#include <random>
#include <utility>

#include "base/format.h"
#include "server/sse.h"

namespace slipstream {

namespace {

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.n_prompt},
          {"completion_tokens", usage.n_generated},
          {"total_tokens", usage.n_prompt + usage.n_generated},
          {"prompt_tokens_details",
           {{"cached_tokens", usage.n_cached}, {"recomputed_tokens", usage.n_recomputed}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.n_reasoning}}}};
}

}  // namespace

std::string new_id(std::string_view prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return format_text("{}-{:016x}{:016x}", prefix, random(), random());
}

std::string_view name(TurnEnd::Reason reason) {
  switch (reason) {
    case TurnEnd::Reason::kStop: return "stop";
    case TurnEnd::Reason::kLength: return "length";
    case TurnEnd::Reason::kToolCalls: return "tool_calls";
  }
  return "";
}

OpenAiWriter::OpenAiWriter(const Names& names, const ServedModel& model,
                           const GenerationOptions& options, std::size_t n_choices)
    : names_(names),
      model_(model),
      n_choices_(n_choices),
      wants_logprobs_(options.sampling.n_top_logprobs >= 0),
      wants_usage_in_stream_(options.wants_usage_in_stream),
      id_(new_id(names.id_prefix)),
      created_(std::time(nullptr)) {}

void OpenAiWriter::go_on_from(StreamStart start) {
  id_ = std::move(start.id);
  created_ = start.created;
}

std::string OpenAiWriter::begin() { return chunks(first_choices()); }

std::string OpenAiWriter::write(TurnStep step) {
  if (step.progress) return event_of(dump(progress_chunk(*step.progress)));
  return chunks(choices_of(std::move(step)));
}

std::string OpenAiWriter::ping() {
  return event_of(dump(body(names_.chunk, Json::array({empty_choice()}))));
}

// As llama-server has it.
Json OpenAiWriter::progress_chunk(const PromptProgress& progress) const {
  const auto took = std::chrono::steady_clock::now() - begun_;
  Json chunk = body(names_.chunk, Json::array({empty_choice()}));
  chunk["prompt_progress"] = {
      {"total", progress.n_prompt},
      {"cache", progress.n_cached},
      {"processed", progress.n_done},
      {"time_ms", std::chrono::duration_cast<std::chrono::milliseconds>(took).count()}};
  return chunk;
}

std::string OpenAiWriter::write(const ApiError& error) { return event_of(to_json(error)); }

std::string OpenAiWriter::end(const Usage& usage) {
  std::string events;
  if (wants_usage_in_stream_) {
    Json last = body(names_.chunk, Json::array());
    last["usage"] = usage_json(usage);
    events += event_of(dump(last));
  }
  return events += kEventsDone;
}

std::string OpenAiWriter::whole(const Usage& usage) {
  Json choices = Json::array();
  for (std::size_t i = 0; i < n_choices_; ++i) choices.push_back(choice(i));
  Json whole = body(names_.whole, std::move(choices));
  whole["usage"] = usage_json(usage);
  return dump(whole);
}

std::string OpenAiWriter::chunks(std::vector<Json> choices) const {
  std::string events;
  for (Json& choice : choices) {
    events += event_of(dump(body(names_.chunk, Json::array({std::move(choice)}))));
  }
  return events;
}

Json OpenAiWriter::body(std::string_view object, Json choices) const {
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", model_.name},
          {"choices", std::move(choices)}};
}

}  // namespace slipstream
