#include "retrieval/content/chunker.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

std::string text_of(std::string_view text, const Chunk& chunk) {
  return std::string(text.substr(chunk.begin, chunk.end - chunk.begin));
}

// A function of about n_bytes, with a comment above it.
std::string function(const std::string& name, std::size_t n_bytes) {
  std::string text = "// What " + name + " does.\nint " + name + "(int x) {\n";
  while (text.size() + 2 < n_bytes) text += "  x = x * 3 + 1;  // a step\n";
  return text + "}\n";
}

TEST(Chunker, FunctionsStayWholeWithTheirComments) {
  std::string text;
  std::vector<Symbol> symbols;
  int line = 1;
  for (const char* name : {"one", "two", "three", "four"}) {
    const std::string body = function(name, 900);
    const int n_lines = static_cast<int>(std::ranges::count(body, '\n'));
    symbols.push_back({.name = name,
                       .kind = "function",
                       .scope = "",
                       .first_line = line + 1,
                       .last_line = line + n_lines - 1});
    text += body + "\n";
    line += n_lines + 1;
  }
  const std::vector<Chunk> chunks = cut_into_chunks(text, symbols);
  for (const Chunk& chunk : chunks) {
    EXPECT_TRUE(text_of(text, chunk).starts_with("// What ")) << text_of(text, chunk);
  }
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[0].names, "one two");
  EXPECT_EQ(chunks[1].names, "three four");
}

TEST(Chunker, ALongFunctionIsCutAndItsPiecesKnowIt) {
  const std::string text = function("long_one", 10'000) + function("next", 300);
  const int n_lines = static_cast<int>(std::ranges::count(text, '\n'));
  const std::vector<Symbol> symbols = {{.name = "long_one",
                                        .kind = "function",
                                        .scope = "A",
                                        .first_line = 2,
                                        .last_line = n_lines - 14},
                                       {.name = "next",
                                        .kind = "function",
                                        .scope = "",
                                        .first_line = n_lines - 11,
                                        .last_line = n_lines}};
  const std::vector<Chunk> chunks = cut_into_chunks(text, symbols);
  ASSERT_GE(chunks.size(), 5U);
  EXPECT_EQ(chunks[0].names, "A long_one");
  EXPECT_EQ(chunks[1].names, "long_one");
  for (const Chunk& chunk : chunks) {
    EXPECT_LE(chunk.end - chunk.begin, kRetrievalLimits.chunk_bytes_max);
  }
}

TEST(Chunker, ProseIsCutBetweenParagraphs) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += "Paragraph " + std::to_string(i) + " begins.\n";
    for (int j = 0; j < 5; ++j) text += "It goes on with a line of words that says little.\n";
    text += "\n";
  }
  const std::vector<Chunk> chunks = cut_into_chunks(text, {});
  ASSERT_GE(chunks.size(), 3U);
  for (const Chunk& chunk : chunks) {
    EXPECT_TRUE(text_of(text, chunk).starts_with("Paragraph"));
  }
}

TEST(Chunker, AShortTextIsOneChunk) {
  EXPECT_EQ(cut_into_chunks("one\ntwo", {}).size(), 1U);
  EXPECT_TRUE(cut_into_chunks("", {}).empty());
  EXPECT_TRUE(cut_into_chunks("\n \n\t\n", {}).empty());
}

TEST(Chunker, ALineLongerThanAChunkIsOne) {
  const std::string text = "short\n" + std::string(100'000, 'x') + "\nshort again\n";
  const std::vector<Chunk> chunks = cut_into_chunks(text, {});
  EXPECT_LE(chunks.size(), 3U);
}

TEST(Chunker, ManySymbolsTakeLinearTime) {
  std::string text;
  std::vector<Symbol> symbols;
  for (int i = 1; i <= 200'000; ++i) {
    text += "# x\n";
    symbols.push_back(
        {.name = "s", .kind = "function", .scope = "", .first_line = i, .last_line = 200'000});
  }
  EXPECT_GT(cut_into_chunks(text, symbols).size(), 100U);
}

RC_GTEST_PROP(Chunker, EveryLineIsInOneChunk, ()) {
  std::string text;
  const int n_lines = *rc::gen::inRange(0, 400);
  for (int i = 0; i < n_lines; ++i) {
    text += std::string(*rc::gen::inRange<std::size_t>(0, 8), ' ') +
            std::string(*rc::gen::element<std::size_t>(0, 1, 40, 70, 4000), 'x') + "\n";
  }
  std::vector<Symbol> symbols;
  int line = 0;
  while (true) {
    line += *rc::gen::inRange(0, 60);
    if (line > n_lines + 5) break;
    symbols.push_back({.name = "f",
                       .kind = "function",
                       .scope = "",
                       .first_line = line,
                       .last_line = line + *rc::gen::inRange(-1, 90)});
    ++line;
  }
  std::size_t at = 0;
  int last_line = 0;
  for (const Chunk& chunk : cut_into_chunks(text, symbols)) {
    RC_ASSERT(chunk.begin >= at && chunk.end > chunk.begin && chunk.end <= text.size());
    RC_ASSERT(chunk.first_line > last_line && chunk.last_line >= chunk.first_line);
    // What is between chunks is blank.
    RC_ASSERT(text.substr(at, chunk.begin - at).find_first_not_of(" \n") == std::string::npos);
    RC_ASSERT(std::ranges::count(text.substr(chunk.begin, chunk.end - chunk.begin), '\n') ==
              chunk.last_line - chunk.first_line + 1);
    at = chunk.end;
    last_line = chunk.last_line;
  }
  RC_ASSERT(text.substr(at).find_first_not_of(" \n") == std::string::npos);
}

}  // namespace
}  // namespace slipstream
