#include "server/writers/responses_writer.h"

#include <utility>

#include "base/format.h"
#include "server/sse.h"
#include "server/store/response_id.h"
#include "server/writers/annotations.h"

namespace slipstream {
namespace {

using Kind = ResponseOutput::Kind;

Json usage_of_response(const Usage& usage) {
  return {{"input_tokens", usage.n_prompt},
          {"input_tokens_details",
           {{"cached_tokens", usage.n_cached}, {"recomputed_tokens", usage.n_recomputed}}},
          {"output_tokens", usage.n_generated},
          {"output_tokens_details", {{"reasoning_tokens", usage.n_reasoning}}},
          {"total_tokens", usage.n_prompt + usage.n_generated}};
}

std::string_view delta_type(Kind kind) {
  switch (kind) {
    case Kind::kReasoning: return "response.reasoning_text.delta";
    case Kind::kMessage: return "response.output_text.delta";
    case Kind::kCall: return "response.function_call_arguments.delta";
  }
  return "";
}

// Clients decide by this code whether to try again.
std::string code_of(const ApiError& error) {
  if (!error.code.empty()) return error.code;
  return error.status == 429 ? "rate_limit_exceeded" : "server_error";
}

}  // namespace

ResponsesWriter::ResponsesWriter(Options options)
    : options_(std::move(options)),
      id_(new_response_id()),
      created_(std::time(nullptr)),
      output_(id_, options_.spaces) {}

std::string ResponsesWriter::begin_early() { return begin(); }

StreamStart ResponsesWriter::start() const {
  return {.id = id_, .created = created_, .n_events = n_events_};
}

void ResponsesWriter::go_on_from(const StreamStart& start) {
  id_ = start.id;
  created_ = start.created;
  n_events_ = start.n_events;
  output_.set_response_id(id_);
}

std::string ResponsesWriter::begin() {
  streams_ = true;
  const std::string response = to_text("in_progress", {}, {});
  if (n_events_ == 0) emit_response("response.created", response);
  emit_response("response.in_progress", response);
  return std::exchange(events_, {});
}

std::string ResponsesWriter::write(TurnStep step) {
  take(step);
  return std::exchange(events_, {});
}

std::string ResponsesWriter::ping() {
  emit_response("response.in_progress", to_text("in_progress", {}, {}));
  return std::exchange(events_, {});
}

std::string ResponsesWriter::write(const ApiError& error) {
  has_failed_ = true;
  if (output_.is_open()) output_.close(false);
  const Json reason = {{"code", code_of(error)}, {"message", error.message}};
  emit_response("response.failed", to_text("failed", {}, reason));
  return std::exchange(events_, {});
}

std::string ResponsesWriter::end(const Usage& usage) {
  if (has_failed_) return {};
  response_ = finished(usage);
  emit_response(was_cut_short() ? "response.incomplete" : "response.completed", response_);
  return std::exchange(events_, {});
}

void ResponsesWriter::collect(TurnStep step) { take(step); }

std::string ResponsesWriter::whole(const Usage& usage) {
  response_ = finished(usage);
  return response_;
}

std::string ResponsesWriter::finished(const Usage& usage) {
  Json told = usage_of_response(usage);
  note_turns_dropped(told["input_tokens_details"]);
  return to_text(was_cut_short() ? "incomplete" : "completed", told, {});
}

void ResponsesWriter::take(const TurnStep& step) {
  for (const ChatDelta& delta : step.deltas) take(delta);
  if (!step.end) return;
  ending_ = step.end;
  if (!output_.is_open()) return;
  if (output_.last().kind == Kind::kMessage) announce_citations(ending_->citations);
  close_item(!was_cut_short());
}

void ResponsesWriter::announce_citations(std::span<const Citation> citations) {
  Json annotations = response_annotations(citations);
  for (std::size_t i = 0; streams_ && i < annotations.size(); ++i) {
    emit("response.output_text.annotation.added", {{"item_id", output_.last().id},
                                                   {"output_index", output_.last_idx()},
                                                   {"content_index", 0},
                                                   {"annotation_index", i},
                                                   {"annotation", annotations[i]}});
  }
  output_.annotate(std::move(annotations));
}

void ResponsesWriter::take(const ChatDelta& delta) {
  const bool is_call_end = delta.kind == ChatDelta::Kind::kCallEnd;
  if (is_call_end) return close_item(delta.complete);
  if (output_.begins_item(delta)) {
    if (output_.is_open()) close_item(true);
    output_.begin(delta);
    announce_item();
  }
  if (delta.kind == ChatDelta::Kind::kCallBegin) return;  // its text is the function's name
  output_.append(delta.text);
  announce_text(delta.text);
}

void ResponsesWriter::close_item(bool is_complete) {
  output_.close(is_complete);
  announce_end_of_item();
}

void ResponsesWriter::announce_item() {
  if (!streams_) return;
  const ResponseOutput::Item& item = output_.last();
  Json added = output_.item(item);
  if (item.kind != Kind::kCall) added["content"] = Json::array();  // the next event adds the part
  emit("response.output_item.added",
       {{"output_index", output_.last_idx()}, {"item", std::move(added)}});
  if (item.kind == Kind::kCall) return;
  emit("response.content_part.added", {{"item_id", item.id},
                                       {"output_index", output_.last_idx()},
                                       {"content_index", 0},
                                       {"part", ResponseOutput::part(item)}});
}

void ResponsesWriter::announce_text(const std::string& text) {
  if (!streams_) return;
  const ResponseOutput::Item& item = output_.last();
  const std::string_view type = delta_type(item.kind);
  events_ += event_of(
      type, format_text(R"({{"type":"{}","sequence_number":{},"item_id":"{}","output_index":{},)"
                        R"({}"delta":{}{}}})",
                        type, n_events_++, item.id, output_.last_idx(),
                        item.kind == Kind::kCall ? "" : R"("content_index":0,)", dump(text),
                        item.kind == Kind::kMessage ? R"(,"logprobs":[])" : ""));
}

void ResponsesWriter::announce_end_of_item() {
  if (!streams_) return;
  const ResponseOutput::Item& item = output_.last();
  Json fields = {{"item_id", item.id}, {"output_index", output_.last_idx()}};
  if (item.kind == Kind::kCall) {
    fields["name"] = item.name;
    fields["arguments"] = item.text;
    emit("response.function_call_arguments.done", fields);
  } else {
    fields["content_index"] = 0;
    Json of_part = fields;
    of_part["part"] = ResponseOutput::part(item);
    fields["text"] = item.text;
    if (item.kind == Kind::kMessage) fields["logprobs"] = Json::array();
    emit(item.kind == Kind::kMessage ? "response.output_text.done" : "response.reasoning_text.done",
         fields);
    emit("response.content_part.done", of_part);
  }
  emit("response.output_item.done",
       {{"output_index", output_.last_idx()}, {"item", output_.item(item)}});
}

void ResponsesWriter::emit(std::string_view type, const Json& fields) {
  Json event = {{"type", type}, {"sequence_number", n_events_++}};
  event.update(fields);
  events_ += event_of(type, dump(event));
}

void ResponsesWriter::emit_response(std::string_view type, const std::string& response) {
  events_ += event_of(type, format_text(R"({{"type":"{}","sequence_number":{},"response":{}}})",
                                        type, n_events_++, response));
}

std::string ResponsesWriter::to_text(std::string_view status, const Json& usage,
                                     const Json& error) const {
  const bool is_incomplete = status == "incomplete";
  const Json head = {
      {"id", id_},
      {"object", "response"},
      {"created_at", created_},
      {"status", status},
      {"completed_at", status == "completed" ? Json(std::time(nullptr)) : Json()},
      {"error", error},
      {"incomplete_details", is_incomplete ? Json{{"reason", "max_output_tokens"}} : Json()},
      {"model", options_.model}};
  const Json rest = {{"output", output_.all()}, {"usage", usage}};
  // The echo is JSON text already, so it is inserted into the text.
  const std::string begin = dump(head);
  std::string text = begin.substr(0, begin.size() - 1);
  if (!options_.echo.empty()) text += "," + options_.echo;
  return text + "," + dump(rest).substr(1);
}

}  // namespace slipstream
