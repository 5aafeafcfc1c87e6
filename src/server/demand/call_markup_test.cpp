#include "server/demand/call_markup.h"

#include <gtest/gtest.h>

#include <string>

#include "server/demand/demanded_calls.h"

namespace slipstream {
namespace {

TEST(CallMarkup, IsCutOutOfWhatTheTemplateWrites) {
  const Result<CallMarkup> markup = call_markup_of(with_calls(kTaggedCall));
  ASSERT_TRUE(markup.has_value());
  EXPECT_EQ(markup->before_name, "<tool_call>\n{\"name\": \"");
  EXPECT_EQ(markup->after_name, "\", \"arguments\": ");
  EXPECT_EQ(markup->between, "}\n</tool_call><tool_call>\n{\"name\": \"");
  EXPECT_EQ(markup->after_last, "}\n</tool_call>");
  EXPECT_FALSE(markup->members);
}

TEST(CallMarkup, KnowsArgumentsThatAreElements) {
  const Result<CallMarkup> markup = call_markup_of(with_calls(kElementCall));
  ASSERT_TRUE(markup.has_value() && markup->members);
  EXPECT_EQ(markup->before_name, "<tool_call>\n<function=");
  EXPECT_EQ(markup->members->first, ">\n<parameter=");
  EXPECT_EQ(markup->members->text_open, ">\n");
  EXPECT_EQ(markup->members->text_close, "");
  EXPECT_EQ(markup->members->text_end, "</parameter>");
  EXPECT_EQ(markup->members->next, "\n</parameter>\n<parameter=");
  EXPECT_EQ(markup->members->close, "\n</parameter>\n</function>");
  EXPECT_EQ(markup->members->close_empty, ">\n</function>");
  EXPECT_EQ(markup->after_last, "\n</tool_call>");
}

TEST(CallMarkup, NumbersAndIdsMayBeOthers) {
  const Result<CallMarkup> markup = call_markup_of(with_calls(
      "[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments | tojson "
      "}}"));
  ASSERT_TRUE(markup.has_value());
  EXPECT_EQ(markup->after_name, std::string("[CALL_ID]") + kAnyId + "[ARGS]");
  const Result<CallMarkup> numbered = call_markup_of(
      with_calls("<|tool_calls_section_begin|><|tool_call_begin|>functions.{{ c.function.name }}:"
                 "{{ loop.index0 }}<|tool_call_argument_begin|>{{ c.function.arguments | tojson }}"
                 "<|tool_call_end|>"));
  ASSERT_TRUE(numbered.has_value());
  EXPECT_EQ(numbered->after_name, std::string(":") + kAnyNumber + "<|tool_call_argument_begin|>");
}

TEST(CallMarkup, WhatOurParserCannotReadIsNotDemanded) {
  const ChatTemplate chat =
      with_calls("~{{ c.function.name }}~{{ c.function.arguments | tojson }}");
  const Result<CallMarkup> markup = call_markup_of(chat);
  ASSERT_TRUE(markup.has_value());  // the form of conversation.cpp, read in all such templates
  EXPECT_EQ(markup->before_name, "<tool_call>\n{\"name\": \"");
  const Result<CallMarkup> none = call_markup_of(with_calls("[TOOL_CALLS]"));
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace slipstream
