// Needles: names planted in a long text and asked for afterwards, over depth (tokens of the text)
// and position (where in it), in three kinds:
//
//   single       one name, asked for as it was said
//   several      a name at every position of one text, each asked for
//   paraphrased  one name, said and asked for in other words
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
// Below this a text has no room for five names and a question.
inline constexpr int kNeedleDepthMin = 192;

struct Needle {
  std::string kind;
  int depth = 0;
  double position = 0;  // 0: at the beginning, 1: at the end
  std::string name;     // what is right
  std::string text;     // the text and the question: what a user says
};

// n_tokens of text as it is read by the model whose needles these are, different for each `place`.
using Hay = std::function<std::string(std::size_t place, std::size_t n_tokens)>;

// n_texts of each kind, depth and position. The same for every scheme.
[[nodiscard]] std::vector<Needle> make_needles(std::span<const int> depths, int n_texts,
                                               const Hay& hay);

// Whether an answer says the name, in whatever case.
[[nodiscard]] bool answers(std::string_view answer, std::string_view name);

}  // namespace slipstream::quality
