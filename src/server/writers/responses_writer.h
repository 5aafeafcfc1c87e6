// ResponsesWriter: the answer to POST /v1/responses.
//
// A stream has an event for each change. OpenAI's client builds the response from the events and
// fails if one is missing or out of order. The last event contains the whole response, which is
// also the body of an answer that is not streamed.
//
// Threads: as TurnWriter. Errors: none.
#pragma once

#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/turn/turn_writer.h"
#include "server/writers/response_output.h"

namespace slipstream {

class ResponsesWriter final : public TurnWriter {
 public:
  struct Options {
    std::string model;
    std::string echo = {};                           // ResponsesRequest::echo
    std::map<std::string, std::string> spaces = {};  // ResponseTools::spaces
  };
  explicit ResponsesWriter(Options options);

  // OpenAI's client requires response.created before all other events. The fields that echo the
  // request follow when the model is loaded.
  std::string begin_early() override;
  StreamStart start() const override;
  void go_on_from(const StreamStart& start) override;
  std::string begin() override;
  std::string write(TurnStep step) override;
  // Sends the whole response so far: OpenAI's client replaces its own state by it.
  std::string ping() override;
  std::string write(const ApiError& error) override;
  std::string end(const Usage& usage) override;
  void collect(TurnStep step) override;
  std::string whole(const Usage& usage) override;

  [[nodiscard]] const std::string& id() const { return id_; }
  // The complete response, after end() or whole(); empty if it failed.
  [[nodiscard]] const std::string& response() const { return response_; }

 private:
  void take(const TurnStep& step);
  void take(const ChatDelta& delta);
  void close_item(bool is_complete);

  // These append to events_. They do nothing if the answer is not streamed.
  void announce_item();
  // Written as text, without building JSON: there is one of these for each token.
  void announce_text(const std::string& text);
  void announce_end_of_item();
  void announce_citations(std::span<const Citation> citations);
  // fields: those of the event besides its type and number.
  void emit(std::string_view type, const Json& fields);
  void emit_response(std::string_view type, const std::string& response);

  [[nodiscard]] std::string to_text(std::string_view status, const Json& usage,
                                    const Json& error) const;
  [[nodiscard]] std::string finished(const Usage& usage);
  [[nodiscard]] bool was_cut_short() const {
    return ending_ && ending_->reason == TurnEnd::Reason::kLength;
  }

  const Options options_;
  std::string id_;
  std::time_t created_;
  ResponseOutput output_;
  std::optional<TurnEnd> ending_;
  bool streams_ = false;
  bool has_failed_ = false;
  int n_events_ = 0;
  std::string events_;
  std::string response_;
};

}  // namespace slipstream
