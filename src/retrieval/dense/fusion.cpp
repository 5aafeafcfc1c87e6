#include "retrieval/dense/fusion.h"

#include <algorithm>
#include <cctype>

namespace slipstream {
namespace {

// Fewer words than this are no sentence.
constexpr std::size_t kWordsOfProse = 6;
// Places less near than this are as good as any other: they get no score for it.
constexpr float kCosineFloor = 0.1F;
constexpr float kNear = 0.5F;

bool is_of_a_path(char c) { return c == '/' || c == '_' || c == '"'; }

// "a.b" and "a::b" and "f(", but not the end of a sentence.
bool has_code_signs(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const bool is_joined = std::isalnum(static_cast<unsigned char>(text[i + 1])) != 0 && i > 0 &&
                           std::isalpha(static_cast<unsigned char>(text[i - 1])) != 0;
    if (text[i] == '.' && is_joined) return true;
    if (text.substr(i, 2) == "::" || text.substr(i, 2) == "->" || text.substr(i, 2) == "()")
      return true;
  }
  return false;
}

std::size_t n_words(std::string_view text) {
  std::size_t n = 0;
  bool is_in_word = false;
  for (const char c : text) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!is_space && !is_in_word) ++n;
    is_in_word = !is_space;
  }
  return n;
}

}  // namespace

QueryKind kind_of(const Query& query, std::string_view text) {
  const auto is_name = [](const QueryTerm& term) { return term.is_name; };
  if (std::ranges::any_of(query.terms, is_name) || std::ranges::any_of(text, is_of_a_path) ||
      has_code_signs(text)) {
    return QueryKind::kNames;
  }
  return n_words(text) < kWordsOfProse ? QueryKind::kKeywords : QueryKind::kProse;
}

double weight_of_meaning(QueryKind kind) {
  switch (kind) {
    case QueryKind::kNames: return 0;
    case QueryKind::kKeywords: return 0.2;
    case QueryKind::kProse: return 0.5;
  }
  return 0;
}

std::vector<double> fuse(std::span<const PlaceScores> places, double weight_of_meaning) {
  double best_lexical = 0;
  float best_cosine = kCosineFloor;
  for (const PlaceScores& place : places) {
    best_lexical = std::max(best_lexical, place.lexical);
    best_cosine = std::max(best_cosine, place.cosine.value_or(0));
  }
  std::vector<double> scores;
  for (const PlaceScores& place : places) {
    const double lexical = best_lexical > 0 ? place.lexical / best_lexical : 0;
    double meaning = lexical;  // without a vector the words speak for it
    if (place.cosine && best_cosine > kCosineFloor) {
      meaning = std::max(0.0F, *place.cosine - kCosineFloor) / (best_cosine - kCosineFloor);
    }
    scores.push_back((1 - weight_of_meaning) * lexical + weight_of_meaning * meaning);
  }
  return scores;
}

bool is_near(std::optional<float> cosine) { return cosine.value_or(0) >= kNear; }

}  // namespace slipstream
