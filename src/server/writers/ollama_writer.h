// OllamaWriter: the answer to POST /api/chat and POST /api/generate, as Ollama's clients read it.
//
// A stream is lines of JSON, each with what is new; the last has "done": true, the reason and the
// counts. A whole answer is that last line with all of the text. A call is written when it is
// complete.
//
// Threads: as TurnWriter. Errors: none.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/json.h"
#include "server/output/chat_answer.h"
#include "server/turn/turn_writer.h"

namespace slipstream {

enum class OllamaForm {
  kChat,      // "message": {"role", "content", "thinking", "tool_calls"}
  kGenerate,  // "response", "thinking"
};

// The answer to a request that generates nothing. why: "load" or "unload".
[[nodiscard]] std::string ollama_done(const std::string& model, OllamaForm form,
                                      std::string_view why);
// "2026-11-19T20:50:35.120450000Z"
[[nodiscard]] std::string ollama_time(std::chrono::system_clock::time_point time);

class OllamaWriter final : public TurnWriter {
 public:
  OllamaWriter(std::string model, OllamaForm form) : model_(std::move(model)), form_(form) {}

  HttpReply head() const override;
  std::string begin() override { return {}; }
  std::string write(TurnStep step) override;
  std::string ping() override;
  std::string write(const ApiError& error) override;
  std::string end(const Usage& usage) override;

  void collect(TurnStep step) override;
  std::string whole(const Usage& usage) override;

 private:
  [[nodiscard]] std::string write(const ChatDelta& delta);
  [[nodiscard]] std::string line(const Json& said) const;
  [[nodiscard]] Json last_line(const Json& said, const Usage& usage) const;

  const std::string model_;
  const OllamaForm form_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  ChatAnswer answer_;  // all of it if it is not streamed, else the call that is open
  std::optional<TurnEnd> end_;
  bool has_failed_ = false;
};

}  // namespace slipstream
