// PythonCalls: calls in Python syntax, one call, several lines or a list: [f(city="Paris", n=3)].
//
// Only keyword arguments are read: without the tool's signature, a position has no name. Values are
// literals, read as JSON with Python's words and quotes (json_reader.h).
//
// Threads: thread-compatible.
// Errors:  a Step.
#pragma once

#include <string>

#include "server/output/calls/call_reader.h"

namespace slipstream {

class PythonCalls : public CallReader {
 public:
  explicit PythonCalls(const PythonSyntax& syntax) : syntax_(syntax), closing_(syntax.close) {}

  [[nodiscard]] Step push(char byte, CallSink& sink) override;
  void finish(CallSink& sink) override;
  [[nodiscard]] std::string untold() const override;

 private:
  enum class State {
    kBeforeCall,
    kName,
    kKeyOrClose,
    kKey,
    kValue,
    kAfterValue,
    kAfterCall,
    kClosing
  };

  Step push_before_call(char byte);
  Step push_name(char byte);
  Step push_key(char byte, CallSink& sink);
  Step push_value(char byte, CallSink& sink);
  Step push_after_value(char byte, CallSink& sink);
  Step push_after_call(char byte, CallSink& sink);
  void begin_if_needed(CallSink& sink);
  Step end_call(CallSink& sink);

  const PythonSyntax& syntax_;
  CallClosing closing_;
  State state_ = State::kBeforeCall;
  bool in_list_ = false;
  bool begun_ = false;
  bool has_keys_ = false;
  std::string name_;
  std::string key_;
  JsonReader value_;
  std::string text_;
};

}  // namespace slipstream
