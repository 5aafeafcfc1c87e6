// CallReader: reads the text after the opening of tool calls, one byte at a time. There is one
// class per syntax (chat_format.h), made by make_call_reader().
//
// A reader reports each call to its CallSink as soon as the name is known, and streams the
// arguments. It ends when the calls end, or fails at the first byte that cannot belong to a call.
// Its owner keeps the bytes that are not part of a reported call and gives them to the client as
// text (output_parser.h). So a reader may fail at any byte and nothing is lost.
//
// Threads: thread-compatible.
// Errors:  a Step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/output/chat_format.h"
#include "server/output/tool_set.h"

namespace slipstream {

// Receives the calls. The arguments between begin() and end(), concatenated, are one JSON object.
class CallSink {
 public:
  virtual ~CallSink() = default;
  virtual void begin(std::string_view name) = 0;
  virtual void arguments(std::string_view text) = 0;
  virtual void end(bool complete) = 0;
  // Everything read so far belongs to calls that have ended.
  virtual void settle() = 0;
};

class CallReader {
 public:
  enum class Step : std::uint8_t {
    kTaken,
    kDone,        // the byte was the last of the calls and their markup
    kDoneBefore,  // the calls ended before this byte, which was not taken
    kFailed,      // the byte cannot follow, and was not taken
  };

  virtual ~CallReader() = default;
  [[nodiscard]] virtual Step push(char byte, CallSink& sink) = 0;
  // The text ended or the reader failed. Ends an open call as incomplete.
  virtual void finish(CallSink& sink) = 0;
  // The text of an open call that was read but not reported yet. If the reader has failed, it
  // becomes text again.
  [[nodiscard]] virtual std::string untold() const = 0;
};

// A reader for the text after `opening`; `first` is its first byte after white space. Returns null
// if no call of the family starts like this.
[[nodiscard]] std::unique_ptr<CallReader> make_call_reader(const CallOpening& opening, char first,
                                                           const ToolSet& tools);

// Reads what follows the last call: white space, then a fixed text (or nothing). Surplus closing
// brackets and a surplus code fence are skipped.
class CallClosing {
 public:
  explicit CallClosing(std::string_view text) : text_(text) {}
  // Whether the byte may begin the text, or a code fence before it.
  [[nodiscard]] bool may_start(char byte) const {
    return !text_.empty() && (byte == text_[0] || byte == '`');
  }
  [[nodiscard]] CallReader::Step push(char byte);

 private:
  std::string_view text_;
  std::size_t n_matched_ = 0;
};

}  // namespace slipstream
