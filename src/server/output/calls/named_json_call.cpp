#include "server/output/calls/named_json_call.h"

#include "server/ascii.h"
#include "server/output/output_limits.h"

namespace slipstream {
namespace {

bool is_in_name(char byte) {
  return !is_space(byte) && !std::string_view("<>[]{}()\"'`,").contains(byte);
}

// Kimi numbers its calls: "get_weather:0".
std::string_view without_number(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && is_digit(name[end - 1])) --end;
  const bool is_numbered = end > 1 && end < name.size() && name[end - 1] == ':';
  return is_numbered ? name.substr(0, end - 1) : name;
}

}  // namespace

CallReader::Step NamedJsonCall::push(char byte, CallSink& sink) {
  switch (state_) {
    case State::kHeader: return push_header(byte, sink);
    case State::kArguments: return push_arguments(byte, sink);
    case State::kClosing: return closing_.push(byte);
  }
  return Step::kFailed;
}

CallReader::Step NamedJsonCall::push_header(char byte, CallSink& sink) {
  if (byte != '{') {
    if (header_.size() >= kOutputLimits.call_header_bytes_max) return Step::kFailed;
    header_ += byte;
    if (syntax_.close.empty() || !header_.ends_with(syntax_.close)) return Step::kTaken;
    // The call is closed before any arguments.
    header_.resize(header_.size() - syntax_.close.size());
    const std::string name = name_in_header();
    if (name.empty()) return Step::kFailed;
    sink.begin(name);
    sink.arguments("{}");
    sink.end(true);
    return Step::kDone;
  }
  const std::string name = name_in_header();
  if (name.empty()) return Step::kFailed;
  sink.begin(name);
  state_ = State::kArguments;
  return push_arguments(byte, sink);
}

CallReader::Step NamedJsonCall::push_arguments(char byte, CallSink& sink) {
  switch (arguments_.push(byte, text_)) {
    case JsonReader::Step::kTaken:
      if (!text_.empty()) sink.arguments(text_);
      text_.clear();
      return Step::kTaken;
    case JsonReader::Step::kDone:
      end(sink, true);
      return syntax_.close.empty() ? Step::kDone : Step::kTaken;
    default:
      if (!closing_.may_start(byte)) return Step::kFailed;
      const bool complete = arguments_.lacks_only_brackets();
      arguments_.complete(text_);
      end(sink, complete);
      return closing_.push(byte);
  }
}

void NamedJsonCall::end(CallSink& sink, bool complete) {
  if (!text_.empty()) sink.arguments(text_);
  text_.clear();
  sink.end(complete);
  state_ = State::kClosing;
}

void NamedJsonCall::finish(CallSink& sink) {
  if (state_ != State::kArguments) return;
  arguments_.complete(text_);
  end(sink, false);
}

// The name, or "" if the header is not valid.
std::string NamedJsonCall::name_in_header() const {
  std::string_view header = header_;
  if (!syntax_.name_after.empty()) {
    const std::size_t start = header.find(syntax_.name_after);
    if (start != header.npos) header.remove_prefix(start + syntax_.name_after.size());
  }
  header = trim(header);
  if (header.starts_with(syntax_.name_prefix)) header.remove_prefix(syntax_.name_prefix.size());
  std::size_t n_name = 0;
  while (n_name < header.size() && is_in_name(header[n_name])) ++n_name;
  const std::string_view rest = trim(header.substr(n_name));
  bool is_header = rest.empty() || rest == "```json" || rest == "```";
  for (const std::string_view text : syntax_.after_name) {
    is_header = is_header || (!text.empty() && rest.starts_with(text));
  }
  if (!is_header) return "";
  return std::string(without_number(header.substr(0, n_name)));
}

}  // namespace slipstream
