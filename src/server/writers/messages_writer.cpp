#include "server/writers/messages_writer.h"

#include <utility>

#include "base/format.h"
#include "server/api/messages_error.h"
#include "server/sse.h"
#include "server/writers/openai_writer.h"

namespace slipstream {
namespace {

std::string event(std::string_view type, const Json& rest) {
  Json json = {{"type", type}};
  json.update(rest);
  return event_of(type, dump(json));
}

// Clients require a signature and send it back. It proves nothing, because whoever runs the model
// may change the model's thoughts.
std::string new_signature() { return new_id("sig"); }

Json call_block(std::string_view name) {
  return {{"type", "tool_use"}, {"id", new_id("toolu")}, {"name", name}, {"input", Json::object()}};
}

}  // namespace

MessagesWriter::MessagesWriter(Options options)
    : options_(std::move(options)), id_(new_id("msg")) {}

std::string MessagesWriter::begin() {
  const Usage so_far{.n_prompt = static_cast<int>(options_.n_prompt)};
  return event("message_start", {{"message", message(Json::array(), nullptr, usage_json(so_far))}});
}

std::string MessagesWriter::ping() { return event("ping", Json::object()); }

std::string MessagesWriter::write(TurnStep step) {
  std::string events;
  for (const ChatDelta& delta : step.deltas) events += write(delta);
  if (step.end) {
    events += close();
    end_ = std::move(step.end);
  }
  return events;
}

std::string MessagesWriter::write(const ChatDelta& delta) {
  std::string events;
  switch (delta.kind) {
    case Kind::kReasoning:
      events = open(delta.kind, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
      events += delta_event("thinking_delta", "thinking", delta.text);
      break;
    case Kind::kContent:
      events = open(delta.kind, {{"type", "text"}, {"text", ""}});
      events += delta_event("text_delta", "text", delta.text);
      break;
    case Kind::kCallBegin:
      events = close();
      events += open(delta.kind, call_block(delta.text));
      break;
    case Kind::kCallArguments:
      events = delta_event("input_json_delta", "partial_json", delta.text);
      break;
    case Kind::kCallEnd: events = close(); break;
  }
  return events;
}

// Returns nothing if a block of this kind is already open.
std::string MessagesWriter::open(Kind kind, Json block) {
  if (block_ == kind) return {};
  std::string events = close();
  block_ = kind;
  events +=
      event("content_block_start", {{"index", n_blocks_}, {"content_block", std::move(block)}});
  ++n_blocks_;
  return events;
}

std::string MessagesWriter::close() {
  if (!block_) return {};
  std::string events;
  if (block_ == Kind::kReasoning) {
    events += delta_event("signature_delta", "signature", new_signature());
  }
  events += event("content_block_stop", {{"index", n_blocks_ - 1}});
  block_.reset();
  return events;
}

std::string MessagesWriter::delta_event(std::string_view type, std::string_view field,
                                        const std::string& text) const {
  constexpr std::string_view kName = "content_block_delta";
  return event_of(
      kName, format_text(R"({{"type":"{}","index":{},"delta":{{"type":"{}","{}":{}}}}})", kName,
                         n_blocks_ - 1, type, field, dump(text)));
}

std::string MessagesWriter::write(const ApiError& error) {
  has_failed_ = true;
  return event_of("error", messages_error(error));
}

std::string MessagesWriter::end(const Usage& usage) {
  if (has_failed_) return {};
  return event("message_delta",
               {{"delta", {{"stop_reason", stop_reason()}, {"stop_sequence", stop_sequence()}}},
                {"usage", usage_json(usage)}}) +
         event("message_stop", Json::object());
}

void MessagesWriter::collect(TurnStep step) {
  for (const ChatDelta& delta : step.deltas) add(delta);
  if (step.end) {
    finish_block();
    end_ = std::move(step.end);
  }
}

void MessagesWriter::add(const ChatDelta& delta) {
  const bool begins = delta.kind == Kind::kCallBegin || delta.kind == Kind::kContent ||
                      delta.kind == Kind::kReasoning;
  if (delta.kind == Kind::kCallEnd) return finish_block();
  if (begins && (block_ != delta.kind || delta.kind == Kind::kCallBegin)) {
    finish_block();
    block_ = delta.kind;
    if (delta.kind == Kind::kCallBegin) content_.push_back(call_block(delta.text));
  }
  if (delta.kind != Kind::kCallBegin) text_ += delta.text;
}

void MessagesWriter::finish_block() {
  if (!block_) return;
  std::string text = std::exchange(text_, {});
  if (block_ == Kind::kReasoning) {
    content_.push_back(
        {{"type", "thinking"}, {"thinking", std::move(text)}, {"signature", new_signature()}});
  } else if (block_ == Kind::kContent) {
    content_.push_back({{"type", "text"}, {"text", std::move(text)}});
  } else {
    content_.back()["input"] = Json::parse(text, nullptr, false);
  }
  block_.reset();
}

std::string MessagesWriter::whole(const Usage& usage) {
  return dump(message(std::move(content_), stop_reason(), usage_json(usage)));
}

Json MessagesWriter::message(Json content, Json stop_reason, Json usage) const {
  return {{"id", id_},
          {"type", "message"},
          {"role", "assistant"},
          {"model", options_.model},
          {"content", std::move(content)},
          {"stop_reason", std::move(stop_reason)},
          {"stop_sequence", stop_sequence()},
          {"usage", std::move(usage)}};
}

// input_tokens and the two counts of the cache add up to the whole prompt.
Json MessagesWriter::usage_json(const Usage& usage) const {
  const int n_computed = usage.n_prompt - usage.n_cached;
  Json told = {{"input_tokens", options_.wants_cache ? 0 : n_computed},
               {"cache_creation_input_tokens", options_.wants_cache ? n_computed : 0},
               {"cache_read_input_tokens", usage.n_cached},
               {"recomputed_input_tokens", usage.n_recomputed},
               {"output_tokens", usage.n_generated}};
  note_turns_dropped(told);
  return told;
}

Json MessagesWriter::stop_reason() const {
  if (!end_) return nullptr;
  switch (end_->reason) {
    case TurnEnd::Reason::kToolCalls: return "tool_use";
    case TurnEnd::Reason::kLength: return "max_tokens";
    case TurnEnd::Reason::kStop: return end_->matched_stop.empty() ? "end_turn" : "stop_sequence";
  }
  return nullptr;
}

Json MessagesWriter::stop_sequence() const {
  return end_ && !end_->matched_stop.empty() ? Json(end_->matched_stop) : Json();
}

}  // namespace slipstream
