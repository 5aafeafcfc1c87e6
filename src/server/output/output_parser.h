// OutputParser: turns what a model writes into reasoning, content and tool calls, as it is written.
//
// How the text is cut into pieces makes no difference to the concatenated deltas. Markup does not
// reach the client; only what may be the start of markup is held back. What looks like a call and
// is none is content, as it was written; a call that breaks off is ended and what follows is
// content. White space next to markup belongs to the markup. Memory is bounded (limits.h) and time
// linear, whatever the model writes. docs/tool-calling.md says what is recognised and what is
// repaired.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/output/calls/call_reader.h"
#include "server/output/chat_delta.h"
#include "server/output/chat_format.h"
#include "server/output/content_text.h"
#include "server/output/marker_scanner.h"
#include "server/output/tool_set.h"

namespace slipstream {

class OutputParser {
 public:
  struct Options {
    ChatFormat format;
    ToolSet tools = {};                // without tools, text that looks like a call is text
    bool starts_in_reasoning = false;  // opens_reasoning() of the prompt
    bool ends_with_call = false;       // what follows the first call is not told
  };

  explicit OutputParser(Options options);
  ~OutputParser();
  OutputParser(const OutputParser&) = delete;  // readers refer to the parser's tools
  OutputParser& operator=(const OutputParser&) = delete;

  // More of what the model wrote.
  [[nodiscard]] ChatDeltas push(std::string_view piece);
  // It has ended: what was held back.
  [[nodiscard]] ChatDeltas finish();
  // Nothing will be told any more: the only call has ended.
  [[nodiscard]] bool is_over() const { return is_over_; }

 private:
  class Calls;  // the CallSink
  enum class State { kContent, kReasoning, kHeader, kOpened, kCall };
  enum class Role { kOpening, kSilent, kReasoningOpen, kReasoningClose, kHeader };
  struct Marker {
    std::string_view text;
    Role role;
    const CallOpening* opening = nullptr;
  };

  static std::vector<Marker> content_markers(const Options& options);
  static std::vector<Marker> reasoning_markers(const Options& options);
  static MarkerScanner scanner_of(const std::vector<Marker>& markers);

  [[nodiscard]] ChatDeltas take_deltas();
  void push_byte(char byte);
  void push_content(char byte);
  void push_reasoning(char byte);
  void push_header(char byte);
  void push_opened(char byte);
  void push_call(char byte);
  void take_marker(const Marker& marker);
  void take_reasoning_marker(const Marker& marker);
  void take_header();
  void start_bare(char byte);
  void start_reasoning();
  void start_content();
  void start_opening(const CallOpening& opening);
  void give_back_call();
  [[nodiscard]] bool is_meant(const Marker& marker) const;

  const Options options_;
  const ToolCallFormat& format_;
  const std::vector<Marker> content_markers_;
  const std::vector<Marker> reasoning_markers_;
  MarkerScanner content_scanner_;
  MarkerScanner reasoning_scanner_;
  ChatDeltas deltas_;
  ContentText content_;
  ContentText reasoning_;
  std::unique_ptr<Calls> calls_;
  State state_ = State::kContent;
  bool is_over_ = false;
  std::string header_;  // of harmony's message
  const CallOpening* opening_ = nullptr;
  std::unique_ptr<CallReader> reader_;
  std::string held_;  // of a call that may be none: everything that no delta tells
};

}  // namespace slipstream
