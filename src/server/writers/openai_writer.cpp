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

Json timings_json(const Usage& usage) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto rate = [](double n, double of) { return of > 0 ? n / of : 0; };
  const int n_computed = usage.n_prompt - usage.n_cached;
  const double prompt_ms = Milliseconds(usage.prompt_time).count();
  const double predicted_ms = Milliseconds(usage.generation_time).count();
  Json timings = {{"cache_n", usage.n_cached},
                  {"prompt_n", n_computed},
                  {"prompt_ms", prompt_ms},
                  {"prompt_per_token_ms", rate(prompt_ms, n_computed)},
                  {"prompt_per_second", rate(1000.0 * n_computed, prompt_ms)},
                  {"predicted_n", usage.n_generated},
                  {"predicted_ms", predicted_ms},
                  {"predicted_per_token_ms", rate(predicted_ms, usage.n_generated)},
                  {"predicted_per_second", rate(1000.0 * usage.n_generated, predicted_ms)}};
  if (usage.n_drafted > 0) {
    timings["draft_n"] = usage.n_drafted;
    timings["draft_n_accepted"] = usage.n_accepted;
  }
  return timings;
}

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
      wants_timings_(options.wants_timings),
      id_(new_id(names.id_prefix)),
      created_(std::time(nullptr)) {}

void OpenAiWriter::go_on_from(const StreamStart& start) {
  id_ = start.id;
  created_ = start.created;
}

std::string OpenAiWriter::begin() { return chunks(first_choices()); }

std::string OpenAiWriter::write(TurnStep step) {
  if (step.progress) return event_of(dump(progress_chunk(*step.progress)));
  const Usage usage = step.usage;
  return chunks(choices_of(std::move(step)), wants_timings_ ? &usage : nullptr);
}

std::string OpenAiWriter::ping() {
  return event_of(dump(body(names_.chunk, Json::array({empty_choice()}))));
}

// The progress under llama-server's names.
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
    note_turns_dropped(last["usage"]["prompt_tokens_details"]);
    last["timings"] = timings_json(usage);
    events += event_of(dump(last));
  }
  return events += kEventsDone;
}

std::string OpenAiWriter::whole(const Usage& usage) {
  Json choices = Json::array();
  for (std::size_t i = 0; i < n_choices_; ++i) choices.push_back(choice(i));
  Json whole = body(names_.whole, std::move(choices));
  whole["usage"] = usage_json(usage);
  note_turns_dropped(whole["usage"]["prompt_tokens_details"]);
  whole["timings"] = timings_json(usage);
  return dump(whole);
}

std::string OpenAiWriter::chunks(std::vector<Json> choices, const Usage* timings) const {
  std::string events;
  for (Json& choice : choices) {
    Json chunk = body(names_.chunk, Json::array({std::move(choice)}));
    if (timings != nullptr) chunk["timings"] = timings_json(*timings);
    events += event_of(dump(chunk));
  }
  return events;
}

Json OpenAiWriter::body(std::string_view object, Json choices) const {
  Json body = {{"id", id_},
               {"object", object},
               {"created", created_},
               {"model", model_.name},
               {"choices", std::move(choices)}};
  if (!model_.system_fingerprint.empty()) body["system_fingerprint"] = model_.system_fingerprint;
  if (wants_usage_in_stream_) body["usage"] = nullptr;  // until the last chunk
  return body;
}

}  // namespace slipstream
