#include "cli/chat/answer_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace slipstream::chat {
namespace {

constexpr double kTogetherSeconds = 0.001;  // pieces within this time count as one

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The field's value if it has the right type; otherwise "" or 0.
std::string text_at(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}
int count_at(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_number()) return 0;
  constexpr double kMax = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp(found->get<double>(), 0.0, kMax));
}
const Json& part_at(const Json& object, const char* key) {
  static const Json kNone;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : kNone;
}

}  // namespace

std::string error_message(const Json& body) {
  const Json& error = part_at(body, "error");
  if (error.is_null()) return "";
  if (error.is_string()) return error.get<std::string>();
  const std::string message = text_at(error, "message");
  return message.empty() ? error.dump() : message;
}

void AnswerReader::take(std::string_view bytes) {
  lines_.take(bytes, [this](std::string_view data) {
    take_event(Json::parse(data, nullptr, /*allow_exceptions=*/false));  // "[DONE]" is no object
  });
}

void AnswerReader::take_event(const Json& event) {
  if (!event.is_object()) return;
  if (error_.empty()) error_ = error_message(event);
  if (const Json& usage = part_at(event, "usage"); usage.is_object()) {
    answer_.n_prompt = count_at(usage, "prompt_tokens");
    answer_.n_generated = count_at(usage, "completion_tokens");
    answer_.n_cached = count_at(part_at(usage, "prompt_tokens_details"), "cached_tokens");
  }
  const Json& choices = part_at(event, "choices");
  if (!choices.is_array() || choices.empty()) return;
  const Json& choice = choices.front();
  if (const std::string why = text_at(choice, "finish_reason"); !why.empty()) {
    answer_.finish_reason = why;
  }
  if (const std::string notice = text_at(choice, "notice"); !notice.empty()) {
    answer_.notice = notice;
  }
  take_delta(part_at(choice, "delta"));
}

void AnswerReader::take_delta(const Json& delta) {
  // Servers use one of two names for it.
  std::string reasoning = text_at(delta, "reasoning_content");
  if (reasoning.empty()) reasoning = text_at(delta, "reasoning");
  give(Piece::Kind::kReasoning, reasoning);
  const std::string content = text_at(delta, "content");
  answer_.content += content;
  give(Piece::Kind::kContent, content);
  for (const Json& call : part_at(delta, "tool_calls")) {
    const Json& function = part_at(call, "function");
    const std::string name = text_at(function, "name");
    if (!name.empty()) give(Piece::Kind::kCall, "calls " + name + " ");
    give(Piece::Kind::kCall, text_at(function, "arguments"));
  }
}

void AnswerReader::give(Piece::Kind kind, const std::string& text) {
  if (text.empty()) return;
  const double now = seconds_since(asked_);
  if (n_pieces_ == 0) answer_.first_token_s = now;
  if (n_pieces_ == 0 || now - last_piece_s_ > kTogetherSeconds) ++n_pieces_;
  last_piece_s_ = now;
  on_piece_({.kind = kind, .text = text});
}

std::string AnswerReader::error() const {
  if (!error_.empty()) return error_;
  // A body that is not a stream of events has no line feed at its end.
  return error_message(Json::parse(lines_.rest(), nullptr, /*allow_exceptions=*/false));
}

Answer AnswerReader::finish() {
  answer_.seconds = seconds_since(asked_);
  answer_.is_streamed = n_pieces_ > 1;
  return std::move(answer_);
}

}  // namespace slipstream::chat
