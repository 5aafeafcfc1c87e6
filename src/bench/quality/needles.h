// Needles: names planted in a long text and asked for afterwards, by depth (tokens of the text) and
// position in the text. There are three kinds:
//
//   single       one name, asked for in the words in which it was stated
//   several      a name at every position of one text, each asked for
//   paraphrased  one name, stated and asked for in different words
//
// The sentences are plain English and the same for every model.
//
// Threads: pure functions. Errors: none; a depth too small for its names is a bug of the caller.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream::quality {

inline constexpr std::array<double, 5> kNeedlePositions = {0, 0.25, 0.5, 0.75, 1};
inline constexpr std::array<std::string_view, 3> kNeedleKinds = {"single", "several",
                                                                 "paraphrased"};
// Below this depth a text has no room for five names and a question.
inline constexpr int kNeedleDepthMin = 192;

struct Needle {
  std::string kind;
  int depth = 0;
  double position = 0;  // 0: the beginning, 1: the end
  std::string name;     // the right answer
  std::string text;     // the user's message: the text and the question
};

// Returns n_tokens of text, counted by the tested model's tokenizer, different for each `place`.
using Hay = std::function<std::string(std::size_t place, std::size_t n_tokens)>;

// Makes n_texts for each kind, depth and position, the same for every scheme.
[[nodiscard]] std::vector<Needle> make_needles(std::span<const int> depths, int n_texts,
                                               const Hay& hay);

// Whether the answer contains the name, ignoring case.
[[nodiscard]] bool answers(std::string_view answer, std::string_view name);

}  // namespace slipstream::quality
