// OllamaRequest: the body of Ollama's POST /api/chat and POST /api/generate.
//
// Both are read into the ChatRequest that OpenAI's API would make of the same conversation, so that
// prompts are the same and computed prefixes are shared; a prompt of /api/generate is the message of
// a user. Options of the machine (num_gpu, num_thread, use_mmap, ...) are ignored: the server's
// flags say these, and Ollama's clients send them to every server.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "server/api/chat_request.h"
#include "server/api/fill_in.h"

namespace slipstream {

struct OllamaRequest {
  // Without messages the request only loads the model, or unloads it if keep_alive is 0.
  ChatRequest chat;
  std::optional<std::string> raw_prompt = {};  // "raw": continued without a template
  std::optional<FillIn> fill = {};             // "suffix": filled between "prompt" and it
  std::int64_t n_context = 0;                  // "num_ctx": tokens that must fit; 0: not given
  std::optional<std::chrono::seconds> keep_alive = {};  // max(): as long as there is room

  [[nodiscard]] bool only_loads() const { return chat.messages.empty() && !raw_prompt && !fill; }
};

// Both move long values out of the body.
[[nodiscard]] ApiResult<OllamaRequest> read_ollama_chat(Json& body);
[[nodiscard]] ApiResult<OllamaRequest> read_ollama_generate(Json& body);

// "keep_alive": seconds, or a duration such as "1h30m"; negative: without end.
[[nodiscard]] std::optional<std::chrono::seconds> read_keep_alive(JsonFields& fields);

}  // namespace slipstream
