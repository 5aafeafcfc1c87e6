// OutputParser: turns a model's output into reasoning, content and tool calls while it is written.
//
// The concatenated deltas do not depend on how the text is cut into pieces. Markup does not reach
// the client, and only text that may begin markup is held back. Text that only looks like a call is
// content, as written. A call that breaks off is ended, and what follows is content. White space
// next to markup belongs to the markup. Memory is bounded (output_limits.h) and time is linear for
// any output. docs/tool-calling.md says what is recognised and repaired.
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
    ToolSet tools = {};                // if empty, text that looks like a call is content
    bool starts_in_reasoning = false;  // opens_reasoning() of the prompt
    bool ends_with_call = false;       // nothing is reported after the first call
  };

  explicit OutputParser(Options options);
  ~OutputParser();
  OutputParser(const OutputParser&) = delete;  // readers refer to the parser's tools
  OutputParser& operator=(const OutputParser&) = delete;

  // Takes more of the model's output.
  [[nodiscard]] ChatDeltas push(std::string_view piece);
  // The output has ended. Returns what was held back.
  [[nodiscard]] ChatDeltas finish();
  // Whether nothing more will be reported, because the only call has ended.
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
  std::string header_;  // the header of harmony's message so far
  const CallOpening* opening_ = nullptr;
  std::unique_ptr<CallReader> reader_;
  std::string held_;  // text of a possible call that no delta contains yet
};

}  // namespace slipstream
