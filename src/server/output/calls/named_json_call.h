// NamedJsonCall: one call as a name and a JSON object, with fixed texts around both:
// get_weather[ARGS]{"city": "Paris"}.
//
// Everything before the first '{' is the header. NamedJsonSyntax says where the name is in it.
//
// Threads: thread-compatible.
// Errors:  a Step.
#pragma once

#include <string>

#include "server/output/calls/call_reader.h"

namespace slipstream {

class NamedJsonCall : public CallReader {
 public:
  explicit NamedJsonCall(const NamedJsonSyntax& syntax)
      : syntax_(syntax), arguments_(syntax.quotes), closing_(syntax.close) {}
  // For a known name, directly followed by the object.
  NamedJsonCall(const NamedJsonSyntax& syntax, std::string_view name) : NamedJsonCall(syntax) {
    header_ = name;
  }

  [[nodiscard]] Step push(char byte, CallSink& sink) override;
  void finish(CallSink& sink) override;
  [[nodiscard]] std::string untold() const override { return arguments_.unwritten(); }

 private:
  enum class State { kHeader, kArguments, kClosing };

  Step push_header(char byte, CallSink& sink);
  Step push_arguments(char byte, CallSink& sink);
  [[nodiscard]] std::string name_in_header() const;
  void end(CallSink& sink, bool complete);

  const NamedJsonSyntax& syntax_;
  State state_ = State::kHeader;
  std::string header_;
  JsonReader arguments_;
  std::string text_;
  CallClosing closing_;
};

}  // namespace slipstream
