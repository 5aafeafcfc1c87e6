// CallReader: reads what follows the opening of tool calls, one byte at a time. One class per
// syntax (chat_format.h), made by make_call_reader().
//
// A reader tells its CallSink of each call as soon as the name is known, and streams the arguments.
// It ends when the calls do, or fails at the byte that cannot belong to one. Its owner keeps the
// bytes that no call has accounted for and gives them to the client as text (output_parser.h), so a
// reader may fail at any byte and nothing is lost.
//
// Threads: thread-compatible. Errors: a Step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/output/chat_format.h"
#include "server/output/tool_set.h"

namespace slipstream {

// Where calls go. Between begin() and end() the concatenated arguments become one JSON object.
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
    kDoneBefore,  // they ended before this byte, which was not taken
    kFailed,      // the byte cannot follow, and was not taken
  };

  virtual ~CallReader() = default;
  [[nodiscard]] virtual Step push(char byte, CallSink& sink) = 0;
  // The text ended, or the reader failed: a call that has begun is ended, incomplete.
  virtual void finish(CallSink& sink) = 0;
  // Of a call that has begun, what was read and not told yet. Text again, if the reader has failed.
  [[nodiscard]] virtual std::string untold() const = 0;
};

// A reader for what follows `opening`, whose first byte after white space is `first`; nothing if no
// call of the family starts like this.
[[nodiscard]] std::unique_ptr<CallReader> make_call_reader(const CallOpening& opening, char first,
                                                           const ToolSet& tools);

// After the last call: white space, then a fixed text (or nothing). Brackets and a code fence that
// a model closes once too often are taken too.
class CallClosing {
 public:
  explicit CallClosing(std::string_view text) : text_(text) {}
  // Whether the byte could be the start of the text, or of the fence before it.
  [[nodiscard]] bool may_start(char byte) const {
    return !text_.empty() && (byte == text_[0] || byte == '`');
  }
  [[nodiscard]] CallReader::Step push(char byte);

 private:
  std::string_view text_;
  std::size_t n_matched_ = 0;
};

}  // namespace slipstream
