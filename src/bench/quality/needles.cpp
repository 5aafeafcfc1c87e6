#include "bench/quality/needles.h"

#include <algorithm>
#include <array>
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

bool wants_kind(std::span<const std::string> kinds, std::string_view kind) {
  return std::ranges::contains(kinds, kind);
}

bool wants_shared_text(std::span<const std::string> kinds) {
  return std::ranges::any_of(kinds, [](const std::string& kind) { return kind != "single"; });
}

// Names that no other name of the text is like.
bool wants_lone_names(std::span<const std::string> kinds) {
  return wants_kind(kinds, "several") || wants_kind(kinds, "paraphrased");
}

// The names in the text that several questions share.
int n_shared_names(std::span<const std::string> kinds) {
  const auto n_positions = static_cast<int>(kNeedlePositions.size());
  return (wants_lone_names(kinds) ? n_positions : 0) +
         (wants_kind(kinds, "alike") ? 2 * n_positions : 0);
}

// The words that names are made of. All words of a text are different, so that a first name belongs
// to one person.
class NameDraw {
 public:
  explicit NameDraw(std::mt19937& random)
      : random_(random),
        words_(kNameWords.begin(), kNameWords.end()),
        pairs_(kWordsAlike.begin(), kWordsAlike.end()) {}

  // Before any name(), which may take one of their words.
  std::array<std::string, 2> names_alike() {
    const std::array<std::string_view, 2> firsts = draw(pairs_);
    for (const std::string_view first : firsts) std::erase(words_, first);
    return {format_text("{} {}", firsts[0], draw_word_not_alike()),
            format_text("{} {}", firsts[1], draw_word_not_alike())};
  }

  std::string name() {
    const std::string_view first = draw(words_);
    return format_text("{} {}", first, draw(words_));
  }

 private:
  template <class T>
  T draw(std::vector<T>& from) {
    const auto at = from.begin() + static_cast<std::ptrdiff_t>(random_() % from.size());
    T drawn = *at;
    from.erase(at);
    return drawn;
  }

  // A word of no pair: a later pair may still need it.
  std::string_view draw_word_not_alike() {
    while (true) {
      const std::string_view word = words_[random_() % words_.size()];
      const bool is_in_pair = std::ranges::any_of(
          kWordsAlike, [&](const auto& pair) { return std::ranges::contains(pair, word); });
      if (is_in_pair) continue;
      std::erase(words_, word);
      return word;
    }
  }

  std::mt19937& random_;
  std::vector<std::string_view> words_;
  std::vector<std::array<std::string_view, 2>> pairs_;
};

class Builder {
 public:
  Builder(std::span<const std::string> kinds, const Hay& hay) : kinds_(kinds), hay_(hay) {}

  void add_single(int depth, double position) {
    const std::string name = NameDraw(random_).name();
    const auto n_hay = static_cast<std::size_t>(depth - kTokensOfName - kTokensOfQuestion);
    const auto n_before = static_cast<std::size_t>(position * static_cast<double>(n_hay));
    const std::string text = format_text("{}\n{}\n{}\n{}", more_hay(n_before), say(0, name),
                                         more_hay(n_hay - n_before), ask(0, name));
    needles.push_back(
        {.kind = "single", .depth = depth, .position = position, .name = name, .text = text});
  }

  // One text for all kinds but `single`.
  void add_shared(int depth) {
    const std::size_t n = kNeedlePositions.size();
    NameDraw words(random_);
    std::vector<std::vector<std::string>> alike(n);  // at each position
    for (std::size_t i = 0; wants_kind(kinds_, "alike") && i < n; ++i) {
      const std::array<std::string, 2> pair = words.names_alike();
      alike[i].push_back(pair[0]);
      alike[(i + n / 2) % n].push_back(pair[1]);
    }
    std::vector<std::vector<std::string>> lone(n);
    for (std::size_t i = 0; wants_lone_names(kinds_) && i < n; ++i) lone[i].push_back(words.name());

    const auto n_hay = static_cast<std::size_t>(depth - n_shared_names(kinds_) * kTokensOfName -
                                                kTokensOfQuestion);
    std::string text;
    std::size_t form = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (const auto* names : {&lone[i], &alike[i]}) {
        for (const std::string& name : *names) text += format_text("{}\n", say(form++, name));
      }
      if (i + 1 < n) text += more_hay(n_hay / (n - 1)) + "\n";
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (wants_kind(kinds_, "several")) add("several", depth, i, lone[i], text, 0);
      if (wants_kind(kinds_, "paraphrased")) add("paraphrased", depth, i, lone[i], text, 1 + i % 3);
      add("alike", depth, i, alike[i], text, 0);
    }
  }

  std::vector<Needle> needles;

 private:
  void add(const char* kind, int depth, std::size_t position, std::span<const std::string> names,
           const std::string& text, std::size_t form) {
    for (const std::string& name : names) {
      needles.push_back({.kind = kind,
                         .depth = depth,
                         .position = kNeedlePositions[position],
                         .name = name,
                         .text = text + ask(form, name)});
    }
  }

  std::string more_hay(std::size_t n_tokens) {
    if (n_tokens == 0) return {};
    return hay_(random_(), n_tokens);
  }

  std::span<const std::string> kinds_;
  const Hay& hay_;
  std::mt19937 random_{7};  // used without distributions, which differ between libraries
};

}  // namespace

int needle_depth_min(std::span<const std::string> kinds) {
  constexpr int kHayMin = 32;
  return std::max(n_shared_names(kinds), 1) * kTokensOfName + kTokensOfQuestion + kHayMin;
}

int n_needle_texts_read(std::span<const std::string> kinds, int n_texts) {
  const int n_single = wants_kind(kinds, "single") ? static_cast<int>(kNeedlePositions.size()) : 0;
  return n_texts * (n_single + (wants_shared_text(kinds) ? 1 : 0));
}

std::vector<Needle> make_needles(std::span<const std::string> kinds, std::span<const int> depths,
                                 int n_texts, const Hay& hay) {
  Builder builder(kinds, hay);
  for (const int depth : depths) {
    SLIP_CHECK(depth >= needle_depth_min(kinds), "too few tokens for needles");
    for (int i = 0; i < n_texts; ++i) {
      if (wants_kind(kinds, "single")) {
        for (const double position : kNeedlePositions) builder.add_single(depth, position);
      }
      if (wants_shared_text(kinds)) builder.add_shared(depth);
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
