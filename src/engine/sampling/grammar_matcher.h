// GrammarMatcher: how far an answer has come in its grammar, and which tokens may follow.
//
// It follows all ways to read the answer so far at once. Each way is a stack of places to return
// to. Stacks share their lower parts: a node is a place in the grammar and the node below it. Nodes
// are unique, so that ways that meet again become one. The cost per token is limited
// (GrammarLimits::grammar_steps_max): libllama's matcher takes seconds per token on 60 bytes such
// as `root ::= "a" root "b" | "a" root "c" | "a" root "d"`, nine times as long for each "a".
//
// Threads: thread-compatible.
// Errors:  kInvalidArgument for a grammar too ambiguous to follow; the matcher is then unusable.
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

  // Advances by the token. Returns false and changes nothing if the grammar does not allow it.
  // Tokens that end an answer are allowed where the grammar may end.
  [[nodiscard]] Result<bool> accept(Token token, const TokenPieces& pieces);
  // For each token, whether accept() would return true.
  [[nodiscard]] Result<void> find_allowed(const TokenPieces& pieces, std::vector<bool>& allowed);

 private:
  using NodeId = std::uint32_t;
  static constexpr NodeId kBottom = 0;  // as a stack: nothing left to match

  struct Node {
    std::uint32_t symbol;   // the place in the grammar
    NodeId below;           // always less than the node's own id
    std::uint64_t visited;  // the step that visited it last
  };
  // The bytes so far of a character in which a token ended.
  struct PartialChar {
    std::uint32_t value = 0;
    std::uint8_t n_bytes = 0;  // 0: none
    std::uint8_t n_left = 0;
  };
  // After some bytes of a token: stacks_[first, last).
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
  [[nodiscard]] bool follow_token(Token token, bool has_text, bool after_text);
  void allow_by_id(const TokenPieces& pieces, std::vector<bool>& allowed) const;
  [[nodiscard]] bool may_end() const;
  [[nodiscard]] Result<void> check_cost() const;

  Grammar grammar_;
  std::vector<Node> nodes_;
  std::vector<NodeId> index_;  // open-addressed by the node's contents; kBottom: free
  std::uint64_t step_ = 0;     // counts characters and tokens
  std::size_t n_steps_max_;    // for one token
  std::size_t n_steps_left_;
  std::size_t n_nodes_to_collect_;

  std::vector<NodeId> stacks_;  // those of the answer, then those of the frames
  std::vector<Frame> frames_;   // [0]: the answer so far; then one per byte
  std::vector<Place> todo_;
};

}  // namespace slipstream
