// ChatClient: asks any server that speaks OpenAI's API for chat completions, and gives out the
// answer as it comes. libcurl does HTTP and TLS; the connection is kept for the next question.
//
// Threads: thread-compatible.
// Errors:  kOverloaded where the server is not reached, kInvalidArgument for what it refuses, in
//          its own words; kNotFound where it has no model.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipstream::chat {

using Json = nlohmann::ordered_json;

struct Piece {
  enum class Kind { kReasoning, kContent, kCall };
  Kind kind;
  std::string text;
};

struct Answer {
  std::string content;
  std::string finish_reason;  // "stop", "length", ...
  std::string notice;
  bool is_stopped = false;  // by who asked
  // 0: the server did not count.
  int n_prompt = 0;
  int n_cached = 0;
  int n_generated = 0;
  double first_token_s = 0;
  double seconds = 0;
  bool is_streamed = false;  // came in more than one piece
};
// Nothing where it cannot be told.
[[nodiscard]] std::optional<double> tokens_per_second(const Answer& answer);

struct ServerModel {
  std::string name;
  bool is_ours = false;  // of a slipstream, which says more about itself
  int n_context = 0;     // 0: not known
};

struct KvUse {
  std::string scheme;
  double used_bytes = 0;  // by this conversation
  double all_bytes = 0;
};
// Of n_tokens of a model, out of what /metrics says. The server's own count of what is in use is of
// no help: when an answer has ended, all of it could go.
[[nodiscard]] std::optional<KvUse> find_kv_use(std::string_view metrics, const ServerModel& model,
                                               int n_tokens);

class ChatClient {
 public:
  // url: "host:8080", "http://host:8080" and ".../v1" are the same.
  ChatClient(const std::string& url, const std::string& api_key);
  ~ChatClient();
  ChatClient(const ChatClient&) = delete;
  ChatClient& operator=(const ChatClient&) = delete;

  // name empty: the first.
  [[nodiscard]] Result<ServerModel> find_model(const std::string& name);
  // is_stopped is asked several times a second.
  [[nodiscard]] Result<Answer> ask(Json request, const std::function<void(const Piece&)>& on_piece,
                                   const std::function<bool()>& is_stopped);
  [[nodiscard]] std::optional<KvUse> kv_use(const ServerModel& model, int n_tokens);

 private:
  struct Handles;
  [[nodiscard]] Result<std::string> get(const std::string& url);

  const std::string url_;  // up to and with /v1
  const std::unique_ptr<Handles> handles_;
};

}  // namespace slipstream::chat
