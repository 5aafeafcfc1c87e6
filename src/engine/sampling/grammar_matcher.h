// GrammarMatcher: how far an answer has come in its grammar, and which tokens may follow.
//
// All ways to read the answer so far are followed at once, each a stack of places to return to. The
// stacks share their lower parts: a node is a place in the grammar and the node below it, and the
// same node is never made twice, so that ways that have met again are one. What one token may cost
// is limited (GrammarLimits::grammar_steps_max): libllama's matcher takes seconds per token on 60 bytes
// such as `root ::= "a" root "b" | "a" root "c" | "a" root "d"`, nine times as long for each "a".
//
// Threads: thread-compatible.
// Errors:  kInvalidArgument for a grammar too ambiguous to follow; the matcher is then of no more
// use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/sampling/grammar.h"
#include "engine/sampling/grammar_limits.h"
#include "engine/text/token_pieces.h"

namespace slipstream {

class GrammarMatcher {
 public:
  // A token that needs more than `n_steps_max` is an error.
  [[nodiscard]] static Result<GrammarMatcher> create(
      Grammar grammar, std::size_t n_steps_max = kGrammarLimits.grammar_steps_max);

  // Goes on by the token. False, and all stays as it was, if the grammar does not allow it. Tokens
  // that end an answer are allowed where the grammar may end.
  [[nodiscard]] Result<bool> accept(Token token, const TokenPieces& pieces);
  // Of all tokens, whether accept() would take them.
  [[nodiscard]] Result<void> find_allowed(const TokenPieces& pieces, std::vector<bool>& allowed);

 private:
  using NodeId = std::uint32_t;
  static constexpr NodeId kBottom = 0;  // as a stack: nothing left to match

  struct Node {
    std::uint32_t symbol;   // the place in the grammar
    NodeId below;           // always less than the node's own
    std::uint64_t visited;  // in which step
  };
  // The bytes of a character so far, where a token ended inside of it.
  struct PartialChar {
    std::uint32_t value = 0;
    std::uint8_t n_bytes = 0;  // 0: none
    std::uint8_t n_left = 0;
  };
  // After some bytes of a token: stacks_[first, last), none if they are not allowed.
  struct Frame {
    std::size_t first;
    std::size_t last;
    PartialChar partial;
  };

  struct Place {
    std::uint32_t symbol;
    NodeId below;
  };

  GrammarMatcher(Grammar grammar, std::size_t n_steps_max);

  // Nodes and stacks.
  [[nodiscard]] static std::size_t hash_of(Place place);
  [[nodiscard]] NodeId node_at(Place place);
  void rebuild_index();
  void collect();
  void follow(std::uint32_t symbol_idx, NodeId below);
  // Frames.
  void restart();
  void rewind(std::size_t n_bytes);
  void charge(std::size_t n_steps);
  void charge_looks(std::size_t n_stacks);
  [[nodiscard]] bool push_byte(unsigned char byte);
  [[nodiscard]] bool push_char(char32_t code_point);
  [[nodiscard]] static std::optional<CharClass::Range> range_of(const PartialChar& partial);
  // Tokens.
  [[nodiscard]] bool follow_token(Token token, bool after_text);
  void allow_by_id(const TokenPieces& pieces, std::vector<bool>& allowed) const;
  [[nodiscard]] bool may_end() const;
  [[nodiscard]] Result<void> check_cost() const;

  Grammar grammar_;
  std::vector<Node> nodes_;
  std::vector<NodeId> index_;  // open-addressed by the node's contents; kBottom: free
  std::uint64_t step_ = 0;     // the next character or token
  std::size_t n_steps_max_;    // for one token
  std::size_t n_steps_left_;
  std::size_t n_nodes_to_collect_;

  std::vector<NodeId> stacks_;  // where the answer stands, then those of the frames
  std::vector<Frame> frames_;   // [0]: the answer so far
  std::vector<Place> todo_;
};

}  // namespace slipstream
