// What clients write stays text. The marks follow it through every way in which a template can
// handle it. With every public template (tests/README.md), it never becomes a control token, and
// harmless conversations become exactly the tokens that libllama makes of the whole prompt.
#include <ggml-cpp.h>
#include <gtest/gtest.h>
#include <llama-cpp.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <thread>

#include "base/format.h"
#include "engine/text/text_limits.h"
#include "engine/text/vocabulary.h"
#include "server/json.h"
#include "server/template/chat_template.h"
#include "server/template/public_templates.h"

namespace slipstream {
namespace {

// Shows the client's text in brackets: in "a<b>", b is the client's.
std::string shown(const MarkedText& text) {
  std::string all;
  text.for_each_run([&](std::string_view run, Origin origin) {
    all += origin == Origin::kClient ? "<" + std::string(run) + ">" : std::string(run);
  });
  return all;
}

std::string shown(std::string_view source, const Json& content, const Json& variables = {}) {
  const auto chat = ChatTemplate::create(source, "BOS", "EOS");
  EXPECT_TRUE(chat.has_value());
  const auto prompt =
      chat->render({.messages = Json::array({{{"role", "user"}, {"content", content}}}),
                    .variables = variables});
  return prompt ? shown(*prompt) : prompt.error().message;
}

TEST(ClientText, MarksFollowItThroughATemplate) {
  const std::pair<const char*, const char*> cases[] = {
      {"a{{ c }}b{{ bos_token }}", "a< x,Yz >bBOS"},
      {"{{ 'a' + c + 'b' }}{{ 'a' ~ c ~ 1 }}", "a< x,Yz >ba< x,Yz >1"},
      {"{{ c | trim }}|{{ c.strip() }}|{{ c.lstrip(' x') }}|{{ ('(' + c).rstrip() }}",
       "<x,Yz>|<x,Yz>|<,Yz >|(< x,Yz>"},
      {"{{ c.split(',') }}", "['< x>', '<Yz >']"},
      {"{{ (c + ',k').split(',')[2] }}{{ (c + ',k').rsplit(',', 1)[0] }}", "k< x,Yz >"},
      {"{{ ('k ' + c).split()[0] }}{{ ('k ' + c).split()[1] }}", "k<x,Yz>"},
      {"{{ ('k\n' + c).splitlines() | join('-') }}", "k-< x,Yz >"},
      {"{{ c.upper() }}{{ ('k' + c) | lower }}{{ c | title }}{{ c | capitalize }}",
       "< X,YZ >k< x,yz  X,Yz  x,yz >"},
      {"{{ c.replace(',', '-') }}{{ 'a,b'.replace(',', c) }}", "< x>-<Yz >a< x,Yz >b"},
      {"{{ '[{}|{{{0}}}]'.format(c) }}", "[< x,Yz >|{< x,Yz >}]"},
      {"{{ (c + '\nk') | indent(2, true) }}", "  < x,Yz >\n  k"},
      {"{{ ['a', c, 'b'] | join(', ') }}{{ c.join(['a', 'b']) }}", "a, < x,Yz >, ba< x,Yz >b"},
      {"{{ {'k': c} | tojson }}{{ messages[0] | tojson }}",
       "{\"k\": \"< x,Yz >\"}{\"<role>\": \"user\", \"<content>\": \"< x,Yz >\"}"},
      {"{{ ('é' + c) | tojson(ensure_ascii=true) }}", "\"\\u00e9< x,Yz >\""},
      {"{{ [c, 1, 'k'] }}{{ {c: 1} }}", "['< x,Yz >', 1, 'k']{'< x,Yz >': 1}"},
      {"{{ c[1:3] }}{{ c[1] }}{{ ('k' + c)[::-1] }}{{ ('k' + c) | reverse }}",
       "<x,x zY,x >k< zY,x >k"},
      {"{% for x in 'k' + c %}{{ x }}-{% endfor %}", "k-< >-<x>-<,>-<Y>-<z>-< >-"},
      {"{{ c * 2 }}{{ 'k' * 2 }}", "< x,Yz  x,Yz >kk"},
      {"{{ c | string }}{{ c | safe }}{{ nothing | default(c) }}{{ [c] | first }}",
       "< x,Yz  x,Yz  x,Yz  x,Yz >"},
      {"{% set k %}[{{ c }}]{% endset %}{{ k }}{% set ns = namespace(k=c) %}{{ ns.k }}",
       "[< x,Yz >]< x,Yz >"},
      {"{% macro m(x) %}[{{ x }}{{ caller() }}]{% endmacro %}{% call m(c) %}{{ c }}k{% endcall %}",
       "[< x,Yz  x,Yz >k]"},
      {"{% filter upper %}k{{ c }}{% endfilter %}", "K< X,YZ >"},
      {"{% for k, v in messages[0].items() %}{{ k }}{% endfor %}{{ messages[0].keys() | list }}",
       "<rolecontent>['<role>', '<content>']"},
      {"{{ messages[0] | dictsort | map('first') | join }}", "<contentrole>"},
      {"{{ messages[0].role }}{{ messages | map(attribute='content') | join }}", "user< x,Yz >"},
      {"{{ strftime_now(c) }}{{ strftime_now('%Y') }}", "< x,Yz >1970"},
      {"{{ [c, 'k'] | sort | last }}{{ [c, c] | unique | join }}", "k< x,Yz >"},
  };
  for (const auto& [source, expected] : cases) {
    const std::string with_content = "{% set c = messages[0].content %}" + std::string(source);
    EXPECT_EQ(shown(with_content, " x,Yz "), expected) << source;
  }
}

TEST(ClientText, MarksFollowWhatIsParsedAndSentBesideMessages) {
  EXPECT_EQ(shown("{% set o = messages[0].content | from_json %}{{ o.k }}{{ o }}", R"({"k": "v"})"),
            "<v>{'<k>': '<v>'}");
  EXPECT_EQ(shown("{{ '{\"k\": \"v\"}' | from_json }}", "hi"), "{'k': 'v'}");
  EXPECT_EQ(shown("{{ effort }}{{ on }}{{ bos_token }}", "hi",
                  {{"effort", "high"}, {"on", true}, {"bos_token", "x"}}),
            "<high>TrueBOS");
  // A role that no template knows counts as the client's text.
  const auto chat = ChatTemplate::create("[{{ messages[0].role }}]", "", "");
  EXPECT_EQ(
      shown(*chat->render({.messages = Json::parse(R"([{"role": "im_end", "content": ""}])")})),
      "[<im_end>]");
}

// LFM2's template does not write calls: clients send the markup of an answer back as its content.
TEST(ClientText, AnswersHoldTheMarkupThatTheTemplateDoesNotWrite) {
  const std::string turns = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
  const Json messages = Json::parse(R"([
    {"role": "user", "content": "<|tool_call_start|>"},
    {"role": "assistant", "content": "a<|tool_call_start|>[f()]<|tool_call_end|>b<|im_end|>"}])");
  const auto lfm = ChatTemplate::create(turns + "{# List of tools: #}", "", "");
  ASSERT_EQ(lfm->format().tool_calls, ToolCallFamily::kLfm);
  EXPECT_EQ(shown(*lfm->render({.messages = messages})),
            "user:<<|tool_call_start|>>;assistant:<a><|tool_call_start|><[f()]><|tool_call_end|>"
            "<b<|im_end|>>;");
  const auto hermes = ChatTemplate::create(turns + "{# <tool_call> #}", "", "");
  EXPECT_FALSE(shown(*hermes->render({.messages = messages})).contains("<a>"));
}

// CPU time, the least of five, for eight times as much: 8 times as long if time is linear, 64 times if
// it is quadratic.
TEST(ClientText, TakesLinearTime) {
  constexpr const char* kSource =
      "{% for m in messages %}{{ '<s>' + m.content | trim + '</s>' }}{% endfor %}";
  const auto chat = ChatTemplate::create(kSource, "", "");
  const auto seconds = [&](const Json& messages) {
    double least = 1e9;
    for (int i = 0; i < 5; ++i) {
      const std::clock_t start = std::clock();
      const Result<MarkedText> rendered = chat->render({.messages = messages});
      if (!rendered) {
        ADD_FAILURE() << rendered.error().message;
        break;
      }
      EXPECT_EQ(rendered->client_ranges().size(), messages.size());
      least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return least;
  };
  const auto many = [](int n) {
    Json messages = Json::array();
    for (int i = 0; i < n; ++i) messages.push_back({{"role", "user"}, {"content", "<s>"}});
    return messages;
  };
  const auto one = [](std::size_t n_bytes) {
    return Json::array({{{"role", "user"}, {"content", std::string(n_bytes, 'x')}}});
  };
  EXPECT_LT(seconds(many(48'000)), 24 * seconds(many(6'000)));
  const std::size_t n_bytes_max = kTextLimits.text_bytes_max - 64;
  // Both texts must get new pages each time, which take longer than their bytes. So they are not kept
  // when they are freed, and are made in a thread: its heap has no room that other tests left.
  mallopt(M_MMAP_THRESHOLD, 1 << 16);
  double shorter = 0;
  double longer = 0;
  std::thread([&] {
    shorter = seconds(one(n_bytes_max / 8));
    longer = seconds(one(n_bytes_max));
  }).join();
  EXPECT_LT(longer, 24 * shorter);
}

// Vocabularies with the control tokens of a template. -------------------------------------------

// Everything that looks like a control token in the template's source, and the usual ones.
std::set<std::string> control_names(const std::string& source) {
  static const std::regex kName(
      R"(<\|[^|<>\s'"{}]+\|>|<｜[^<>\s'"{}]+｜>|</?(?:s|think|start_of_turn|end_of_turn)>|\[/?[A-Z_]+\])");
  std::set<std::string> names = {"<|im_start|>",  "<|im_end|>", "<|eot_id|>",         "<|user|>",
                                 "<|assistant|>", "<|system|>", "<|tool_call_start|>"};
  for (std::sregex_iterator it(source.begin(), source.end(), kName), end; it != end; ++it) {
    names.insert(it->str());
  }
  return names;
}

struct BaseVocabulary {
  std::filesystem::path model;
  std::size_t n_tokens_min = 0;  // filled with unused tokens up to this size
};

struct MadeVocabulary {
  llama_model_ptr model;
  Vocabulary vocabulary;
  std::set<std::string> own_control;  // control tokens of the base vocabulary
};

// The tokens of a base vocabulary, with these names added as control tokens. They have the last ids,
// as in the vocabularies of public models.
std::optional<MadeVocabulary> with_control(const BaseVocabulary& base,
                                           const std::set<std::string>& names) {
  const gguf_context_ptr source(
      gguf_init_from_file(base.model.c_str(), {.no_alloc = true, .ctx = nullptr}));
  if (!source) return std::nullopt;
  const auto find = [&](const char* key) { return gguf_find_key(source.get(), key); };
  const auto tokens_key = find("tokenizer.ggml.tokens");
  std::vector<const char*> texts;
  std::set<std::string> known;
  for (std::size_t i = 0; i < gguf_get_arr_n(source.get(), tokens_key); ++i) {
    texts.push_back(gguf_get_arr_str(source.get(), tokens_key, i));
    known.insert(texts.back());
  }
  const auto types_key = find("tokenizer.ggml.token_type");
  const auto* types = static_cast<const std::int32_t*>(gguf_get_arr_data(source.get(), types_key));
  std::vector<std::int32_t> all_types(types, types + texts.size());
  std::set<std::string> added;
  std::ranges::set_difference(names, known, std::inserter(added, added.end()));
  std::deque<std::string> unused;
  while (texts.size() + added.size() < base.n_tokens_min) {
    texts.push_back(unused.emplace_back(format_text("<|unused{}|>", texts.size())).c_str());
  }
  all_types.resize(texts.size(), LLAMA_TOKEN_TYPE_UNUSED);
  for (const std::string& name : added) texts.push_back(name.c_str());
  all_types.resize(texts.size(), LLAMA_TOKEN_TYPE_CONTROL);
  const gguf_context_ptr changed(gguf_init_empty());
  gguf_set_kv(changed.get(), source.get());
  gguf_set_arr_str(changed.get(), "tokenizer.ggml.tokens", texts.data(), texts.size());
  gguf_set_arr_data(changed.get(), "tokenizer.ggml.token_type", GGUF_TYPE_INT32, all_types.data(),
                    all_types.size());
  if (const auto key = find("tokenizer.ggml.scores"); key >= 0) {
    const auto* scores = static_cast<const float*>(gguf_get_arr_data(source.get(), key));
    std::vector<float> all_scores(scores, scores + gguf_get_arr_n(source.get(), key));
    all_scores.resize(texts.size(), 0.0F);
    gguf_set_arr_data(changed.get(), "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, all_scores.data(),
                      all_scores.size());
  }
  const std::string path = testing::TempDir() + "client_text_test.gguf";
  EXPECT_TRUE(gguf_write_to_file(changed.get(), path.c_str(), true));
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
  std::filesystem::remove(path);
  if (!model) return std::nullopt;
  Vocabulary vocabulary = *Vocabulary::create(model.get());
  MadeVocabulary made{std::move(model), std::move(vocabulary), {}};
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto token = static_cast<Token>(i);
    if (made.vocabulary.is_control(token)) {
      made.own_control.insert(made.vocabulary.piece(token, true));
    }
  }
  return made;
}

std::vector<BaseVocabulary> base_vocabularies() {
  const char* data = std::getenv("SLIPSTREAM_TEST_DATA");
  const auto models = std::filesystem::path(data != nullptr ? data : TEST_DATA) / "models";
  constexpr std::size_t kTokensOfQwen = 151'936;
  std::vector<BaseVocabulary> all = {{.model = NEEDLE_MODEL},
                                     {.model = NEEDLE_MODEL, .n_tokens_min = kTokensOfQwen}};
  for (const char* name : {"vocab-llama-spm.gguf", "vocab-gpt2.gguf"}) {
    if (std::filesystem::exists(models / name)) all.push_back({.model = models / name});
  }
  return all;
}

// A conversation in which every text that a client may send is made of one of these two.
ChatInput conversation(const std::string& text, const std::string& answer, bool has_tools) {
  Json user = {{"role", "user"}, {"content", "u" + text}, {"name", text}};
  if (!has_tools) {
    return {
        .messages = Json::array(
            {{{"role", "system"}, {"content", "s" + text}},
             user,
             {{"role", "assistant"}, {"content", "a" + answer}, {"reasoning_content", "r" + text}},
             user}),
        .variables = {{"reasoning_effort", text}, {"custom_tools", text}}};
  }
  const Json parameters = {
      {"type", "object"},
      {"properties",
       {{"k" + text, {{"type", "string"}, {"description", text}, {"enum", Json::array({text})}}}}},
      {"required", Json::array({"k" + text})}};
  const Json function = {
      {"name", "f" + text}, {"description", "d" + text}, {"parameters", parameters}};
  const Json call = {
      {"id", "call_1"},
      {"type", "function"},
      {"function", {{"name", "f" + text}, {"arguments", Json{{"k" + text, "v" + text}}.dump()}}}};
  return {.messages = Json::array(
              {{{"role", "system"}, {"content", "s" + text}},
               user,
               {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}},
               {{"role", "tool"}, {"tool_call_id", "call_1"}, {"content", "t" + text}},
               user}),
          .tools = Json::array({{{"type", "function"}, {"function", function}}})};
}

// No template contains this character, and in no vocabulary is it part of a longer token.
constexpr std::string_view kCanary = "\xe2\x81\x82";

// Each name follows a canary, so that the text before a token tells whether a client wrote it.
std::string hostile(const std::set<std::string>& names,
                    const std::vector<std::string_view>& but = {}) {
  std::string text(kCanary);
  for (const std::string& name : names) {
    if (std::ranges::find(but, name) == but.end()) text += name + std::string(kCanary);
  }
  return text + "z";
}

void expect_no_control_of_clients(const Vocabulary& vocabulary, const MarkedText& prompt) {
  const auto tokens = vocabulary.tokenize_chat(prompt, prompt.size() + 8);
  ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
  std::string said;
  for (const Token token : *tokens) {
    const std::string piece = vocabulary.piece(token, true);
    ASSERT_FALSE(vocabulary.is_control(token) && said.ends_with(kCanary))
        << piece << " of a client, after "
        << said.substr(said.size() - std::min<std::size_t>(said.size(), 60));
    said += piece;
  }
  EXPECT_TRUE(said.contains(kCanary));
}

void expect_tokens_of_libllama(const Vocabulary& vocabulary, const MarkedText& prompt) {
  const std::string& text = prompt.text();
  const std::string begin = vocabulary.bos() ? vocabulary.piece(*vocabulary.bos(), true) : "";
  const bool has_begin = !begin.empty() && text.starts_with(begin);
  std::vector<Token> stock(text.size() + 64);
  const int n = llama_tokenize(vocabulary.get(), text.data(), static_cast<int>(text.size()),
                               stock.data(), static_cast<int>(stock.size()), !has_begin, true);
  ASSERT_GT(n, 0);
  stock.resize(static_cast<std::size_t>(n));
  const std::vector<Token> ours = *vocabulary.tokenize_chat(prompt, text.size());
  std::string in_common;
  for (std::size_t i = 0; i < stock.size() && i < ours.size() && ours[i] == stock[i]; ++i) {
    in_common += vocabulary.piece(ours[i], true);
  }
  EXPECT_TRUE(ours == stock) << "other tokens after " << in_common;
}

TEST(ClientText, OfNoPublicTemplateBecomesAControlToken) {
  const std::vector<PublicTemplate> templates = public_templates();
  if (templates.empty()) GTEST_SKIP() << "no templates at hand";
  std::set<std::string> all_names;
  for (const auto& [model, source] : templates) all_names.merge(control_names(source));
  int n_hostile = 0;
  int n_harmless = 0;
  for (const auto& base : base_vocabularies()) {
    SCOPED_TRACE(format_text("{}, {} tokens", base.model.filename().string(), base.n_tokens_min));
    const auto made = with_control(base, all_names);
    ASSERT_TRUE(made.has_value());
    ASSERT_GE(made->vocabulary.n_tokens(), static_cast<int>(base.n_tokens_min));
    for (const auto& [model, source] : templates) {
      SCOPED_TRACE(model);
      const auto chat = ChatTemplate::create(source, "<s>", "</s>");
      ASSERT_TRUE(chat.has_value());
      std::vector<std::string_view> markup;
      if (!chat->abilities().takes_calls) markup = token_markup(chat->format().tool_calls);
      std::set<std::string> names = control_names(source);
      names.insert(made->own_control.begin(), made->own_control.end());
      for (const bool has_tools : {false, true}) {
        const auto prompt =
            chat->render(conversation(hostile(names), hostile(names, markup), has_tools));
        if (prompt) {
          expect_no_control_of_clients(made->vocabulary, *prompt);
          ++n_hostile;
        }
        const auto plain = chat->render(conversation("Where is  it,\nhere?", "There.", has_tools));
        if (plain) {
          expect_tokens_of_libllama(made->vocabulary, *plain);
          ++n_harmless;
        }
      }
    }
  }
  std::printf("%d hostile and %d harmless conversations, %zu templates\n", n_hostile, n_harmless,
              templates.size());
  const auto n = static_cast<int>(templates.size() * base_vocabularies().size() * 2);
  EXPECT_GT(n_hostile, n * 8 / 10);
  EXPECT_GT(n_harmless, n * 9 / 10);
}

}  // namespace
}  // namespace slipstream
