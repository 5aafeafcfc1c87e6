#include "server/template/chat_template.h"

#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "server/json.h"
#include "server/template/image_mark.h"
#include "server/template/jinja/value.h"

namespace slipstream {
namespace {

Result<std::string> text_of(const Result<MarkedText>& prompt) {
  if (!prompt) return std::unexpected(prompt.error());
  return prompt->text();
}

Result<std::string> render(std::string_view source, ChatInput input = {}) {
  if (input.messages.is_null()) {
    input.messages = Json::parse(R"([{"role": "user", "content": "hi"}])");
  }
  auto chat = ChatTemplate::create(source, "<s>", "</s>");
  if (!chat) return std::unexpected(chat.error());
  return text_of(chat->render(input));
}

std::string text(std::string_view source) {
  const auto result = render(source);
  return result ? *result : result.error().message;
}

TEST(ChatTemplate, ComputesAsJinjaDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }}",
       "7 3 -4 2 3.5 8"},
      {"{{ 'a' ~ 1 ~ none ~ true }}", "a1NoneTrue"},
      {"{{ 'x' if false }}|{{ 'x' if 1 else 'y' }}", "|x"},
      {"{{ not 1 == 2 and 3 in [1, 3] and 'b' not in 'ac' }}", "True"},
      {"{{ [1, 'a', none, {'k': 1.0}] }}", "[1, 'a', None, {'k': 1.0}]"},
      {"{{ {'a': [1, true, 'é\"']} | tojson }}", "{\"a\": [1, true, \"é\\\"\"]}"},
      {"{{ {'b': 1, 'a': {}} | tojson(indent=2) }}", "{\n  \"b\": 1,\n  \"a\": {}\n}"},
      {"{{ 'é' | tojson(ensure_ascii=true) }}", "\"\\u00e9\""},
      {"{{ 'aé😀'[::-1] }} {{ 'aé😀' | length }} {{ 'abc'[-2:] }} {{ 'abc'[7:9] }}", "😀éa 3 bc "},
      {"{{ [1,2,3][1:] }} {{ [1,2,3][-1] }} {{ [1][5] is defined }}", "[2, 3] 3 False"},
      {"{% for a, b in {'x': 1, 'y': 2}.items() %}{{ loop.index }}{{ a }}{{ b }}{{ ',' if not "
       "loop.last }}{% endfor %}",
       "1x1,2y2"},
      {"{% for i in range(5) if i % 2 == 0 %}{{ i }}{% else %}none{% endfor %}", "024"},
      {"{% for i in [] %}{{ i }}{% else %}none{% endfor %}", "none"},
      {"{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break "
       "%}{% endif %}{{ i }}{% endfor %}",
       "02"},
      {"{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}", "1"},
      {"{% set ns = namespace(x=1) %}{% for i in [1] %}{% set ns.x = 2 %}{% endfor %}{{ ns.x }}",
       "2"},
      {"{% macro f(a, b='d') %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) }}{{ f(b=2, a=3) }}",
       "[1d][32]"},
      {"{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}x{% endcall %}", "<x>"},
      {"{% set a %}b{{ 1 }}{% endset %}{{ a }}{% filter upper %}x{{ a }}{% endfilter %}", "b1XB1"},
      {"{% set a, b = [1, 2] %}{{ a }}{{ b }}", "12"},
      {"{{ ' a '.strip() }}{{ 'xxa'.lstrip('x') }}{{ 'a,b,c'.split(',') }}{{ 'a,b,c'.split(',', "
       "1)[1] }}{{ 'a,b,c'.rsplit(',', 1)[0] }}",
       "aa['a', 'b', 'c']b,ca,b"},
      {"{{ '<{}|{0}>'.format('x') }} {{ 'a-b'.replace('-', '+') }} {{ 'ab'.startswith('a') }}",
       "<x|x> a+b True"},
      {"{{ ['a', 'b'] | join(', ') }} {{ 'hello world' | title }} {{ [3, 1] | sort | first }} {{ "
       "[1, 2] | last }}",
       "a, b Hello World 1 2"},
      {"{{ [{'n': 1}, {'n': 2}] | map(attribute='n') | list }} {{ [{'n': 1}, {'n': 2}] | "
       "selectattr('n', 'equalto', 2) | list | length }}",
       "[1, 2] 1"},
      {"{{ nothing is defined }} {{ nothing | default('d') }} {{ '' | default('e', true) }}{{ "
       "nothing }}",
       "False d e"},
      {"{{ {'b': 1, 'a': 2} | dictsort }} {{ '{\"a\": [1]}' | from_json }}",
       "[['a', 2], ['b', 1]] {'a': [1]}"},
      {"{{ 100000.0 }} {{ 0.1 }} {{ 5 | float }}", "100000.0 0.1 5.0"},
      {"{{ messages[0].content }}{{ messages[0]['role'] }}{{ bos_token }}{{ eos_token }}",
       "hiuser<s></s>"},
      {"{{ strftime_now('%Y-%m-%d') }}", "1970-01-01"},
      {"{{ 'it''s' }}{{ \"tab\\tu00e9 \\u00e9\" }}", "itstab\tu00e9 é"},
      {"{{ (1, 2) }}{{ 'a' in {'a': 1} }}{{ {'a': {'b': 3}}.a.b }}", "[1, 2]True3"},
  };
  for (const auto& [source, expected] : cases) EXPECT_EQ(text(source), expected) << source;
}

TEST(ChatTemplate, WhiteSpaceAroundStatementsIsDropped) {
  EXPECT_EQ(text("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(text("a \n {%- if true -%} \n b {% endif %}c"), "ab c");
  EXPECT_EQ(text("{# note #}\nx {{- 1 }} \n{{ 2 -}} \n y"), "x1 \n2y");
  EXPECT_EQ(text("  {%+ if true %}x{% endif %}\n\ny"), "  x\ny");
}

TEST(ChatTemplate, SaysWhatTheTemplateComplainsAbout) {
  EXPECT_EQ(text("{{ raise_exception('roles must alternate') }}"),
            "the model's chat template refuses the conversation: roles must alternate");
  EXPECT_EQ(render("{{ raise_exception('x') }}").error().code, Code::kInvalidArgument);
  EXPECT_EQ(text("a\n{% if %}"), "the chat template cannot be read: line 2: unexpected ''");
  EXPECT_EQ(text("{{ a.b }}"),
            "the model's chat template refuses the conversation: 'a' is undefined and has no 'b'");
  EXPECT_EQ(text("{{ 1 | nope }}"),
            "the model's chat template refuses the conversation: unknown filter 'nope'");
}

// Each of these crashes, hangs or exhausts memory in at least one other implementation.
TEST(ChatTemplate, HostileTemplatesAreRefusedInTime) {
  const auto repeat = [](std::string_view unit, int n) {
    std::string result;
    for (int i = 0; i < n; ++i) result += unit;
    return result;
  };
  const std::string sources[] = {
      "{{ 1 % 0 }}",
      "{{ 1 // 0 }}",
      "{{ 1.0 / 0 }}",
      "{{ (0 - 9223372036854775807 - 1) // (0 - 1) }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ 99999999999999999999 }}",
      "{{ 'aaaaaaaa' * 100000000000 }}",
      "{% for i in range(100000000000) %}{% endfor %}",
      "{{ range(0, 9223372036854775807, 9223372036854775807) }}",
      "{% set ns = namespace(s='aaaaaaaa') %}{% for c in 'a' * 60 %}{% set ns.s = ns.s ~ ns.s %}{% "
      "endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for c in 'a' * 60 %}{% set ns.s = ns.s + ns.s %}{% endfor "
      "%}",
      "{{ 'abc'.split('') }}",
      "{{ 'abc'.replace('', 'x') }}",
      "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
      "{% macro f(x) %}{{ f(x) ~ f(x) }}{% endmacro %}{{ f(1) }}",
      "{{ " + repeat("(", 20'000) + "1" + repeat(")", 20'000) + " }}",
      "{{ " + repeat("[", 20'000) + "1" + repeat("]", 20'000) + " }}",
      "{{ " + repeat("not ", 50'000) + "1 }}",
      "{{ " + repeat("-", 50'000) + "1 }}",
      "{{ 1" + repeat(" + 1", 50'000) + " }}",
      "{{ a" + repeat(".a", 50'000) + " }}",
      "{{ 1" + repeat(" if 1 else 1", 20'000) + " }}",
      repeat("{% if true %}", 15'000) + repeat("{% endif %}", 15'000),
      "{% set ns = namespace(x=[]) %}{% for i in range(300000) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}",
      "{% set l = [] %}{{ l.append(l) }}{{ l }}",
      "{% set l = [] %}{% set m = [l] %}{{ l.append(m) }}{{ l }}",
      repeat("{% for a in range(100) %}", 6) + "x" + repeat("{% endfor %}", 6),
      "{{ 'a\nb' | indent(100000000000) }}",
      "{{ [1, 'a'] | sort }}",
      "{% for c in messages %}{% for d in 'x' * 16000000 %}{{ d }}{% endfor %}{% endfor %}",
  };
  for (const std::string& source : sources) {
    const std::clock_t start = std::clock();  // CPU time of this process: others may be busy
    EXPECT_FALSE(render(source).has_value()) << source.substr(0, 100);
    EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 2 * jinja::kRenderSecondsMax)
        << source.substr(0, 100);
  }
}

TEST(ChatTemplate, StrangeButHarmlessTemplatesRender) {
  EXPECT_EQ(text("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}"), "<namespace>");
  EXPECT_EQ(text("{{ 'abc'[1000000:1000900:3] }}{{ 'abc'[-90000000:2:2] }}{{ 'abc'[::-5] }}"),
            "ac");
  EXPECT_EQ(text("{{ 'abc'[::9223372036854775807] }}"), "a");
  EXPECT_EQ(text("{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}{% endfor %}{{ "
                 "ns.l.index }}"),
            "1");
  EXPECT_EQ(text("{#" + std::string(200'000, 'a') + "#}x"), "x");
  EXPECT_EQ(text("{% set ns = namespace() %}{% macro f() %}{% endmacro %}{% macro g() %}{% set "
                 "ns.c = caller %}{% endmacro %}{% call g() %}x{% endcall %}y"),
            "y");
}

TEST(ChatTemplate, MarksOfImagesJoinTheTextsAroundThem) {
  ChatInput input;
  input.messages = Json::array({{{"role", "user"},
                                 {"content", Json::array({{{"type", "text"}, {"text", "a"}},
                                                          {{"type", "text"}, {"text", "b"}},
                                                          image_mark("<1>"),
                                                          image_mark("<2>"),
                                                          {{"type", "text"}, {"text", "c"}},
                                                          {{"type", "text"}, {"text", "d"}}})}}});
  EXPECT_EQ(render("{{ messages[0].content }}", input), "a\nb<1><2>c\nd");
  EXPECT_EQ(render("{{ messages[0]['content'][0]['text'] }}", input), "a\nb<1><2>c\nd");
}

TEST(ChatTemplate, HostileMessagesAreRefused) {
  ChatInput input;
  Json deep = 1;
  for (int i = 0; i < 500; ++i) deep = Json::array({deep});
  input.messages = Json::array({{{"role", "user"}, {"content", "x"}, {"extra", deep}}});
  EXPECT_FALSE(render("{{ messages }}", input).has_value());
  input.messages = Json::parse(R"([{"role": "user", "content": 5}])");
  EXPECT_EQ(render("x", input).error().message, "a message's content is no text");
  input.messages = Json::parse(R"([{"content": "x"}])");
  EXPECT_EQ(render("x", input).error().message, "a message has no role");
  input.messages = Json::parse(R"([{"role": "user", "content": [{"type": "image_url"}]}])");
  EXPECT_EQ(
      render("x", input).error().message,
      "a message has a part of type \"image_url\": only text and images (image_url) are supported");
  input.messages = Json::array();
  EXPECT_FALSE(render("x", input).has_value());
}

// Everything that a client sends or a template makes is charged at its cost.
TEST(ChatTemplate, WhatIsLookedForAndKeptIsCharged) {
  const auto seconds = [](const std::function<void()>& work) {
    const std::clock_t start = std::clock();
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  ChatInput input;
  // Every position nearly matches: comparing at each position would take 1 MB x 512 KB.
  input.messages = Json::array({{{"role", "user"}, {"content", std::string(1 << 20, 'a')}}});
  input.variables = {{"part", std::string(1 << 19, 'a') + "b"}};
  for (const std::string_view source :
       {"{{ part in messages[0].content }}", "{{ messages[0].content.replace(part, '') | length }}",
        "{{ messages[0].content.split(part) | length }}", "{{ messages[0].content.find(part) }}",
        "{{ messages[0].content.rsplit(part) | length }}"}) {
    EXPECT_LT(seconds([&] { (void)render(source, input); }), 5) << source;
  }
  // The value of a missing key must not keep the whole key for its message: 2,000 x 1 MB.
  input.variables = {};
  const auto kept = render(
      "{% set ns = namespace(l=[]) %}{% for i in range(2000) %}"
      "{{ ns.l.append({}[messages[0].content]) or '' }}{% endfor %}{{ ns.l | length }}",
      input);
  ASSERT_TRUE(kept.has_value()) << kept.error().message;
  EXPECT_EQ(*kept, "2000");
  // The variables are searched for each name, or copied each time.
  input.messages = Json::array({{{"role", "user"}, {"content", "x"}}});
  Json::object_t variables;
  for (int i = 0; i < 1024; ++i) variables.emplace_back("v" + std::to_string(i), i);
  input.variables = variables;
  EXPECT_FALSE(
      render("{% for i in range(1000000) %}{{ nowhere }}{{ nowhere }}{% endfor %}", input));
  input.variables = {{"v", variables}};
  EXPECT_FALSE(render("{% for i in range(3000) %}{% set ns = namespace(v) %}{% endfor %}", input));
}

// A string that is parsed as JSON again has the same limits as the body. Without them,
// the process ended.
TEST(ChatTemplate, ArgumentsInAStringAreBoundedToo) {
  ChatInput input;
  // The first template gets the arguments as an object. For the second, they become
  // text before it is rendered.
  std::string_view source = "{{ messages | tojson }}";
  const auto calls = [&](const std::string& arguments) {
    const Json function = {{"name", "f"}, {"arguments", arguments}};
    input.messages =
        Json::array({{{"role", "user"}, {"content", "go"}},
                     {{"role", "assistant"},
                      {"content", ""},
                      {"tool_calls", Json::array({{{"id", "1"}, {"function", function}}})}}});
    return render(source, input);
  };
  for (const std::string_view each :
       {"{{ messages | tojson }}", "{% for m in messages %}{{ m.content }}{% endfor %}"}) {
    source = each;
    for (const std::size_t depth : {std::size_t{200}, std::size_t{200'000}, std::size_t{8} << 20}) {
      const auto refused =
          calls(R"({"a":)" + std::string(depth, '[') + std::string(depth, ']') + "}");
      ASSERT_FALSE(refused.has_value()) << depth;
      EXPECT_TRUE(refused.error().message.contains("nested more than 128 deep"));
    }
  }
  source = "{{ messages | tojson }}";
  EXPECT_TRUE(calls(R"({"a":)" + std::string(30, '[') + std::string(30, ']') + "}").has_value());
  EXPECT_TRUE(calls("no JSON " + std::string(1000, '[')).has_value()) << "a text like any other";
  // The limits also apply if the template itself parses JSON.
  input.messages = Json::array(
      {{{"role", "user"}, {"content", std::string(2'000'000, '[') + std::string(2'000'000, ']')}}});
  EXPECT_FALSE(render("{{ messages[0].content | from_json }}", input).has_value());
}

constexpr std::string_view kPlain =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

TEST(ChatTemplate, PartsAreJoinedOrMade) {
  ChatInput input;
  input.messages = Json::parse(
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])");
  EXPECT_EQ(*render(kPlain, input), "[user]a\nb[assistant]");
  input.messages = Json::parse(R"([{"role": "user", "content": "a"}])");
  EXPECT_EQ(
      *render(
          "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}({{ p.text }})"
          "{% endif %}{% endfor %}{% endfor %}",
          input),
      "(a)");
}

TEST(ChatTemplate, ToolsAreDescribedToTemplatesWithoutTools) {
  auto chat = ChatTemplate::create(kPlain, "", "");
  ASSERT_TRUE(chat.has_value());
  EXPECT_FALSE(chat->abilities().takes_tools);
  EXPECT_FALSE(chat->abilities().takes_calls);
  ChatInput input;
  input.tools =
      Json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])");
  input.messages = Json::parse(R"([
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": null, "tool_calls":
      [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "ok"}])");
  const std::string prompt = *text_of(chat->render(input));
  EXPECT_TRUE(prompt.starts_with("[system]You can call these tools.")) << prompt;
  EXPECT_TRUE(prompt.contains(R"({"name":"f","parameters":{}})")) << prompt;
  EXPECT_TRUE(prompt.ends_with(
                  "[user]go[assistant]<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":1}}\n"
                  "</tool_call>[tool]ok[assistant]") ||
              prompt.ends_with(
                  "[user]go[assistant]<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":1}}\n"
                  "</tool_call>[user]<tool_response>\nok\n</tool_response>[assistant]"))
      << prompt;
}

TEST(ChatTemplate, AToolMayHaveNoParameters) {
  const auto chat = ChatTemplate::create(
      "{% for t in tools %}{{ t.function.name }}:"
      "{% for p in t.function.parameters.properties %}{{ p }}{% endfor %}{% endfor %}"
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}",
      "", "");
  ASSERT_TRUE(chat.has_value());
  ChatInput input;
  input.tools = Json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
  input.messages = Json::parse(R"([{"role": "user", "content": "go"}])");
  EXPECT_EQ(text_of(chat->render(input)).value_or("refused"), "f:[user]go");
}

TEST(ChatTemplate, LaterSystemMessagesJoinTheOneBeforeWhereTemplatesRefuseThem) {
  const auto chat = ChatTemplate::create(
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
      "{{ raise_exception('system comes first') }}{% endif %}"
      "[{{ m.role }}]{{ m.content }}{% endfor %}",
      "", "");
  ASSERT_TRUE(chat.has_value());
  EXPECT_TRUE(chat->abilities().takes_system);
  EXPECT_FALSE(chat->abilities().takes_later_system);
  const auto said = [&](const char* messages) {
    ChatInput input;
    input.messages = Json::parse(messages);
    return text_of(chat->render(input)).value_or("refused");
  };
  EXPECT_EQ(said(R"([{"role": "system", "content": "a"}, {"role": "developer", "content": "b"},
                     {"role": "user", "content": "c"}])"),
            "[system]a\n\nb[user]c");
  EXPECT_EQ(said(R"([{"role": "user", "content": "c"}, {"role": "system", "content": "a"},
                     {"role": "assistant", "content": "d"}, {"role": "system", "content": "b"},
                     {"role": "user", "content": "e"}])"),
            "[user]c\n\na[assistant]d[user]b\n\ne");
}

TEST(ChatTemplate, ManyToolResultsTakeLinearTime) {
  auto chat = ChatTemplate::create(kPlain, "", "");
  ASSERT_TRUE(chat.has_value() && !chat->abilities().takes_results);
  ChatInput input;
  input.messages = Json::array({{{"role", "user"}, {"content", "go"}}});
  constexpr int kResults = 100'000;
  const std::string id(20, '7');
  Json calls = Json::array();
  for (int i = 0; i < kResults; ++i) {
    calls.push_back(
        {{"id", id + std::to_string(i)}, {"function", {{"name", "f"}, {"arguments", "{}"}}}});
  }
  input.messages.push_back({{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}});
  for (int i = 0; i < kResults; ++i) {
    input.messages.push_back(
        {{"role", "tool"}, {"tool_call_id", id + std::to_string(i)}, {"content", "ok"}});
  }
  input.messages.push_back({{"role", "user"}, {"content", "and?"}});
  const std::clock_t start = std::clock();
  const auto prompt = text_of(chat->render(input));
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 10);
  ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
  EXPECT_TRUE(prompt->ends_with("ok\n</tool_response>\nand?[assistant]"));
}

TEST(ChatTemplate, NoContentStandsBesideCallsWhereTemplatesLookForNone) {
  auto chat = ChatTemplate::create(
      "{{ tools | tojson }}{% for m in messages %}[{{ m.role }}]{% if m.content is none %}"
      "{% for c in m.tool_calls %}({{ c.function.name }} {{ c.function.arguments | tojson }})"
      "{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
      "", "");
  ASSERT_TRUE(chat.has_value());
  EXPECT_TRUE(chat->abilities().takes_calls && chat->abilities().wants_no_content);
  ChatInput input;
  input.messages = Json::parse(R"([
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "", "tool_calls":
      [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]}])");
  EXPECT_TRUE(text_of(chat->render(input))->ends_with("[user]go[assistant](f {\"a\": 1})"));
  input.messages[1]["content"] = "Well.";
  EXPECT_TRUE(text_of(chat->render(input))
                  ->ends_with("[assistant]Well.\n<tool_call>\n{\"name\": \"f\", \"arguments\": "
                              "{\"a\":1}}\n</tool_call>"));
}

TEST(ChatTemplate, ASystemMessageGoesToTheUserWhereTemplatesHaveNone) {
  ChatInput input;
  input.messages = Json::parse(
      R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}])");
  EXPECT_EQ(*render("{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}"
                    "{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}",
                    input),
            "[user]Be brief.\n\nhi");
}

TEST(ChatTemplate, VariablesReachTheTemplateAndDoNotReplaceItsInput) {
  ChatInput input;
  input.variables = Json::parse(R"({"enable_thinking": false, "messages": [], "bos_token": "!"})");
  EXPECT_EQ(*render("{{ enable_thinking }} {{ messages | length }} {{ bos_token }}", input),
            "False 1 <s>");
}

}  // namespace
}  // namespace slipstream
