#include "server/output/calls/python_calls.h"

#include "server/ascii.h"
#include "server/output/output_limits.h"

namespace slipstream {

CallReader::Step PythonCalls::push(char byte, CallSink& sink) {
  switch (state_) {
    case State::kBeforeCall: return push_before_call(byte);
    case State::kName: return push_name(byte);
    case State::kKeyOrClose:
    case State::kKey: return push_key(byte, sink);
    case State::kValue: return push_value(byte, sink);
    case State::kAfterValue: return push_after_value(byte, sink);
    case State::kAfterCall: return push_after_call(byte, sink);
    case State::kClosing: return closing_.push(byte);
  }
  return Step::kFailed;
}

CallReader::Step PythonCalls::push_before_call(char byte) {
  if (is_space(byte)) return Step::kTaken;
  if (byte == '[' && !in_list_) {
    in_list_ = true;
    return Step::kTaken;
  }
  if (!is_name_byte(byte) || is_digit(byte)) return Step::kFailed;
  name_ = byte;
  begun_ = has_keys_ = false;
  state_ = State::kName;
  return Step::kTaken;
}

CallReader::Step PythonCalls::push_name(char byte) {
  if (name_.size() >= kOutputLimits.call_header_bytes_max) return Step::kFailed;
  if (is_name_byte(byte) || byte == '.' || byte == '-') {
    name_ += byte;
    return Step::kTaken;
  }
  if (byte != '(') return Step::kFailed;
  constexpr std::string_view kCall = ".call";  // Llama's built-in tools: brave_search.call(...)
  if (name_.ends_with(kCall)) name_.resize(name_.size() - kCall.size());
  if (name_.empty()) return Step::kFailed;
  key_.clear();
  state_ = State::kKeyOrClose;
  return Step::kTaken;
}

CallReader::Step PythonCalls::push_key(char byte, CallSink& sink) {
  if (is_space(byte) && key_.empty()) return Step::kTaken;
  if (byte == ')' && key_.empty()) return end_call(sink);
  if (is_name_byte(byte) && !(key_.empty() && is_digit(byte))) {
    if (key_.size() >= kOutputLimits.call_header_bytes_max) return Step::kFailed;
    key_ += byte;
    state_ = State::kKey;
    return Step::kTaken;
  }
  if (is_space(byte)) return Step::kTaken;
  if (byte != '=' || key_.empty()) return Step::kFailed;
  begin_if_needed(sink);
  std::string text = has_keys_ ? ", " : "";
  append_json_string(key_, text);
  text += ":";
  sink.arguments(text);
  has_keys_ = true;
  value_ = JsonReader();
  state_ = State::kValue;
  return Step::kTaken;
}

CallReader::Step PythonCalls::push_value(char byte, CallSink& sink) {
  const JsonReader::Step step = value_.push(byte, text_);
  if (step == JsonReader::Step::kFailed) return Step::kFailed;
  if (!text_.empty()) sink.arguments(text_);
  text_.clear();
  if (step == JsonReader::Step::kTaken) return Step::kTaken;
  key_.clear();
  state_ = State::kAfterValue;
  return step == JsonReader::Step::kDoneBefore ? push_after_value(byte, sink) : Step::kTaken;
}

CallReader::Step PythonCalls::push_after_value(char byte, CallSink& sink) {
  if (is_space(byte)) return Step::kTaken;
  if (byte == ')') return end_call(sink);
  if (byte != ',') return Step::kFailed;
  state_ = State::kKeyOrClose;
  return Step::kTaken;
}

CallReader::Step PythonCalls::push_after_call(char byte, CallSink& sink) {
  if (is_space(byte)) return Step::kTaken;
  if (byte == ',' && in_list_) {
    state_ = State::kBeforeCall;
    return Step::kTaken;
  }
  if (byte == ']' && in_list_) {
    sink.settle();
    state_ = State::kClosing;
    return Step::kTaken;
  }
  const bool is_next_line = !in_list_ && !syntax_.close.empty() && !closing_.may_start(byte);
  if (is_next_line) {
    state_ = State::kBeforeCall;
    return push_before_call(byte);
  }
  state_ = State::kClosing;
  return closing_.push(byte);
}

void PythonCalls::begin_if_needed(CallSink& sink) {
  if (begun_) return;
  sink.begin(name_);
  sink.arguments("{");
  begun_ = true;
}

CallReader::Step PythonCalls::end_call(CallSink& sink) {
  begin_if_needed(sink);
  sink.arguments("}");
  sink.end(true);
  begun_ = false;
  state_ = State::kAfterCall;
  return Step::kTaken;
}

std::string PythonCalls::untold() const {
  return state_ == State::kValue ? value_.unwritten() : key_;
}

void PythonCalls::finish(CallSink& sink) {
  if (!begun_) return;
  if (state_ == State::kValue) value_.complete(text_);
  text_ += "}";
  sink.arguments(text_);
  sink.end(false);
  begun_ = false;
}

}  // namespace slipstream
