// MessagesWriter: the answer to POST /v1/messages, as Anthropic's clients read it.
//
//   message_start, for each block content_block_start, content_block_delta..., content_block_stop,
//   then message_delta (stop reason and usage) and message_stop. A ping may come at any place.
//
// Blocks are thinking, text and tool_use, in the order in which the model writes them. One is open
// at a time. Thinking ends with a signature, which clients send back unchanged.
//
// Threads: as TurnWriter. Errors: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server/json.h"
#include "server/turn/turn_writer.h"

namespace slipstream {

class MessagesWriter final : public TurnWriter {
 public:
  struct Options {
    std::string model;
    std::size_t n_prompt;      // tokens of the prompt, for message_start
    bool wants_cache = false;  // computed tokens count as written to the cache
  };
  explicit MessagesWriter(Options options);

  std::string begin() override;
  std::string write(TurnStep step) override;
  std::string ping() override;
  std::string write(const ApiError& error) override;
  std::string end(const Usage& usage) override;

  void collect(TurnStep step) override;
  std::string whole(const Usage& usage) override;

 private:
  using Kind = ChatDelta::Kind;

  [[nodiscard]] std::string write(const ChatDelta& delta);
  [[nodiscard]] std::string open(Kind kind, Json block);
  [[nodiscard]] std::string close();
  // Written as text, without building JSON: there is one of these for each token.
  [[nodiscard]] std::string delta_event(std::string_view type, std::string_view field,
                                        const std::string& text) const;
  void add(const ChatDelta& delta);
  void finish_block();
  [[nodiscard]] Json message(Json content, Json stop_reason, Json usage) const;
  [[nodiscard]] Json usage_json(const Usage& usage) const;
  [[nodiscard]] Json stop_reason() const;
  [[nodiscard]] Json stop_sequence() const;

  const Options options_;
  const std::string id_;
  std::optional<Kind> block_;  // the kind of delta that opened the open block; none: no open block
  std::size_t n_blocks_ = 0;   // number of blocks opened so far
  std::optional<TurnEnd> end_;
  bool has_failed_ = false;
  // Only for an answer that is not streamed.
  Json content_ = Json::array();
  std::string text_;  // the text of the open block, or the arguments of its call
};

}  // namespace slipstream
