// XmlCalls: calls whose parameters are elements: <function=f><parameter=city>Paris</parameter>...
//
// Values are untyped text. A value that is a string by the tool's schema is streamed as a string.
// Any other value is read to its end and becomes the JSON that it spells. If the schema does not
// say, a value that is valid JSON becomes that JSON, and any other value a string. This is the
// inverse of how templates write past calls.
//
// Threads: thread-compatible.
// Errors:  a Step.
#pragma once

#include <optional>
#include <string>

#include "server/output/calls/call_reader.h"

namespace slipstream {

class XmlCalls : public CallReader {
 public:
  // If `inside_call`, syntax.call_open has been read already.
  XmlCalls(const XmlSyntax& syntax, bool inside_call, const ToolSet& tools)
      : syntax_(syntax), tools_(tools), state_(inside_call ? State::kName : State::kBeforeCall) {}

  [[nodiscard]] Step push(char byte, CallSink& sink) override;
  void finish(CallSink& sink) override;
  [[nodiscard]] std::string untold() const override;

 private:
  enum class State {
    kBeforeCall,
    kName,
    kInCall,  // before a key or the end of the call
    kKey,
    kBeforeValue,
    kValue,
    kAfterCall,  // before another call or the end of the section
  };

  Step push_markup(char byte, CallSink& sink);
  Step take_markup(std::string_view text, CallSink& sink);
  [[nodiscard]] bool is_expected(std::string_view text) const;
  Step push_name(char byte, CallSink& sink);
  Step push_key(char byte);
  Step push_value(char byte, CallSink& sink);
  void start_value();
  void take_value_bytes(std::string_view bytes, CallSink& sink);
  void begin_text(CallSink& sink);
  void end_value(CallSink& sink);
  [[nodiscard]] bool is_text_by_schema() const { return type_ == ParameterType::kText; }

  const XmlSyntax& syntax_;
  const ToolSet& tools_;
  State state_;
  std::string token_;  // markup, name or key so far; in a value, its possible end
  std::string name_;
  std::string key_;
  int n_keys_ = 0;
  ParameterType type_ = ParameterType::kUnknown;
  std::string value_;          // the part that was not streamed
  bool is_streaming_ = false;  // as a string
  bool is_first_byte_ = false;
};

}  // namespace slipstream
