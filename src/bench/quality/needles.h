// Needles: names planted in a long text and asked for afterwards, by depth (tokens of the text) and
// position in the text. There are four kinds:
//
//   single       one name in its own text, asked for in the words in which it was stated
//   several      a name at every position of one text, each asked for
//   paraphrased  the same names, asked for in other words
//   alike        names in pairs whose first words begin alike (button, butter), in the same text,
//                far from each other; each of the two is asked for
//
// A far text takes long to read: the last three share one, and only its question changes.
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
inline constexpr std::array<std::string_view, 4> kNeedleKinds = {"single", "several", "paraphrased",
                                                                 "alike"};
// Below this depth a text has no room for all names of these kinds and a question.
[[nodiscard]] int needle_depth_min(std::span<const std::string> kinds);

struct Needle {
  std::string kind;
  int depth = 0;
  double position = 0;  // 0: the beginning, 1: the end
  std::string name;     // the right answer
  std::string text;     // the user's message: the text and the question
};

// Returns n_tokens of text, counted by the tested model's tokenizer, different for each `place`.
using Hay = std::function<std::string(std::size_t place, std::size_t n_tokens)>;

// Makes n_texts for each depth, the same for every scheme. Needles of one text follow each other.
[[nodiscard]] std::vector<Needle> make_needles(std::span<const std::string> kinds,
                                               std::span<const int> depths, int n_texts,
                                               const Hay& hay);

// How many texts are read for each depth. `single` needs one for each position.
[[nodiscard]] int n_needle_texts_read(std::span<const std::string> kinds, int n_texts);

// Whether the answer contains the name, ignoring case.
[[nodiscard]] bool answers(std::string_view answer, std::string_view name);

}  // namespace slipstream::quality
