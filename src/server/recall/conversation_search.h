// ConversationSearch: finds what was said earlier in a conversation.
//
// It is told what was said, turn by turn, and cuts that into pieces. Short messages of one turn are
// one piece, so that an answer stands beside its question. Pieces are ranked by BM25 over words as
// the index of files has them: stems of prose, parts of identifiers. It lives as long as a request,
// and nothing of it is kept.
//
// Threads: thread-compatible. Errors: none; a question without words finds nothing.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/text/words.h"

namespace slipstream {

class ConversationSearch {
 public:
  using PieceId = std::uint32_t;  // in the order in which they were said
  struct Piece {
    std::string text;  // with who said it at the beginning of a line; other lines are indented
    std::size_t n_bytes = 0;  // of what was said
    double n_tokens = 0;
    std::uint32_t n_words = 0;
  };

  void begin_turn() { is_open_ = false; }
  // The next message of the turn. n_tokens: those of its text.
  void add(std::string_view who, std::string_view text, std::size_t n_tokens);
  // The pieces that answer best, the best first.
  [[nodiscard]] std::vector<PieceId> find(std::string_view question);
  [[nodiscard]] const Piece& piece(PieceId id) const { return pieces_[id]; }
  [[nodiscard]] std::size_t n_pieces() const { return pieces_.size(); }

 private:
  // Where a word stands: a list for each word, the last place first.
  struct Place {
    PieceId piece;
    std::uint32_t count;
    std::uint32_t next;
  };
  struct Places {
    std::uint32_t first = 0;
    std::uint32_t n = 0;
  };
  struct QueryWord {
    Places places;
    double weight;
  };
  void add_words(std::string_view text);
  [[nodiscard]] std::vector<QueryWord> words_of(std::string_view question);

  Words words_;
  std::vector<Piece> pieces_;
  bool is_open_ = false;  // the last piece may get more
  std::uint64_t n_words_ = 0;
  std::vector<Place> places_;
  // By the hash of the word: the words themselves would take most of the memory. Two words with one
  // hash only spoil the ranking of both.
  boost::unordered_flat_map<std::size_t, Places> places_of_;
  std::vector<double> scores_;  // of each piece; zero between searches
};

}  // namespace slipstream
