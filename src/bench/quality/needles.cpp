#include "bench/quality/needles.h"

#include <algorithm>
#include <random>

#include "base/check.h"
#include "base/format.h"
#include "bench/quality/name_words.h"

namespace slipstream::quality {
namespace {

// Tokens that are not hay: a planted sentence; the question and the chat template's own text.
constexpr int kTokensOfName = 16;
constexpr int kTokensOfQuestion = 40;

std::string say(std::size_t form, const std::string& name) {
  switch (form % 4) {
    case 0: return format_text("The guest was {}.", name);
    case 1: return format_text("We met {} today.", name);
    case 2: return format_text("A letter from {} came.", name);
    default: return format_text("Then {} called again.", name);
  }
}

std::string ask(std::size_t form, const std::string& name) {
  const std::string first = name.substr(0, name.find(' '));
  switch (form % 4) {
    case 0: return format_text("What is the full name of {}?", first);
    case 1: return format_text("Who is {}?", first);
    case 2: return format_text("Give me the full name of {}.", first);
    default: return format_text("I need the full name of {}.", first);
  }
}

class Builder {
 public:
  explicit Builder(const Hay& hay) : hay_(hay) {}

  void add_single(std::string_view kind, int depth, double position, std::size_t form) {
    const std::string name = names(1).front();
    const auto n_hay = static_cast<std::size_t>(depth - kTokensOfName - kTokensOfQuestion);
    const auto n_before = static_cast<std::size_t>(position * static_cast<double>(n_hay));
    const std::string text = format_text("{}\n{}\n{}\n{}", more_hay(n_before), say(form, name),
                                         more_hay(n_hay - n_before), ask(form, name));
    needles.push_back({.kind = std::string(kind),
                       .depth = depth,
                       .position = position,
                       .name = name,
                       .text = text});
  }

  void add_several(int depth) {
    const std::size_t n = kNeedlePositions.size();
    const std::vector<std::string> all = names(n);
    const auto n_hay =
        static_cast<std::size_t>(depth - static_cast<int>(n) * kTokensOfName - kTokensOfQuestion);
    std::string text;
    for (std::size_t i = 0; i < n; ++i) {
      text += format_text("{}\n", say(i, all[i]));
      if (i + 1 < n) text += more_hay(n_hay / (n - 1)) + "\n";
    }
    for (std::size_t i = 0; i < n; ++i) {
      needles.push_back({.kind = "several",
                         .depth = depth,
                         .position = kNeedlePositions[i],
                         .name = all[i],
                         .text = text + ask(0, all[i])});
    }
  }

  std::vector<Needle> needles;

 private:
  // All words are different, so that a first name belongs to one person.
  std::vector<std::string> names(std::size_t n) {
    std::vector<std::string_view> words(kNameWords.begin(), kNameWords.end());
    std::vector<std::string> all;
    const auto draw = [&] {
      const auto at = words.begin() + static_cast<std::ptrdiff_t>(random_() % words.size());
      const std::string word(*at);
      words.erase(at);
      return word;
    };
    while (all.size() < n) {
      const std::string first = draw();
      all.push_back(format_text("{} {}", first, draw()));
    }
    return all;
  }

  std::string more_hay(std::size_t n_tokens) {
    if (n_tokens == 0) return {};
    return hay_(random_(), n_tokens);
  }

  const Hay& hay_;
  std::mt19937 random_{7};  // used without distributions, which differ between libraries
};

}  // namespace

std::vector<Needle> make_needles(std::span<const int> depths, int n_texts, const Hay& hay) {
  Builder builder(hay);
  for (const int depth : depths) {
    SLIP_CHECK(depth >= kNeedleDepthMin, "too few tokens for needles");
    for (int i = 0; i < n_texts; ++i) {
      for (const double position : kNeedlePositions) {
        builder.add_single("single", depth, position, 0);
      }
      builder.add_several(depth);
      for (std::size_t p = 0; p < kNeedlePositions.size(); ++p) {
        builder.add_single("paraphrased", depth, kNeedlePositions[p], 1 + p % 3);
      }
    }
  }
  return std::move(builder.needles);
}

bool answers(std::string_view answer, std::string_view name) {
  std::string lower(answer);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower.contains(name);
}

}  // namespace slipstream::quality
