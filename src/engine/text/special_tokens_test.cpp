#include "engine/text/special_tokens.h"

#include <gguf.h>
#include <gtest/gtest.h>
#include <llama.h>
#include <rapidcheck/gtest.h>

#include <ctime>

#include "engine/sampling/test_model.h"

namespace slipstream {
namespace {

// Turns some of the needle model's tokens into text that was added by hand, and adds some more.
void add_by_hand(gguf_context* model, const std::vector<const char*>& more) {
  const auto tokens_key = gguf_find_key(model, "tokenizer.ggml.tokens");
  const auto types_key = gguf_find_key(model, "tokenizer.ggml.token_type");
  const auto* old_types = static_cast<const std::int32_t*>(gguf_get_arr_data(model, types_key));
  const std::size_t n_tokens = gguf_get_arr_n(model, tokens_key);
  std::vector<std::int32_t> types(old_types, old_types + n_tokens);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < n_tokens; ++i) {
    names.emplace_back(gguf_get_arr_str(model, tokens_key, i));
  }
  constexpr std::int32_t kControl = 3;
  constexpr std::int32_t kUserDefined = 4;
  for (const char* name : {"--------------------------------", "--------", "the"}) {
    types[static_cast<std::size_t>(stock_tokens(needle_vocabulary(), name, false, true).at(0))] =
        kUserDefined;
  }
  for (const char* name : {"<unk>", "<s>", "</s>"}) names.emplace_back(name);
  types.resize(names.size(), kControl);
  for (const char* name : more) names.emplace_back(name);
  types.resize(names.size(), kUserDefined);
  std::vector<const char*> texts;
  for (const std::string& name : names) texts.push_back(name.c_str());
  gguf_set_arr_str(model, "tokenizer.ggml.tokens", texts.data(), texts.size());
  gguf_set_arr_data(model, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(),
                    types.size());
}

struct Named {
  const char* name;
  llama_model_ptr model;
  Vocabulary vocabulary;
};

const std::vector<Named>& vocabularies() {
  static const std::vector<Named> all = [] {
    std::vector<Named> made;
    const auto add = [&made](const char* name, const std::function<void(gguf_context*)>& change) {
      llama_model_ptr model = changed_needle_model(change);
      Vocabulary vocabulary = *Vocabulary::create(model.get());
      made.push_back({name, std::move(model), std::move(vocabulary)});
    };
    add("as it is", [](gguf_context*) {});
    add("tokens added by hand",
        [](gguf_context* model) { add_by_hand(model, {"<b>", "\n\n", "  "}); });
    // In such a model, libllama lets special tokens take the white space after them.
    add("white space is taken", [](gguf_context* model) {
      add_by_hand(model, {"<b>"});
      gguf_set_val_str(model, "general.name", "phi-3");
    });
    return made;
  }();
  return all;
}

// Names of special tokens, parts of them, and text between them.
std::string random_part() {
  return *rc::gen::element<std::string>(
      "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_", "end|>", "<|", "|>", "<think>", "<b>",
      "  ", "\n\n", "</s>", "<s>", "</think>", "<tool_call>", "--------", std::string(37, '-'), "-",
      " ", "\n", " \n\t", "the", "then a lantern", "user\n", "\xc3\xa9", "\xe2\x81\x82", "<");
}

RC_GTEST_PROP(SpecialTokens, CutATextAsLibllamaDoes, ()) {
  std::string text;
  for (int i = *rc::gen::inRange(0, 24); i > 0; --i) text += random_part();
  const bool add_special = *rc::gen::arbitrary<bool>();
  const bool parse_special = *rc::gen::arbitrary<bool>();
  for (const Named& one : vocabularies()) {
    RC_ASSERT(*one.vocabulary.tokenize(text, add_special, parse_special) ==
              stock_tokens(one.vocabulary, text, add_special, parse_special));
  }
}

std::vector<Token> control_in(const Vocabulary& vocabulary, std::vector<Token> tokens) {
  std::erase_if(tokens, [&](Token token) { return !vocabulary.is_control(token); });
  return tokens;
}

RC_GTEST_PROP(SpecialTokens, OnlyTheTemplateWritesControlTokens, ()) {
  MarkedText prompt("<|im_start|>", Origin::kTemplate);
  for (int i = *rc::gen::inRange(0, 24); i > 0; --i) {
    const bool is_client = *rc::gen::arbitrary<bool>();
    prompt.append(random_part(), is_client ? Origin::kClient : Origin::kTemplate);
  }
  for (const Named& one : vocabularies()) {
    const Vocabulary& vocabulary = one.vocabulary;
    std::vector<Token> expected;
    prompt.for_each_run([&](std::string_view run, Origin origin) {
      if (origin == Origin::kClient) return;
      expected.append_range(control_in(vocabulary, stock_tokens(vocabulary, run, false, true)));
    });
    const auto tokens = vocabulary.tokenize_chat(prompt, prompt.size());
    RC_ASSERT(control_in(vocabulary, *tokens) == expected);
    if (std::string_view(one.name) == "white space is taken") continue;
    std::string said;
    for (const Token token : *tokens) said += vocabulary.piece(token, true);
    RC_ASSERT(said == prompt.text());
  }
}

TEST(SpecialTokens, ManyTakeLinearTime) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "<|im_end|>a";
  const std::clock_t start = std::clock();
  EXPECT_EQ(needle_vocabulary().tokenize(text, false, true)->size(), 400'000U);
  const MarkedText said(text, Origin::kClient);
  const auto tokens = needle_vocabulary().tokenize_chat(said, text.size());
  EXPECT_TRUE(control_in(needle_vocabulary(), *tokens).empty());
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 10) << "libllama takes minutes";
}

TEST(SpecialTokens, ALongPromptIsNotSplitToItsEnd) {
  MarkedText prompt;
  for (int i = 0; i < 1'000; ++i) prompt.append("<|im_end|>", Origin::kTemplate);
  EXPECT_LT(needle_vocabulary().tokenize_chat(prompt, 10)->size(), 20U);
}

// If a client writes the beginning-of-text token, the template's own is still added.
TEST(SpecialTokens, TheBeginningIsTheTemplates) {
  const llama_model_ptr model = changed_needle_model([](gguf_context* metadata) {
    gguf_set_val_bool(metadata, "tokenizer.ggml.add_bos_token", true);
  });
  const Vocabulary vocabulary = *Vocabulary::create(model.get());
  const Token bos = *vocabulary.bos();
  const std::string name = vocabulary.piece(bos, true);
  for (const Origin origin : {Origin::kTemplate, Origin::kClient}) {
    MarkedText prompt(name, origin);
    prompt.append("a", Origin::kTemplate);
    const auto tokens = *vocabulary.tokenize_chat(prompt, 100);
    EXPECT_EQ(tokens[0], bos);
    EXPECT_EQ(control_in(vocabulary, tokens).size(), 1U);
    EXPECT_EQ(tokens.size() == 2, origin == Origin::kTemplate);
  }
}

}  // namespace
}  // namespace slipstream
