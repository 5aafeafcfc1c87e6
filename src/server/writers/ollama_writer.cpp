#include "server/writers/ollama_writer.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "server/api/ollama_error.h"
#include "server/writers/openai_writer.h"

namespace slipstream {
namespace {

std::int64_t nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

Json call_json(const ChatAnswer::Call& call) {
  Json arguments = Json::parse(call.arguments, nullptr, false);
  return {{"id", new_id("call")},
          {"function", {{"name", call.name}, {"arguments", std::move(arguments)}}}};
}

// What an answer says, in the fields of the form.
Json said_of(OllamaForm form, const ChatAnswer& answer) {
  if (form == OllamaForm::kGenerate) {
    Json said = {{"response", answer.content}};
    if (!answer.reasoning.empty()) said["thinking"] = answer.reasoning;
    return said;
  }
  Json message = {{"role", "assistant"}, {"content", answer.content}};
  if (!answer.reasoning.empty()) message["thinking"] = answer.reasoning;
  for (const ChatAnswer::Call& call : answer.calls) {
    message["tool_calls"].push_back(call_json(call));
  }
  return {{"message", std::move(message)}};
}

Json head_of(const std::string& model) {
  return {{"model", model}, {"created_at", ollama_time(std::chrono::system_clock::now())}};
}

}  // namespace

std::string ollama_time(std::chrono::system_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds);
  const auto whole = static_cast<std::time_t>(seconds.count());
  std::tm utc{};
  ::gmtime_r(&whole, &utc);
  return format_text("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     rest.count());
}

std::string ollama_done(const std::string& model, OllamaForm form, std::string_view why) {
  Json json = head_of(model);
  json.update(said_of(form, {}));
  json["done"] = true;
  json["done_reason"] = why;
  return dump(json) + "\n";
}

HttpReply OllamaWriter::head() const {
  HttpReply head = event_stream_head();
  head.content_type = kJsonLines;
  return head;
}

std::string OllamaWriter::line(const Json& said) const {
  Json json = head_of(model_);
  json.update(said);
  json["done"] = false;
  return dump(json) + "\n";
}

std::string OllamaWriter::ping() { return line(said_of(form_, {})); }

std::string OllamaWriter::write(TurnStep step) {
  std::string lines;
  for (const ChatDelta& delta : step.deltas) lines += write(delta);
  if (step.end) end_ = std::move(step.end);
  return lines;
}

std::string OllamaWriter::write(const ChatDelta& delta) {
  ChatAnswer now;
  switch (delta.kind) {
    case ChatDelta::Kind::kContent: now.content = delta.text; break;
    case ChatDelta::Kind::kReasoning: now.reasoning = delta.text; break;
    case ChatDelta::Kind::kCallBegin:
    case ChatDelta::Kind::kCallArguments: answer_.add(delta); return {};
    case ChatDelta::Kind::kCallEnd:
      answer_.add(delta);
      now.calls.push_back(answer_.calls.back());
      break;
  }
  return line(said_of(form_, now));
}

std::string OllamaWriter::write(const ApiError& error) {
  has_failed_ = true;
  return ollama_error(error) + "\n";
}

Json OllamaWriter::last_line(const Json& said, const Usage& usage) const {
  const bool is_cut = end_ && end_->reason == TurnEnd::Reason::kLength;
  Json json = head_of(model_);
  json.update(said);
  json["done"] = true;
  json["done_reason"] = is_cut ? "length" : "stop";
  // The engine may have begun before there was a writer.
  const std::int64_t n_computing = nanoseconds(usage.prompt_time + usage.generation_time);
  json["total_duration"] =
      std::max(nanoseconds(std::chrono::steady_clock::now() - begun_), n_computing);
  json["load_duration"] = 0;
  json["prompt_eval_count"] = usage.n_prompt;
  json["prompt_eval_duration"] = usage.prompt_time.count();
  json["eval_count"] = usage.n_generated;
  json["eval_duration"] = usage.generation_time.count();
  note_turns_dropped(json);
  return json;
}

std::string OllamaWriter::end(const Usage& usage) {
  if (has_failed_) return {};
  return dump(last_line(said_of(form_, {}), usage)) + "\n";
}

void OllamaWriter::collect(TurnStep step) {
  answer_.add(step.deltas);
  if (step.end) end_ = std::move(step.end);
}

std::string OllamaWriter::whole(const Usage& usage) {
  return dump(last_line(said_of(form_, answer_), usage));
}

}  // namespace slipstream
