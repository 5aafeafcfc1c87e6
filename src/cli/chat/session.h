// Session: the messages so far and the settings: everything that makes up the next request.
//
// Threads: thread-compatible.
// Errors:  kInvalidArgument for an unknown setting, listing the known ones; errors of files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/chat/chat_client.h"

namespace slipstream::chat {

class Session {
 public:
  explicit Session(std::string model) : model_(std::move(model)) {}

  void say(std::string text) { add("user", std::move(text)); }
  void take_answer(std::string text) { add("assistant", std::move(text)); }
  // Removes the last answer, so that the user's message is the last one. Returns false if there
  // are no messages.
  bool drop_answer();
  // Removes the last message, a question without an answer.
  void drop_question() { messages_.erase(messages_.size() - 1); }
  void clear() { messages_ = Json::array(); }

  void set_system(std::string text) { system_ = std::move(text); }
  [[nodiscard]] const std::string& system() const { return system_; }
  // For example "temperature", "0.7". An empty value means the server's own.
  [[nodiscard]] Result<void> set(std::string_view name, std::string_view value);
  [[nodiscard]] const Json& settings() const { return settings_; }
  [[nodiscard]] const std::string& model() const { return model_; }
  [[nodiscard]] std::size_t n_messages() const { return messages_.size(); }

  // The body of a chat completion.
  [[nodiscard]] Json request() const;

  // Only its owner can read the file. load() replaces everything except the model.
  [[nodiscard]] Result<void> save(const std::string& path) const;
  [[nodiscard]] Result<void> load(const std::string& path);

 private:
  void add(const char* role, std::string text) {
    messages_.push_back({{"role", role}, {"content", std::move(text)}});
  }

  const std::string model_;
  std::string system_;
  Json settings_ = Json::object();
  Json messages_ = Json::array();
};

}  // namespace slipstream::chat
