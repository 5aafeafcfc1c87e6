// Asker: asks a model one question at a time, with greedy sampling, and waits for the answer: a
// conversation through the model's own chat template, or a text to continue.
//
// Threads: thread-compatible; the engine must outlive it.
// Errors:  create(): those of model_template.h. ask(), go_on() and complete(): those of the
//          template and of Engine::submit(), and kIo with the engine's message if it failed.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "server/output/chat_answer.h"
#include "server/template/chat_template.h"

namespace slipstream::quality {

using Json = nlohmann::ordered_json;

struct Question {
  std::string text;          // the user's message
  Json tools = {};           // as in OpenAI's API
  std::string grammar = {};  // for the answer; empty: none
  int n_tokens_max = 64;
};

struct Reply {
  ChatAnswer answer;
  Usage usage;  // tokens of the prompt, and how many of them were in the cache
};

// Continues tokens. With ignores_end, continues past the model's own end of text.
[[nodiscard]] Result<std::vector<Token>> go_on(Engine& engine, std::vector<Token> prompt,
                                               int n_tokens, bool ignores_end);

// Continues a text, until the model ends it or a stop string comes, which is not returned.
[[nodiscard]] Result<std::string> complete(Engine& engine, const std::string& text, int n_tokens,
                                           std::vector<std::string> stops);

// The prompt of a conversation that begins with the question.
[[nodiscard]] Result<MarkedText> prompt_of(const ChatTemplate& chat_template,
                                           const Question& question);

class Asker {
 public:
  [[nodiscard]] static Result<Asker> create(Engine& engine);
  [[nodiscard]] Result<Reply> ask(const Question& question) const;

 private:
  Asker(Engine& engine, ChatTemplate chat_template)
      : engine_(&engine), template_(std::move(chat_template)) {}

  Engine* engine_;
  ChatTemplate template_;
};

}  // namespace slipstream::quality
