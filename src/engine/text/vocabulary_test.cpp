#include "engine/text/vocabulary.h"

#include <gguf.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "base/utf8.h"
#include "engine/sampling/test_model.h"
#include "engine/text/text_limits.h"

namespace slipstream {
namespace {

std::string text_of(const std::vector<Token>& tokens, bool special) {
  std::string text;
  for (const Token token : tokens) text += needle_vocabulary().piece(token, special);
  return text;
}

std::vector<Token> tokens_of(std::string_view text, bool parse_special = false) {
  Result<std::vector<Token>> tokens = needle_vocabulary().tokenize(text, false, parse_special);
  EXPECT_TRUE(tokens.has_value());
  return std::move(*tokens);
}

TEST(Vocabulary, KnowsItsTokens) {
  const Vocabulary& vocabulary = needle_vocabulary();
  EXPECT_EQ(vocabulary.n_tokens(), 2048);
  EXPECT_FALSE(vocabulary.contains(-1));
  EXPECT_TRUE(vocabulary.contains(2047));
  EXPECT_FALSE(vocabulary.contains(2048));
  ASSERT_TRUE(vocabulary.bos() && vocabulary.eos());
  EXPECT_EQ(vocabulary.piece(*vocabulary.bos(), true), "<|endoftext|>");
  EXPECT_EQ(vocabulary.piece(*vocabulary.eos(), true), "<|im_end|>");
  EXPECT_TRUE(vocabulary.is_end(*vocabulary.eos()));
  EXPECT_FALSE(vocabulary.is_end(0));
}

TEST(Vocabulary, ControlTokensAreTextOnlyWhereAsked) {
  EXPECT_EQ(tokens_of("<|im_end|>", true), std::vector<Token>{*needle_vocabulary().eos()});
  EXPECT_GT(tokens_of("<|im_end|>", false).size(), 1U);
  EXPECT_EQ(text_of(tokens_of("a<|im_end|>b", true), true), "a<|im_end|>b");
  EXPECT_EQ(text_of(tokens_of("a<|im_end|>b", true), false), "ab");
}

TEST(Vocabulary, FindsSpecialTokensInAText) {
  const std::vector<Token> expected = {tokens_of("<|im_start|>", true)[0],
                                       *needle_vocabulary().eos()};
  EXPECT_EQ(needle_vocabulary().special_tokens_in("a<|im_start|>, b<|im_end|>\n"), expected);
  EXPECT_TRUE(needle_vocabulary().special_tokens_in("im_start").empty());
}

TEST(Vocabulary, PiecesAreNeverCut) {
  const Vocabulary& vocabulary = needle_vocabulary();
  std::size_t n_longest = 0;
  for (Token token = 0; token < vocabulary.n_tokens(); ++token) {
    n_longest = std::max(n_longest, vocabulary.piece(token, true).size());
  }
  EXPECT_EQ(n_longest, std::string_view("--------------------------------").size());
  EXPECT_EQ(tokens_of(std::string(32, '-')).size(), 1U);
}

TEST(Vocabulary, NulIsAByteLikeAnyOther) {
  const std::string text("a\0b\0", 4);
  EXPECT_EQ(text_of(tokens_of(text), true), text);
  EXPECT_TRUE(tokens_of("").empty());
}

TEST(Vocabulary, RefusesTextsThatAreTooLong) {
  const std::string text(kTextLimits.text_bytes_max + 1, 'a');
  const auto tokens = needle_vocabulary().tokenize(text, true, true);
  EXPECT_EQ(tokens.error().message, "a text of 16777217 bytes is longer than the 16777216 allowed");
}

TEST(Vocabulary, TokenizesLongTexts) {
  const std::string text(1'000'000, 'a');
  EXPECT_EQ(text_of(tokens_of(text), true).size(), text.size());
}

// The needle model's tokens with another pre-tokenizer.
llama_model_ptr with_pre_tokenizer(const char* name) {
  return changed_needle_model(
      [name](gguf_context* model) { gguf_set_val_str(model, "tokenizer.ggml.pre", name); });
}

// libllama splits these with std::regex, which recursed for each character before GCC 16: a long
// enough run ended the process (llama.cpp #26965). A thread with a small stack would show it.
TEST(Vocabulary, LongRunsDoNotRecurse) {
  for (const char* name : {"bloom", "deepseek-llm", "gpt-4o", "tekken"}) {
    const llama_model_ptr model = with_pre_tokenizer(name);
    const auto vocabulary = Vocabulary::create(model.get());
    ASSERT_TRUE(vocabulary.has_value());
    for (const std::string_view unit : {"a", " ", "!", "\n"}) {
      std::string text;
      for (int i = 0; i < 50'000; ++i) text += unit;
      std::size_t n_tokens = 0;
      std::thread([&] {
        n_tokens = vocabulary->tokenize(text, false, true).value_or({}).size();
      }).join();
      EXPECT_GT(n_tokens, 0U) << name << unit;
    }
  }
}

TEST(Vocabulary, LongNumbersTakeLinearTimeAndBecomeTheSameTokens) {
  const llama_model_ptr model = with_pre_tokenizer("superbpe");
  const auto vocabulary = Vocabulary::create(model.get());
  ASSERT_TRUE(vocabulary.has_value());
  for (const int n_digits : {1, 47, 48, 49, 50, 51, 96, 97, 200, 500}) {
    std::string text = "a ";
    for (int i = 0; i < n_digits; ++i) text += static_cast<char>('0' + i % 7);
    text += ", 12345 <|im_end|>";
    EXPECT_EQ(*vocabulary->tokenize(text, true, true), stock_tokens(*vocabulary, text, true, true))
        << n_digits;
  }
  const auto clocks = [&](std::size_t n) {
    const std::clock_t start = std::clock();
    EXPECT_TRUE(vocabulary->tokenize(std::string(n, '7'), true, true).has_value());
    return std::clock() - start;
  };
  // Seconds would depend on machine and sanitizer.
  EXPECT_LT(clocks(200'000), 24 * std::min(clocks(25'000), clocks(25'000)))
      << "for eight times the text; stock takes twenty minutes";
}

TEST(Vocabulary, NoTokenStandsForMoreBytesThanTheLongest) {
  const std::size_t n_max = token_bytes_max(needle_vocabulary());
  EXPECT_LT(n_max, 100U);
  for (Token token = 0; token < needle_vocabulary().n_tokens(); ++token) {
    EXPECT_LE(needle_vocabulary().piece(token, true).size(), n_max);
  }
}

RC_GTEST_PROP(Vocabulary, PiecesGiveBackTheText, (const std::string& bytes)) {
  std::string text;
  append_repaired_utf8(text, bytes);
  RC_ASSERT(text_of(tokens_of(text), true) == text);
}

TEST(Vocabulary, SortedPiecesAreAllButTheEndsInTheOrderOfTheirBytes) {
  const TokenPieces& pieces = needle_vocabulary().pieces();
  EXPECT_EQ(pieces.n_tokens(), 2048U);
  EXPECT_EQ(pieces.ends().size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(pieces.sorted(), {},
                                     [&pieces](Token token) { return pieces.piece(token); }));
  for (const Token token : pieces.sorted()) {
    ASSERT_EQ(pieces.piece(token), needle_vocabulary().piece(token, true));
    ASSERT_FALSE(pieces.is_end(token));
  }
}

TEST(Vocabulary, ManyThreadsMayUseIt) {
  Result<Vocabulary> vocabulary = Vocabulary::create(needle_model());
  ASSERT_TRUE(vocabulary.has_value());
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&vocabulary] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(vocabulary->tokenize("the needle is here", true, true)->size(),
                  tokens_of("the needle is here").size());
        EXPECT_EQ(vocabulary->pieces().piece(0), "!");
      }
    });
  }
}

}  // namespace
}  // namespace slipstream
