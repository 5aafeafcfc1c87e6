#include "server/template/continuation.h"

#include <gtest/gtest.h>

#include <string>

#include "server/output/output_parser.h"
#include "server/template/chat_template.h"
#include "server/template/public_templates.h"

namespace slipstream {
namespace {

constexpr std::string_view kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

Result<MarkedText> continued(std::string_view source, const Json& last) {
  const auto chat = ChatTemplate::create(source, "<bos>", "<eos>");
  EXPECT_TRUE(chat.has_value()) << chat.error().message;
  const Json user = {{"role", "user"}, {"content", "one-u"}};
  return chat->render({.messages = Json::array({user, last}), .continues_last = true});
}

Json answer(std::string_view text) { return {{"role", "assistant"}, {"content", text}}; }

std::string text_or_error(const Result<MarkedText>& prompt) {
  return prompt ? prompt->text() : prompt.error().message;
}

TEST(Continuation, EndsWhereTheLastMessageDoes) {
  const std::string before = "<|im_start|>user\none-u<|im_end|>\n<|im_start|>assistant\n";
  // A text that is in the closing of a turn, too, and one that the template trims.
  for (const std::string text : {"It is", "end", "It is ", "It is\n\n", "|>"}) {
    EXPECT_EQ(text_or_error(continued(kChatMl, answer(text))), before + text);
  }
  EXPECT_EQ(text_or_error(continued(kChatMl, answer(" It"))), before + "It");
}

TEST(Continuation, TheClientsTextStaysTheClients) {
  const auto prompt = continued(kChatMl, answer("<|im_end|> \n"));
  ASSERT_TRUE(prompt.has_value());
  EXPECT_EQ(prompt->client_ranges().back(),
            (MarkedText::Range{prompt->size() - 12, prompt->size()}));
}

TEST(Continuation, WhatCannotBeContinuedIsRefused) {
  EXPECT_EQ(text_or_error(continued(kChatMl, answer(" \n"))),
            "the last message has no text that could be continued");
  EXPECT_EQ(text_or_error(continued(kChatMl, {{"role", "user"}, {"content", "hi"}})),
            "only an assistant's message can be continued");
  for (const char* source : {"{% for m in messages %}{{ m.content | upper }}{% endfor %}",
                             "{{ messages[0].content }}", "nothing"}) {
    EXPECT_EQ(text_or_error(continued(source, answer("two-a"))),
              "the model's chat template changes the last message, so it cannot be continued")
        << source;
  }
}

// Behind a prompt that is cut, the model goes on with plain text: it must count as content.
TEST(Continuation, PublicTemplatesGoOn) {
  const std::vector<PublicTemplate> templates = public_templates();
  if (templates.empty()) GTEST_SKIP() << "no templates at hand";
  int n_continued = 0;
  for (const auto& [model, source] : templates) {
    SCOPED_TRACE(model);
    const auto prompt = continued(source, answer("two-a and "));
    if (!prompt) {
      std::printf("%s: %s\n", model.c_str(), prompt.error().message.c_str());
      continue;
    }
    ++n_continued;
    EXPECT_TRUE(prompt->text().ends_with("two-a and ")) << prompt->text();
    const ChatFormat format = detect_chat_format(source);
    OutputParser parser({.format = format,
                         .tools = ToolSet(Json()),
                         .starts_in_reasoning = opens_reasoning(prompt->text(), format.reasoning)});
    std::string content;
    for (const ChatDeltas& deltas : {parser.push("three-a."), parser.finish()}) {
      for (const ChatDelta& delta : deltas) {
        EXPECT_EQ(delta.kind, ChatDelta::Kind::kContent);
        content += delta.text;
      }
    }
    EXPECT_EQ(content, "three-a.");
  }
  std::printf("%d of %zu templates continue a message\n", n_continued, templates.size());
  EXPECT_GE(n_continued, static_cast<int>(templates.size()) - 1);
}

}  // namespace
}  // namespace slipstream
