#include "server/writers/infill_writer.h"

#include <utility>

#include "server/sse.h"
#include "server/writers/openai_writer.h"

namespace slipstream {
namespace {

std::string_view stop_type(const TurnEnd& end) {
  if (end.reason == TurnEnd::Reason::kLength) return "limit";
  return end.matched_stop.empty() ? "eos" : "word";
}

}  // namespace

Json InfillWriter::piece(std::size_t idx, const std::string& text) const {
  return {{"index", idx}, {"content", text}, {"stop", false}};
}

Json InfillWriter::ended(std::size_t idx, const Infilled& answer) const {
  const Usage& usage = answer.usage;
  Json json = piece(idx, answer.text);
  json["stop"] = true;
  json["model"] = options_.model;
  json["tokens_predicted"] = options_.only_reads ? 0 : usage.n_generated;
  json["tokens_evaluated"] = usage.n_prompt;
  json["tokens_cached"] = usage.n_cached;
  json["generation_settings"] = {{"n_ctx", options_.n_context}};
  json["truncated"] = options_.n_dropped > 0;
  json["input_extra_dropped"] = options_.n_dropped;
  if (answer.end) {
    json["stop_type"] = stop_type(*answer.end);
    json["stopping_word"] = answer.end->matched_stop;
  }
  json["timings"] = timings_json(usage);
  return json;
}

std::string InfillWriter::write(TurnStep step) {
  Infilled& answer = answers_[step.choice];
  std::string text;
  for (const ChatDelta& delta : step.deltas) text += delta.text;
  std::string events;
  if (!text.empty()) events = event_of(dump(piece(step.choice, text)));
  if (step.end) {
    answer.usage = step.usage;
    answer.end = std::move(step.end);
    events += event_of(dump(ended(step.choice, answer)));
  }
  return events;
}

std::string InfillWriter::ping() { return event_of(dump(piece(0, ""))); }

std::string InfillWriter::write(const ApiError& error) { return event_of(to_json(error)); }

void InfillWriter::collect(TurnStep step) {
  Infilled& answer = answers_[step.choice];
  if (!options_.only_reads) {
    for (const ChatDelta& delta : step.deltas) answer.text += delta.text;
  }
  if (step.end) {
    answer.usage = step.usage;
    answer.end = std::move(step.end);
  }
}

std::string InfillWriter::whole(const Usage& usage) {
  if (answers_.size() == 1) {
    answers_.front().usage = usage;
    return dump(ended(0, answers_.front()));
  }
  Json all = Json::array();
  for (std::size_t i = 0; i < answers_.size(); ++i) all.push_back(ended(i, answers_[i]));
  return dump(all);
}

}  // namespace slipstream
