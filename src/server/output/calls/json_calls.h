// JsonCalls: calls as JSON objects, a single one or a list: {"name": "f", "arguments": {...}}.
//
// The name may be under "name", "tool_name" or "function", the arguments under "arguments",
// "parameters" or "args". Both may be nested in "function" or in a list "tool_calls". Arguments
// given as a string of JSON are unpacked. Arguments before the name are held back; the owner
// limits how much.
//
// Threads: thread-compatible.
// Errors:  a Step.
#pragma once

#include <optional>
#include <string>

#include "server/output/calls/call_reader.h"

namespace slipstream {

class JsonCalls : public CallReader {
 public:
  JsonCalls(const JsonCallsSyntax& syntax, const ToolSet& tools)
      : syntax_(syntax), tools_(tools), closing_(syntax.close) {}

  [[nodiscard]] Step push(char byte, CallSink& sink) override;
  void finish(CallSink& sink) override;
  [[nodiscard]] std::string untold() const override;

 private:
  enum class State {
    kBeforeCall,
    kKeyOrClose,
    kKey,
    kColon,
    kValue,  // before the first byte of a value
    kName,
    kArguments,    // an object
    kPacked,       // an object within a string
    kNoArguments,  // null, "" or [], all of which mean {}
    kOther,
    kAfterValue,
    kAfterCall,
    kClosing,
  };

  Step push_before_call(char byte, CallSink& sink);
  Step push_key_or_close(char byte, CallSink& sink);
  Step push_key(char byte);
  Step push_value(char byte, CallSink& sink);
  Step push_text(char byte, CallSink& sink);  // for kName, kNoArguments and kOther
  Step push_arguments(char byte, CallSink& sink);
  Step push_packed(char byte, CallSink& sink);
  Step push_after_value(char byte, CallSink& sink);
  Step push_after_call(char byte, CallSink& sink);

  void start_value(State state);
  Step end_text(CallSink& sink);
  void write_arguments(CallSink& sink);
  void begin_if_named(CallSink& sink);
  void end_arguments(CallSink& sink, bool complete);
  Step end_object(CallSink& sink);
  Step recover(char byte, CallSink& sink);
  [[nodiscard]] bool is_streaming() const { return begun_ && !ended_; }

  const JsonCallsSyntax& syntax_;
  const ToolSet& tools_;
  CallClosing closing_;
  State state_ = State::kBeforeCall;
  bool in_list_ = false;
  bool list_is_wrapped_ = false;  // the list is in {"tool_calls": [...]}, which is still open
  bool after_separator_ = false;
  int n_wrappers_ = 0;  // open objects around the one with the name
  std::string key_;
  JsonReader value_;
  std::string text_;  // written by value_ and not consumed yet
  // For arguments in a string: value_ reads the string, packed_ reads its unescaped text.
  JsonReader packed_;
  std::string unpacked_;
  bool packed_done_ = false;
  std::optional<std::string> name_;
  bool has_arguments_ = false;
  bool arguments_done_ = false;
  bool arguments_complete_ = true;  // once they are done: the model finished writing them
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace slipstream
