#include "server/output/calls/xml_calls.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/ascii.h"
#include "server/output/output_limits.h"

namespace slipstream {
namespace {

constexpr std::string_view kCdataOpen = "<![CDATA[";
constexpr std::string_view kCdataClose = "]]>";

// Reduces `city" string="true` to city.
std::string before_quote(std::string_view text) {
  return std::string(text.substr(0, text.find('"')));
}

bool is_tool_name(std::string_view name) {
  if (name.empty()) return false;
  for (const char byte : name) {
    if (is_space(byte) || std::string_view("<>{}[]\"'`=").contains(byte)) return false;
  }
  return true;
}

}  // namespace

CallReader::Step XmlCalls::push(char byte, CallSink& sink) {
  switch (state_) {
    case State::kBeforeCall:
    case State::kInCall:
    case State::kBeforeValue:
    case State::kAfterCall: return push_markup(byte, sink);
    case State::kName: return push_name(byte, sink);
    case State::kKey: return push_key(byte);
    case State::kValue: return push_value(byte, sink);
  }
  return Step::kFailed;
}

bool XmlCalls::is_expected(std::string_view text) const {
  switch (state_) {
    case State::kBeforeCall: return text == syntax_.call_open;
    case State::kInCall:
      return text == syntax_.key_open || text == syntax_.call_close ||
             text == syntax_.section_close;  // the end of the call itself is missing
    case State::kBeforeValue: return text == syntax_.value_open;
    case State::kAfterCall: return text == syntax_.call_open || text == syntax_.section_close;
    default: return false;
  }
}

CallReader::Step XmlCalls::push_markup(char byte, CallSink& sink) {
  if (token_.empty() && is_space(byte)) return Step::kTaken;
  token_ += byte;
  bool may_follow = false;
  for (const std::string_view text :
       std::array{syntax_.call_open, syntax_.key_open, syntax_.call_close, syntax_.value_open,
                  syntax_.section_close}) {
    if (text.empty() || !is_expected(text) || !text.starts_with(token_)) continue;
    if (text.size() == token_.size()) return take_markup(text, sink);
    may_follow = true;
  }
  if (may_follow) return Step::kTaken;
  const bool nothing_read = token_.size() == 1;
  token_.pop_back();  // the byte is not taken
  return state_ == State::kAfterCall && nothing_read && syntax_.section_close.empty()
             ? Step::kDoneBefore
             : Step::kFailed;
}

CallReader::Step XmlCalls::take_markup(std::string_view text, CallSink& sink) {
  token_.clear();
  switch (state_) {
    case State::kBeforeCall: state_ = State::kName; return Step::kTaken;
    case State::kBeforeValue: start_value(); return Step::kTaken;
    case State::kInCall:
      if (text == syntax_.key_open) {
        state_ = State::kKey;
        return Step::kTaken;
      }
      sink.arguments("}");
      sink.end(true);
      state_ = State::kAfterCall;
      return text == syntax_.section_close ? Step::kDone : Step::kTaken;
    default:
      if (text == syntax_.section_close) return Step::kDone;
      state_ = State::kName;
      return Step::kTaken;
  }
}

CallReader::Step XmlCalls::push_name(char byte, CallSink& sink) {
  const bool ends_at_markup = syntax_.name_ends_at_markup && byte == '<';
  if (token_.size() >= kOutputLimits.call_header_bytes_max) return Step::kFailed;
  if (!ends_at_markup) token_ += byte;
  if (syntax_.name_ends_at_markup && trim(token_).empty()) return Step::kTaken;
  if (!ends_at_markup && !token_.ends_with(syntax_.name_close)) return Step::kTaken;
  if (!ends_at_markup) token_.resize(token_.size() - syntax_.name_close.size());
  name_ = before_quote(trim(token_));
  if (!is_tool_name(name_)) return Step::kFailed;
  token_.clear();
  n_keys_ = 0;
  sink.begin(name_);
  sink.arguments("{");
  state_ = State::kInCall;
  return ends_at_markup ? push_markup(byte, sink) : Step::kTaken;
}

CallReader::Step XmlCalls::push_key(char byte) {
  if (token_.size() >= kOutputLimits.call_header_bytes_max) return Step::kFailed;
  token_ += byte;
  if (!token_.ends_with(syntax_.key_close)) return Step::kTaken;
  token_.resize(token_.size() - syntax_.key_close.size());
  key_ = before_quote(trim(token_));
  type_ = tools_.type_of(name_, key_);
  if (token_.contains("string=\"true\"")) type_ = ParameterType::kText;
  if (token_.contains("string=\"false\"")) type_ = ParameterType::kNotText;
  token_.clear();
  if (syntax_.value_open.empty()) {
    start_value();
  } else {
    state_ = State::kBeforeValue;
  }
  return Step::kTaken;
}

void XmlCalls::start_value() {
  state_ = State::kValue;
  token_.clear();
  value_.clear();
  is_streaming_ = false;
  is_first_byte_ = true;
}

// token_ holds back a line feed that may be the last byte of the value, and a possible closing tag.
CallReader::Step XmlCalls::push_value(char byte, CallSink& sink) {
  const bool is_first = is_first_byte_;
  is_first_byte_ = false;
  if (is_first && syntax_.value_on_own_lines && byte == '\n') return Step::kTaken;
  token_ += byte;
  const auto may_end = [this](std::string_view held) {
    if (syntax_.value_on_own_lines && held.starts_with('\n')) held.remove_prefix(1);
    return syntax_.value_close.starts_with(held);
  };
  std::size_t n_certain = 0;
  while (n_certain < token_.size() && !may_end(std::string_view(token_).substr(n_certain))) {
    ++n_certain;
  }
  const std::string certain = token_.substr(0, n_certain);
  token_.erase(0, n_certain);
  if (!certain.empty()) take_value_bytes(certain, sink);
  if (!token_.ends_with(syntax_.value_close)) return Step::kTaken;
  token_.clear();
  end_value(sink);
  state_ = State::kInCall;
  return Step::kTaken;
}

void XmlCalls::take_value_bytes(std::string_view bytes, CallSink& sink) {
  const bool may_stream = is_text_by_schema() && !syntax_.may_be_cdata;
  if (!is_streaming_ && !may_stream &&
      value_.size() + bytes.size() <= kOutputLimits.call_held_bytes_max) {
    value_ += bytes;
    return;
  }
  if (!is_streaming_) begin_text(sink);
  std::string text;
  append_json_escaped(bytes, text);
  sink.arguments(text);
}

void XmlCalls::begin_text(CallSink& sink) {
  std::string text = n_keys_++ > 0 ? ", " : "";
  append_json_string(key_, text);
  text += ": \"";
  append_json_escaped(value_, text);
  sink.arguments(text);
  value_.clear();
  is_streaming_ = true;
}

void XmlCalls::end_value(CallSink& sink) {
  if (is_streaming_) {
    sink.arguments("\"");
    return;
  }
  std::string_view value = value_;
  if (syntax_.may_be_cdata && value.starts_with(kCdataOpen) && value.ends_with(kCdataClose)) {
    value.remove_prefix(kCdataOpen.size());
    value.remove_suffix(kCdataClose.size());
  }
  std::string text = n_keys_++ > 0 ? ", " : "";
  append_json_string(key_, text);
  text += ": ";
  const bool is_json = type_ == ParameterType::kNotText ? append_json_value(trim(value), text)
                                                        : type_ == ParameterType::kUnknown &&
                                                              nlohmann::json::accept(trim(value)) &&
                                                              append_json_value(trim(value), text);
  if (!is_json) append_json_string(value, text);
  sink.arguments(text);
}

std::string XmlCalls::untold() const {
  if (state_ == State::kKey) return std::string(syntax_.key_open) + token_;
  if (state_ != State::kBeforeValue) return token_;
  return std::string(syntax_.key_open) + key_ + std::string(syntax_.key_close) + token_;
}

void XmlCalls::finish(CallSink& sink) {
  if (state_ == State::kBeforeCall || state_ == State::kName || state_ == State::kAfterCall) return;
  if (state_ == State::kValue) {
    const std::string held = std::exchange(token_, {});
    if (!syntax_.value_close.starts_with(trim(held))) take_value_bytes(held, sink);
    end_value(sink);
  }
  sink.arguments("}");
  sink.end(false);
  state_ = State::kAfterCall;
}

}  // namespace slipstream
