#include "retrieval/search/query.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

// Stems, as Words makes them.
bool only_asks(std::string_view term) {
  constexpr auto kAsking = std::to_array<std::string_view>(
      {"a",       "about", "all",   "an",    "and",   "ani", "are",   "as",     "at",   "be",
       "been",    "but",   "by",    "can",   "could", "did", "do",    "doe",    "does", "done",
       "explain", "find",  "for",   "from",  "give",  "had", "has",   "have",   "how",  "i",
       "if",      "in",    "into",  "is",    "it",    "it",  "its",   "let",    "me",   "my",
       "of",      "on",    "or",    "our",   "pleas", "s",   "shall", "should", "show", "so",
       "some",    "t",     "tell",  "than",  "that",  "the", "their", "them",   "then", "there",
       "these",   "they",  "this",  "those", "to",    "us",  "was",   "we",     "were", "what",
       "when",    "where", "which", "while", "who",   "whi", "whose", "will",   "with", "would",
       "you",     "your"});
  return std::ranges::contains(kAsking, term);
}

void add_term(Query& query, QueryTerm term) {
  if (std::ranges::contains(query.terms, term.text, &QueryTerm::text)) return;
  if (query.terms.size() >= kRetrievalLimits.query_terms_max) {
    query.was_cut = true;
    return;
  }
  query.terms.push_back(std::move(term));
}

void add_words(Query& query, std::string_view text, Words& words) {
  words.cut(text, [&](const Term& term) {
    add_term(query, {.text = std::string(term.text),
                     .written = std::string(text.substr(term.begin, term.end - term.begin)),
                     .is_name = term.is_whole,
                     .is_part = term.is_part});
    return !query.was_cut;
  });
}

void add_phrase(Query& query, std::string_view text, Words& words) {
  std::string phrase;
  for (const std::string& term : words.terms(text)) phrase += (phrase.empty() ? "" : " ") + term;
  if (phrase.contains(' '))
    add_term(query, {.text = std::move(phrase), .written = std::string(text)});
  add_words(query, text, words);
}

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Words as they stand in code, without what qualifies them: of "std::string_view::substr", three.
void find_names(Query& query, std::string_view text) {
  constexpr std::size_t kNamesMax = 16;
  constexpr std::size_t kNameBytesMin = 3;
  for (std::size_t at = 0; at < text.size() && query.names.size() < kNamesMax;) {
    if (!is_name_letter(text[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && is_name_letter(text[at])) ++at;
    const std::string name(text.substr(begin, at - begin));
    if (name.size() >= kNameBytesMin && name.size() <= kRetrievalLimits.symbol_bytes_max &&
        !std::ranges::contains(query.names, name)) {
      query.names.push_back(name);
    }
  }
}

}  // namespace

Query read_query(std::string_view text, Words& words) {
  Query query;
  if (text.size() > kRetrievalLimits.query_bytes_max) {
    text = text.substr(0, kRetrievalLimits.query_bytes_max);
    query.was_cut = true;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t quote = std::min(text.find('"', at), text.size());
    add_words(query, text.substr(at, quote - at), words);
    if (quote == text.size()) break;
    const std::size_t end = std::min(text.find('"', quote + 1), text.size());
    add_phrase(query, text.substr(quote + 1, end - quote - 1), words);
    at = end + 1;
  }
  find_names(query, text);
  const auto asks = [](const QueryTerm& term) { return only_asks(term.text); };
  if (!std::ranges::all_of(query.terms, asks)) std::erase_if(query.terms, asks);
  return query;
}

}  // namespace slipstream
