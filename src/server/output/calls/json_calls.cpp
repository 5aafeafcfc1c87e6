#include "server/output/calls/json_calls.h"

#include <algorithm>
#include <string_view>

#include "server/ascii.h"

namespace slipstream {
namespace {

constexpr int kWrappersMax = 3;

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::ranges::find(keys, key) != keys.end();
}
bool is_name_key(std::string_view key) { return is_one_of(key, {"name", "tool_name", "function"}); }
bool is_arguments_key(std::string_view key) {
  return is_one_of(key, {"arguments", "parameters", "args"});
}
bool is_list_key(std::string_view key) { return is_one_of(key, {"tool_calls", "tool_call"}); }
bool is_other_key(std::string_view key) { return is_one_of(key, {"id", "type", "tool_call_id"}); }

// The meaning of a strict JSON string, whose closing quote may still be missing.
std::string unquote(std::string_view text) {
  if (!text.starts_with('"')) return {};
  text.remove_prefix(1);
  if (text.ends_with('"')) text.remove_suffix(1);
  return json_unescaped(text);
}

}  // namespace

CallReader::Step JsonCalls::push(char byte, CallSink& sink) {
  switch (state_) {
    case State::kBeforeCall: return push_before_call(byte, sink);
    case State::kKeyOrClose: return push_key_or_close(byte, sink);
    case State::kKey: return push_key(byte);
    case State::kColon:
      if (is_space(byte)) return Step::kTaken;
      if (byte != ':') return Step::kFailed;
      state_ = State::kValue;
      return Step::kTaken;
    case State::kValue: return push_value(byte, sink);
    case State::kName:
    case State::kNoArguments:
    case State::kOther: return push_text(byte, sink);
    case State::kArguments: return push_arguments(byte, sink);
    case State::kPacked: return push_packed(byte, sink);
    case State::kAfterValue: return push_after_value(byte, sink);
    case State::kAfterCall: return push_after_call(byte, sink);
    case State::kClosing:
      if (list_is_wrapped_ && byte == '}') {
        list_is_wrapped_ = false;
        sink.settle();
        return Step::kTaken;
      }
      return closing_.push(byte);
  }
  return Step::kFailed;
}

CallReader::Step JsonCalls::push_before_call(char byte, CallSink& sink) {
  if (is_space(byte)) return Step::kTaken;
  if (byte == '[' && !in_list_) {
    in_list_ = true;
    return Step::kTaken;
  }
  if (byte == ']' && in_list_ && !syntax_.only_known_tools) {  // a list without calls
    sink.settle();
    state_ = State::kClosing;
    return Step::kTaken;
  }
  if (byte != '{') return Step::kFailed;
  name_.reset();
  has_arguments_ = arguments_done_ = begun_ = ended_ = after_separator_ = false;
  n_wrappers_ = 0;
  state_ = State::kKeyOrClose;
  return Step::kTaken;
}

CallReader::Step JsonCalls::push_key_or_close(char byte, CallSink& sink) {
  if (is_space(byte)) return Step::kTaken;
  if (byte == '}') return end_object(sink);
  if (byte != '"' && byte != '\'') return Step::kFailed;
  start_value(State::kKey);
  return push_key(byte);
}

CallReader::Step JsonCalls::push_key(char byte) {
  switch (value_.push(byte, text_)) {
    case JsonReader::Step::kTaken: return Step::kTaken;
    case JsonReader::Step::kDone:
      key_ = unquote(text_);
      state_ = State::kColon;
      return Step::kTaken;
    default: return Step::kFailed;
  }
}

CallReader::Step JsonCalls::push_value(char byte, CallSink& sink) {
  if (is_space(byte)) return Step::kTaken;
  const bool is_arguments = is_arguments_key(key_) && !has_arguments_;
  if (byte == '{' && (key_ == "function" || is_list_key(key_)) && n_wrappers_ < kWrappersMax) {
    ++n_wrappers_;
    state_ = State::kKeyOrClose;
    return Step::kTaken;
  }
  if (byte == '[' && is_list_key(key_) && !in_list_) {
    in_list_ = list_is_wrapped_ = true;
    state_ = State::kBeforeCall;
    return Step::kTaken;
  }
  if (is_name_key(key_) && !name_ && (byte == '"' || byte == '\'')) {
    start_value(State::kName);
    return push_text(byte, sink);
  }
  const bool key_is_name = syntax_.key_is_name && !name_ && !key_.empty() && byte == '{';
  if (byte == '{' && (is_arguments || key_is_name)) {
    if (key_is_name) name_ = key_;
    has_arguments_ = true;
    start_value(State::kArguments);
    return push_arguments(byte, sink);
  }
  if (is_arguments && (byte == '"' || byte == '\'')) {
    has_arguments_ = true;
    packed_ = JsonReader();
    unpacked_.clear();
    packed_done_ = false;
    start_value(State::kPacked);
    return push_packed(byte, sink);
  }
  if (is_arguments) {
    start_value(State::kNoArguments);
    return push_text(byte, sink);
  }
  // The keys, mostly the first one, show whether JSON is a call.
  if (syntax_.only_known_tools && !is_other_key(key_)) return Step::kFailed;
  start_value(State::kOther);
  return push_text(byte, sink);
}

CallReader::Step JsonCalls::push_text(char byte, CallSink& sink) {
  switch (value_.push(byte, text_)) {
    case JsonReader::Step::kTaken: return Step::kTaken;
    case JsonReader::Step::kDone: return end_text(sink);
    case JsonReader::Step::kDoneBefore: {
      const Step step = end_text(sink);
      return step == Step::kTaken ? push(byte, sink) : step;
    }
    case JsonReader::Step::kFailed: break;
  }
  return Step::kFailed;
}

CallReader::Step JsonCalls::end_text(CallSink& sink) {
  const State ended = state_;
  state_ = State::kAfterValue;
  if (ended == State::kName) {
    std::string name = unquote(text_);
    if (name.empty() || (syntax_.only_known_tools && !tools_.contains(name))) return Step::kFailed;
    name_ = std::move(name);
    text_.clear();
    begin_if_named(sink);
  }
  if (ended == State::kNoArguments) {
    if (text_ != "null" && text_ != "[]") return Step::kFailed;
    has_arguments_ = true;
    unpacked_ = "{}";
    end_arguments(sink, true);
  }
  return Step::kTaken;
}

CallReader::Step JsonCalls::push_arguments(char byte, CallSink& sink) {
  const JsonReader::Step step = value_.push(byte, unpacked_);
  if (step == JsonReader::Step::kFailed) return recover(byte, sink);
  begin_if_named(sink);
  if (step == JsonReader::Step::kDone) {
    end_arguments(sink, true);
    state_ = State::kAfterValue;
  }
  return Step::kTaken;
}

CallReader::Step JsonCalls::push_packed(char byte, CallSink& sink) {
  const JsonReader::Step outer = value_.push(byte, text_);
  if (outer == JsonReader::Step::kFailed) return recover(byte, sink);
  // text_ is an opening quote and the string so far. Decode it unless it ends within an escape.
  const bool is_over = outer == JsonReader::Step::kDone;
  if (!is_over && (text_.size() < 2 || value_.is_within_escape())) return Step::kTaken;
  const std::string said =
      json_unescaped(std::string_view(text_).substr(1, text_.size() - (is_over ? 2 : 1)));
  text_ = "\"";
  for (const char c : said) {
    if (packed_done_) {
      if (is_space(c)) continue;
      return Step::kFailed;
    }
    const bool is_first = unpacked_.empty() && !begun_;
    if (is_first && is_space(c)) continue;
    if (is_first && c != '{') return Step::kFailed;
    const JsonReader::Step inner = packed_.push(c, unpacked_);
    if (inner == JsonReader::Step::kFailed) return Step::kFailed;
    packed_done_ = inner == JsonReader::Step::kDone;
    begin_if_named(sink);
  }
  if (!is_over) return Step::kTaken;
  if (unpacked_.empty() && !begun_) {
    unpacked_ = "{}";
    packed_done_ = true;
  }
  if (!packed_done_) packed_.complete(unpacked_);
  end_arguments(sink, packed_done_);
  state_ = State::kAfterValue;
  return Step::kTaken;
}

CallReader::Step JsonCalls::push_after_value(char byte, CallSink& sink) {
  if (is_space(byte)) return Step::kTaken;
  if (byte == ',') {
    state_ = State::kKeyOrClose;
    return Step::kTaken;
  }
  if (byte == '}') return end_object(sink);
  // The arguments have ended and only brackets are missing: </tool_call> or the next
  // call may follow.
  if (ended_ && closing_.may_start(byte)) {
    state_ = State::kClosing;
    return closing_.push(byte);
  }
  if (ended_ && byte == ']' && in_list_) {
    state_ = State::kClosing;
    return Step::kTaken;
  }
  return Step::kFailed;
}

CallReader::Step JsonCalls::end_object(CallSink& sink) {
  if (n_wrappers_ > 0) {
    --n_wrappers_;
    state_ = State::kAfterValue;
    return Step::kTaken;
  }
  if (!name_) return Step::kFailed;
  if (!ended_) {  // no arguments
    unpacked_ = "{}";
    end_arguments(sink, true);
  }
  sink.settle();
  state_ = State::kAfterCall;
  return Step::kTaken;
}

CallReader::Step JsonCalls::push_after_call(char byte, CallSink& sink) {
  if (is_space(byte)) return Step::kTaken;
  if (byte == '{') {
    state_ = State::kBeforeCall;
    return push_before_call(byte, sink);
  }
  if (after_separator_) return Step::kFailed;
  if (byte == ',' || byte == ';') {
    after_separator_ = true;
    return Step::kTaken;
  }
  state_ = State::kClosing;
  if (byte == ']' && in_list_) {
    sink.settle();
    return Step::kTaken;
  }
  return closing_.push(byte);
}

// The arguments break off here. What was streamed stays. The call is complete only if nothing but
// closing brackets is missing before the text that closes it.
CallReader::Step JsonCalls::recover(char byte, CallSink& sink) {
  if (!is_streaming() || !closing_.may_start(byte)) return Step::kFailed;
  const bool complete = state_ == State::kArguments && value_.lacks_only_brackets();
  (state_ == State::kArguments ? value_ : packed_).complete(unpacked_);
  end_arguments(sink, complete);
  state_ = State::kClosing;
  return closing_.push(byte);
}

void JsonCalls::finish(CallSink& sink) {
  if (!is_streaming()) return;
  if (!arguments_done_) {
    if (state_ == State::kArguments) {
      value_.complete(unpacked_);
    } else if (state_ == State::kPacked && !packed_done_) {
      packed_.complete(unpacked_);
    }
  }
  write_arguments(sink);
  sink.end(false);
  ended_ = true;
}

std::string JsonCalls::untold() const {
  if (state_ == State::kArguments) return value_.unwritten();
  return state_ == State::kPacked ? packed_.unwritten() : "";
}

void JsonCalls::start_value(State state) {
  value_ = JsonReader();
  text_.clear();
  if (state == State::kArguments) unpacked_.clear();
  state_ = state;
}

void JsonCalls::begin_if_named(CallSink& sink) {
  if (!name_ || !has_arguments_ || ended_) return;
  if (!begun_) {
    if (unpacked_.empty()) return;
    sink.begin(*name_);
    begun_ = true;
  }
  write_arguments(sink);
  if (arguments_done_) {
    sink.end(arguments_complete_);
    ended_ = true;
  }
}

void JsonCalls::write_arguments(CallSink& sink) {
  if (!unpacked_.empty()) sink.arguments(unpacked_);
  unpacked_.clear();
}

void JsonCalls::end_arguments(CallSink& sink, bool complete) {
  has_arguments_ = true;
  if (!name_) {  // the name may follow
    arguments_done_ = true;
    arguments_complete_ = complete;
    return;
  }
  if (!begun_) sink.begin(*name_);
  begun_ = true;
  write_arguments(sink);
  sink.end(complete);
  ended_ = true;
}

}  // namespace slipstream
