#include "server/writers/response_output.h"

#include <string_view>
#include <utility>

#include "server/store/response_id.h"

namespace slipstream {
namespace {

ResponseOutput::Kind kind_of(const ChatDelta& delta) {
  switch (delta.kind) {
    case ChatDelta::Kind::kReasoning: return ResponseOutput::Kind::kReasoning;
    case ChatDelta::Kind::kContent: return ResponseOutput::Kind::kMessage;
    case ChatDelta::Kind::kCallBegin:
    case ChatDelta::Kind::kCallArguments:
    case ChatDelta::Kind::kCallEnd: return ResponseOutput::Kind::kCall;
  }
  return ResponseOutput::Kind::kMessage;
}

std::string_view prefix_of(ResponseOutput::Kind kind) {
  switch (kind) {
    case ResponseOutput::Kind::kReasoning: return "rs";
    case ResponseOutput::Kind::kMessage: return "msg";
    case ResponseOutput::Kind::kCall: return "fc";
  }
  return "";
}

std::string_view name_of(ResponseOutput::Status status) {
  switch (status) {
    case ResponseOutput::Status::kInProgress: return "in_progress";
    case ResponseOutput::Status::kCompleted: return "completed";
    case ResponseOutput::Status::kIncomplete: return "incomplete";
  }
  return "";
}

}  // namespace

ResponseOutput::ResponseOutput(std::string response_id, std::map<std::string, std::string> spaces)
    : response_id_(std::move(response_id)), spaces_(std::move(spaces)) {}

bool ResponseOutput::begins_item(const ChatDelta& delta) const {
  return delta.kind == ChatDelta::Kind::kCallBegin || !is_open() || last().kind != kind_of(delta);
}

void ResponseOutput::begin(const ChatDelta& delta) {
  const Kind kind = kind_of(delta);
  Item item{.kind = kind,
            .id = item_id(prefix_of(kind), {.response_id = response_id_, .idx = items_.size()})};
  if (kind == Kind::kCall) {
    item.name = delta.text;
    item.call_id = random_id("call");
  }
  items_.push_back(std::move(item));
}

void ResponseOutput::close(bool is_complete) {
  items_.back().status = is_complete ? Status::kCompleted : Status::kIncomplete;
}

Json ResponseOutput::item(const Item& item) const {
  Json json = {{"id", item.id}, {"type", ""}, {"status", name_of(item.status)}};
  switch (item.kind) {
    case Kind::kReasoning:
      json["type"] = "reasoning";
      json["summary"] = Json::array();
      json["content"] = Json::array({part(item)});
      break;
    case Kind::kMessage:
      json["type"] = "message";
      json["role"] = "assistant";
      json["content"] = Json::array({part(item)});
      break;
    case Kind::kCall:
      json["type"] = "function_call";
      json["call_id"] = item.call_id;
      json["name"] = item.name;
      json["arguments"] = item.text;
      if (const auto space = spaces_.find(item.name); space != spaces_.end()) {
        json["namespace"] = space->second;
      }
      break;
  }
  return json;
}

Json ResponseOutput::part(const Item& item) {
  if (item.kind == Kind::kReasoning) return {{"type", "reasoning_text"}, {"text", item.text}};
  return {{"type", "output_text"},
          {"text", item.text},
          {"annotations", item.annotations},
          {"logprobs", Json::array()}};
}

Json ResponseOutput::all() const {
  Json all = Json::array();
  for (const Item& one : items_) all.push_back(item(one));
  return all;
}

}  // namespace slipstream
