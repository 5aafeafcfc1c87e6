// Whatever a client sends as a body, to whichever route: it is read, or refused with a message that
// is itself JSON. A conversation goes on to where its strings are read as JSON again: the prompt,
// and the grammars of tools and of the answer's schema. Input: the body.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "harness.h"
#include "server/api/chat_request.h"
#include "server/api/completion_request.h"
#include "server/api/embedding_request.h"
#include "server/api/messages_request.h"
#include "server/api/responses_request.h"
#include "server/output/tool_set.h"
#include "server/schema/schema_to_grammar.h"
#include "server/template/chat_template.h"

namespace {

using slipstream::ApiResult;
using slipstream::ChatRequest;
using slipstream::Json;

// It takes calls as objects, so that their arguments are parsed.
constexpr std::string_view kTemplate =
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls %}<tool_call>{\"name\": \"{{ c.function.name }}\", "
    "\"arguments\": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}\n{% endfor %}"
    "{% for t in tools %}{{ t | tojson }}{% endfor %}<|assistant|>";

// Every conversation is there, and begins with a call.
class Past final : public slipstream::PastResponses {
 public:
  Json conversation(std::string_view id) override { return Json::array({item(id)}); }
  Json item(std::string_view id) override {
    return {{"type", "function_call"}, {"call_id", id}, {"name", "f"}, {"arguments", "{}"}};
  }
};

template <typename Request>
void check(const ApiResult<Request>& request) {
  if (request) return;
  SLIP_CHECK(request.error().status == 400, "a refusal is a 400");
  SLIP_CHECK(!request.error().message.empty(), "a refusal says nothing");
  SLIP_CHECK(Json::accept(slipstream::to_json(request.error())), "a refusal that is no JSON");
}

void check_chat(const ChatRequest& request) {
  static const auto kChat = slipstream::ChatTemplate::create(kTemplate, "<s>", "</s>");
  SLIP_CHECK(kChat.has_value(), "a template that is refused");
  const auto prompt = kChat->render({.messages = request.messages,
                                     .tools = request.tools,
                                     .variables = request.template_variables});
  SLIP_CHECK(prompt || !prompt.error().message.empty(), "a refusal says nothing");
  const slipstream::ToolSet tools(request.tools);
  if (request.response_schema) (void)slipstream::grammar_of_schema(*request.response_schema);
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  ApiResult<Json> body = slipstream::parse_json({reinterpret_cast<const char*>(data), n_bytes});
  check(body);
  if (!body) return 0;
  check(slipstream::read_completion_request(*body));
  check(slipstream::read_embedding_request(*body));
  // The last three take the body apart.
  Json copy = *body;
  const ApiResult<slipstream::MessagesRequest> messages = slipstream::read_messages_request(copy);
  check(messages);
  if (messages) check_chat(messages->chat);
  copy = *body;
  Past past;
  const auto response = slipstream::read_responses_request(copy, past);
  check(response);
  if (response) check_chat(response->chat);
  const ApiResult<ChatRequest> chat = slipstream::read_chat_request(*body);
  check(chat);
  if (chat) check_chat(*chat);
  return 0;
}
