// Questions that the needle model answers only from the text before them
// (tests/fixtures/README.md).
#pragma once

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace slipstream {

inline const std::string& haystack() {
  static const std::string text = [] {
    std::ifstream file(SLIPSTREAM_HAYSTACK, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }();
  return text;
}

struct Needle {
  std::string name;
  std::string prompt;

  // As the model was trained to say it.
  [[nodiscard]] bool is_answered_by(const std::string& text) const { return text.contains(name); }
};

// A name that is planted in n_chars of text and asked for, in the model's chat template.
inline Needle make_needle(unsigned seed, std::size_t n_chars = 1500) {
  static const std::vector<std::string> words = {
      "acorn",   "anchor", "apple",  "badger",  "banjo",  "barley", "basket", "beach",   "berry",
      "blanket", "bottle", "bread",  "bridge",  "bucket", "butter", "button", "cabin",   "camel",
      "candle",  "carpet", "carrot", "castle",  "cherry", "circus", "coffee", "comet",   "copper",
      "cotton",  "crown",  "desert", "dolphin", "dragon", "eagle",  "engine", "feather", "forest",
      "garden",  "ginger", "glove",  "hammer",  "harbor", "honey",  "island", "jacket",  "kettle"};
  std::mt19937 random(seed);
  const std::string first = words[random() % words.size()];
  std::string last = first;
  while (last == first) last = words[random() % words.size()];
  const std::string name = first + " " + last;
  const std::size_t start = random() % (haystack().size() - n_chars);
  const std::string text = haystack().substr(start, n_chars);
  const std::size_t middle = text.find(' ', text.size() / 4 + random() % (text.size() / 2));
  return {.name = name,
          .prompt = "<|im_start|>user\n" + text.substr(0, middle) + "\nWe met " + name +
                    " today.\n" + text.substr(middle) + "\nWhat is the full name of " + first +
                    "?<|im_end|>\n<|im_start|>assistant\n"};
}

}  // namespace slipstream
