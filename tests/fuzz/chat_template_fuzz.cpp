// Whatever a model brings as a chat template and a client sends as messages: it is rendered or
// refused, within the limits. Input: the template, a zero byte, the messages and tools as JSON.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "engine/text/text_limits.h"
#include "harness.h"
#include "server/bounded_json.h"
#include "server/template/chat_template.h"

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  using Json = nlohmann::ordered_json;
  const std::string_view input(reinterpret_cast<const char*>(data), n_bytes);
  const std::size_t end = input.find('\0');
  const auto chat = slipstream::ChatTemplate::create(input.substr(0, end), "<s>", "</s>");
  if (!chat) return 0;
  slipstream::ChatInput chat_input;
  chat_input.messages = Json::parse(R"([{"role": "user", "content": "hi"}])");
  if (end != input.npos) {
    const Json sent = slipstream::parse_bounded(input.substr(end + 1)).value_or(Json());
    if (sent.is_object() && sent.contains("messages")) chat_input.messages = sent["messages"];
    if (sent.is_object() && sent.contains("tools")) chat_input.tools = sent["tools"];
    if (sent.is_object() && sent.contains("variables")) chat_input.variables = sent["variables"];
  }
  const auto prompt = chat->render(chat_input);
  if (prompt) {
    SLIP_CHECK(prompt->size() <= slipstream::kTextLimits.text_bytes_max, "the prompt is too long");
  } else {
    SLIP_CHECK(!prompt.error().message.empty(), "a refusal says nothing");
  }
  return 0;
}
