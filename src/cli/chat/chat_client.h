// ChatClient: asks any server with OpenAI's API for chat completions and delivers the answer as it
// arrives. libcurl does HTTP and TLS. The connection is kept for the next question.
//
// Threads: thread-compatible.
// Errors:  kOverloaded if the server cannot be reached; kInvalidArgument with the server's own
//          message for what it refuses; kNotFound if it has no such model.
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
  bool is_stopped = false;  // by the user
  // 0 if the server did not count.
  int n_prompt = 0;
  int n_cached = 0;
  int n_generated = 0;
  double first_token_s = 0;
  double seconds = 0;
  bool is_streamed = false;  // arrived in more than one piece
};
// nullopt if it cannot be determined.
[[nodiscard]] std::optional<double> tokens_per_second(const Answer& answer);

struct ServerModel {
  std::string name;
  bool is_ours = false;  // of a slipstream server, which reports more
  int n_context = 0;     // 0: not known
};

struct KvUse {
  std::string scheme;
  double used_bytes = 0;  // by this conversation
  double all_bytes = 0;
};
// The KV cache that n_tokens of a model use, computed from /metrics. The server's own count of
// cells in use does not help: once an answer has ended, all of them could be freed.
// Whether an address is one of this machine, which no proxy has to be asked for.
[[nodiscard]] bool is_loopback(const std::string& url);

[[nodiscard]] std::optional<KvUse> find_kv_use(std::string_view metrics, const ServerModel& model,
                                               int n_tokens);

class ChatClient {
 public:
  // url: "host:8080", "http://host:8080" and ".../v1" mean the same.
  ChatClient(const std::string& url, const std::string& api_key);
  ~ChatClient();
  ChatClient(const ChatClient&) = delete;
  ChatClient& operator=(const ChatClient&) = delete;

  // An empty name means the first model.
  [[nodiscard]] Result<ServerModel> find_model(const std::string& name);
  // is_stopped is called several times a second.
  [[nodiscard]] Result<Answer> ask(Json request, const std::function<void(const Piece&)>& on_piece,
                                   const std::function<bool()>& is_stopped);
  [[nodiscard]] std::optional<KvUse> kv_use(const ServerModel& model, int n_tokens);

 private:
  struct Handles;
  [[nodiscard]] Result<std::string> get(const std::string& url);

  const std::string url_;  // including /v1
  const std::unique_ptr<Handles> handles_;
};

}  // namespace slipstream::chat
