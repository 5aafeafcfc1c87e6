// ResponsesWriter: the answer to POST /v1/responses.
//
// A stream has an event for everything that changes, each numbered and with its name as `type` and
// on a line of its own; OpenAI's client builds the response from them and insists on their order.
// Its last event has the whole response, as the answer that is not streamed is.
//
// Threads: as of TurnWriter. Errors: none.
#pragma once

#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "server/turn/turn_writer.h"
#include "server/writers/response_output.h"

namespace slipstream {

class ResponsesWriter final : public TurnWriter {
 public:
  struct Options {
    std::string model;
    std::string echo = {};                           // as of ResponsesRequest
    std::map<std::string, std::string> spaces = {};  // as of ResponseTools
  };
  explicit ResponsesWriter(Options options);

  std::string begin() override;
  std::string write(TurnStep step) override;
  // The response as it is now: clients take it as what they are to go on with.
  std::string ping() override;
  std::string write(const ApiError& error) override;
  std::string end(const Usage& usage) override;
  void collect(TurnStep step) override;
  std::string whole(const Usage& usage) override;

  [[nodiscard]] const std::string& id() const { return id_; }
  // The response to the end; after end() or whole(). Empty: it failed.
  [[nodiscard]] const std::string& response() const { return response_; }

 private:
  void take(const TurnStep& step);
  void take(const ChatDelta& delta);
  void close_item(bool is_complete);

  // Into events_, of a stream only.
  void announce_item();
  void announce_text(const std::string& text);
  void announce_end_of_item();
  // The event's own fields behind type and number.
  void emit(std::string_view type, Json fields);
  void emit_response(std::string_view type, const std::string& response);

  [[nodiscard]] std::string to_text(std::string_view status, const Json& usage,
                                    const Json& error) const;
  [[nodiscard]] std::string finished(const Usage& usage);
  [[nodiscard]] bool was_cut_short() const {
    return ending_ && ending_->reason == TurnEnd::Reason::kLength;
  }

  const Options options_;
  const std::string id_;
  const std::time_t created_;
  ResponseOutput output_;
  std::optional<TurnEnd> ending_;
  bool streams_ = false;
  bool has_failed_ = false;
  int n_events_ = 0;
  std::string events_;
  std::string response_;
};

}  // namespace slipstream
