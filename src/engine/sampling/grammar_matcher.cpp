#include "engine/sampling/grammar_matcher.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace slipstream {
namespace {

using Kind = GrammarSymbol::Kind;

constexpr std::size_t kNodesToCollectMin = 4096;
constexpr std::size_t kLooksPerStep = 8;

}  // namespace

std::size_t GrammarMatcher::hash_of(Place place) {
  const std::uint64_t both = (std::uint64_t{place.symbol} << 32) | place.below;
  return static_cast<std::size_t>((both * 0x9E3779B97F4A7C15U) >> 32);  // Fibonacci hashing
}

GrammarMatcher::GrammarMatcher(Grammar grammar, std::size_t n_steps_max)
    : grammar_(std::move(grammar)),
      nodes_{{.symbol = 0, .below = kBottom, .visited = 0}},
      index_(64, kBottom),
      n_steps_max_(n_steps_max),
      n_steps_left_(n_steps_max),
      n_nodes_to_collect_(kNodesToCollectMin) {}

Result<GrammarMatcher> GrammarMatcher::create(Grammar grammar, std::size_t n_steps_max) {
  GrammarMatcher matcher(std::move(grammar), n_steps_max);
  ++matcher.step_;
  for (const std::uint32_t start : matcher.grammar_.alternatives(matcher.grammar_.root())) {
    matcher.follow(start, kBottom);
  }
  matcher.frames_.push_back({0, matcher.stacks_.size(), {}});
  if (const Result<void> cost = matcher.check_cost(); !cost) return std::unexpected(cost.error());
  return matcher;
}

Result<bool> GrammarMatcher::accept(Token token, const TokenPieces& pieces) {
  restart();
  if (pieces.is_end(token)) return may_end();
  const std::string_view piece = pieces.piece(token);
  bool as_text = !piece.empty();
  for (std::size_t i = 0; as_text && i < piece.size(); ++i) {
    as_text = push_byte(static_cast<unsigned char>(piece[i]));
  }
  const Frame text = frames_.back();
  const std::size_t first_by_id = stacks_.size();
  const bool by_id = follow_token(token, !piece.empty(), as_text && text.partial.n_left == 0);
  if (const Result<void> cost = check_cost(); !cost) return std::unexpected(cost.error());
  if (!as_text && !by_id) return false;
  // Inside a character, only one of the readings can continue; the one by id is already certain.
  if (by_id && text.partial.n_left > 0) as_text = false;
  const std::size_t first = as_text ? text.first : first_by_id;
  const std::size_t last = by_id ? stacks_.size() : text.last;
  stacks_.resize(last);
  stacks_.erase(stacks_.begin(), stacks_.begin() + static_cast<std::ptrdiff_t>(first));
  frames_.assign(1, {0, last - first, as_text ? text.partial : PartialChar{}});
  return true;
}

Result<void> GrammarMatcher::find_allowed(const TokenPieces& pieces, std::vector<bool>& allowed) {
  restart();
  allowed.assign(pieces.n_tokens(), false);
  if (may_end()) {
    for (const Token token : pieces.ends()) allowed[static_cast<std::size_t>(token)] = true;
  }
  // Adjacent tokens share the frames of their common bytes.
  std::string_view previous;
  for (const Token token : pieces.sorted()) {
    const std::string_view piece = pieces.piece(token);
    const auto n_common =
        static_cast<std::size_t>(std::ranges::mismatch(previous, piece).in1 - previous.begin());
    const std::size_t n_alive = frames_.size() - 1;
    if (n_alive < previous.size() && n_common > n_alive) continue;  // fails at the same byte
    rewind(std::min(n_common, n_alive));
    previous = piece;
    bool alive = true;
    for (std::size_t i = frames_.size() - 1; alive && i < piece.size(); ++i) {
      alive = push_byte(static_cast<unsigned char>(piece[i]));
    }
    allowed[static_cast<std::size_t>(token)] = alive;
    if (n_steps_left_ == 0) break;
  }
  rewind(0);
  allow_by_id(pieces, allowed);
  return check_cost();
}

void GrammarMatcher::allow_by_id(const TokenPieces& pieces, std::vector<bool>& allowed) const {
  const Frame& now = frames_.front();
  if (now.partial.n_left > 0) return;
  constexpr Token kNone = -1;
  Token excluded = kNone;  // by the first "any token but this"
  for (std::size_t i = now.first; i < now.last; ++i) {
    if (stacks_[i] == kBottom) continue;
    const GrammarSymbol& symbol = grammar_.symbol(nodes_[stacks_[i]].symbol);
    const auto id = static_cast<Token>(symbol.value);
    if (symbol.kind == Kind::kToken && !pieces.is_end(id)) {
      allowed[symbol.value] = true;
    } else if (symbol.kind == Kind::kNotToken && excluded == kNone) {
      excluded = id;
      for (const Token token : pieces.sorted()) {
        if (token != id) allowed[static_cast<std::size_t>(token)] = true;
      }
    } else if (symbol.kind == Kind::kNotToken && id != excluded && !pieces.is_end(excluded) &&
               !pieces.piece(excluded).empty()) {
      allowed[static_cast<std::size_t>(excluded)] = true;  // then no token is excluded by all
    }
  }
}

// Follows the places where the grammar names or does not exclude the token. True if there are any.
// A token without text must be named, as in libllama: no answer should consist of nothing.
bool GrammarMatcher::follow_token(Token token, bool has_text, bool after_text) {
  const Frame& now = frames_.front();
  if (now.partial.n_left > 0) return false;
  ++step_;
  if (after_text) {
    const Frame& text = frames_.back();
    for (std::size_t i = text.first; i < text.last; ++i) nodes_[stacks_[i]].visited = step_;
  }
  bool found = false;
  for (std::size_t i = now.first; i < now.last; ++i) {
    if (stacks_[i] == kBottom) continue;
    const Node top = nodes_[stacks_[i]];
    const GrammarSymbol& symbol = grammar_.symbol(top.symbol);
    const bool same = std::cmp_equal(symbol.value, token);
    if ((symbol.kind == Kind::kToken && same) ||
        (symbol.kind == Kind::kNotToken && !same && has_text)) {
      follow(top.symbol + 1, top.below);
      found = true;
    }
  }
  return found;
}

void GrammarMatcher::restart() {
  rewind(0);
  if (nodes_.size() > n_nodes_to_collect_) collect();
  n_steps_left_ = n_steps_max_;
}

void GrammarMatcher::rewind(std::size_t n_bytes) {
  frames_.resize(n_bytes + 1);
  stacks_.resize(frames_.back().last);
}

// Adds a frame for one more byte. Returns false and adds none if the grammar does not allow it.
bool GrammarMatcher::push_byte(unsigned char byte) {
  const Frame& top = frames_.back();
  PartialChar partial = top.partial;
  if (partial.n_left > 0) {
    if ((byte & 0xC0U) != 0x80) return false;
    partial.value = (partial.value << 6) | (byte & 0x3FU);
    --partial.n_left;
  } else if (byte < 0x80) {
    return push_char(byte);
  } else if ((byte & 0xE0U) == 0xC0) {
    partial = {byte & 0x1FU, 2, 1};
  } else if ((byte & 0xF0U) == 0xE0) {
    partial = {byte & 0x0FU, 3, 2};
  } else if ((byte & 0xF8U) == 0xF0) {
    partial = {byte & 0x07U, 4, 3};
  } else {
    return false;
  }
  const std::optional<CharClass::Range> range = range_of(partial);
  if (!range) return false;
  if (partial.n_left > 0) charge_looks(top.last - top.first);
  if (partial.n_left == 0) return push_char(range->first);
  const bool possible = std::any_of(
      stacks_.begin() + static_cast<std::ptrdiff_t>(top.first),
      stacks_.begin() + static_cast<std::ptrdiff_t>(top.last), [&](NodeId id) {
        return id != kBottom && grammar_.matches_any(grammar_.symbol(nodes_[id].symbol), *range);
      });
  if (possible) frames_.push_back({top.first, top.last, partial});
  return possible;
}

// The characters that it may become; none if it is not UTF-8.
std::optional<CharClass::Range> GrammarMatcher::range_of(const PartialChar& partial) {
  constexpr char32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};  // by number of bytes
  const unsigned n_bits_left = 6U * partial.n_left;
  const char32_t low = partial.value << n_bits_left;
  const char32_t high = low | ((1U << n_bits_left) - 1);
  const CharClass::Range range{std::max(low, kFirst[partial.n_bytes]),
                               std::min(high, char32_t{0x10FFFF})};
  const bool surrogates = range.first >= 0xD800 && range.last <= 0xDFFF;
  if (range.first > range.last || surrogates) return std::nullopt;
  return range;
}

void GrammarMatcher::charge(std::size_t n_steps) {
  n_steps_left_ -= std::min(n_steps_left_, n_steps);
}

// Charges for stacks that are looked at. Each is cheaper than one that is followed, but there may
// be tens of thousands for every byte of the vocabulary.
void GrammarMatcher::charge_looks(std::size_t n_stacks) { charge(n_stacks / kLooksPerStep); }

bool GrammarMatcher::push_char(char32_t code_point) {
  const Frame top = frames_.back();
  const std::size_t first = stacks_.size();
  charge_looks(top.last - top.first);
  ++step_;
  for (std::size_t i = top.first; i < top.last; ++i) {
    if (stacks_[i] == kBottom) continue;
    const Node node = nodes_[stacks_[i]];
    if (grammar_.matches(grammar_.symbol(node.symbol), code_point)) {
      follow(node.symbol + 1, node.below);
    }
  }
  if (stacks_.size() == first) return false;
  frames_.push_back({first, stacks_.size(), {}});
  return true;
}

// Adds to stacks_ all stacks from this place on that start with a character or token to match.
void GrammarMatcher::follow(std::uint32_t symbol_idx, NodeId below) {
  todo_.assign(1, {symbol_idx, below});
  charge(1);
  while (!todo_.empty() && n_steps_left_ > 0) {
    Place place = todo_.back();
    todo_.pop_back();
    // Only places with something after them are returned to (see below), so this ends at once.
    while (grammar_.symbol(place.symbol).kind == Kind::kEnd && place.below != kBottom) {
      place = {nodes_[place.below].symbol, nodes_[place.below].below};
    }
    const GrammarSymbol& symbol = grammar_.symbol(place.symbol);
    const NodeId id = symbol.kind == Kind::kEnd ? kBottom : node_at(place);
    if (n_steps_left_ == 0) return;
    if (std::exchange(nodes_[id].visited, step_) == step_) continue;
    if (symbol.kind != Kind::kRule) {
      stacks_.push_back(id);
      continue;
    }
    const bool is_last = grammar_.symbol(place.symbol + 1).kind == Kind::kEnd;
    const NodeId next = is_last ? place.below : node_at({place.symbol + 1, place.below});
    const std::span<const std::uint32_t> alternatives = grammar_.alternatives(symbol.value);
    charge(alternatives.size());  // also those that lead to a place that was visited
    for (const std::uint32_t start : alternatives) todo_.push_back({start, next});
  }
}

GrammarMatcher::NodeId GrammarMatcher::node_at(Place place) {
  std::size_t slot = hash_of(place) & (index_.size() - 1);
  for (; index_[slot] != kBottom; slot = (slot + 1) & (index_.size() - 1)) {
    const Node& node = nodes_[index_[slot]];
    if (node.symbol == place.symbol && node.below == place.below) return index_[slot];
  }
  if (nodes_.size() >= kGrammarLimits.grammar_nodes_max) {
    n_steps_left_ = 0;
    return kBottom;
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back({place.symbol, place.below, 0});
  index_[slot] = id;
  if (2 * nodes_.size() > index_.size()) rebuild_index();
  return id;
}

void GrammarMatcher::rebuild_index() {
  index_.assign(4 * std::bit_ceil(nodes_.size()), kBottom);
  for (std::size_t id = 1; id < nodes_.size(); ++id) {
    std::size_t slot = hash_of({nodes_[id].symbol, nodes_[id].below}) & (index_.size() - 1);
    while (index_[slot] != kBottom) slot = (slot + 1) & (index_.size() - 1);
    index_[slot] = static_cast<NodeId>(id);
  }
}

// Removes the nodes that no stack of the answer needs. Nodes refer to earlier ones, so one pass
// from the last to the first finds all that are needed, and one pass forward moves them together.
void GrammarMatcher::collect() {
  std::vector<NodeId> moved(nodes_.size(), kBottom);
  constexpr NodeId kNeeded = 1;
  for (const NodeId id : stacks_) moved[id] = kNeeded;
  for (std::size_t id = nodes_.size() - 1; id > 0; --id) {
    if (moved[id] == kNeeded) moved[nodes_[id].below] = kNeeded;
  }
  moved[kBottom] = kBottom;
  NodeId n_kept = 1;
  for (std::size_t id = 1; id < nodes_.size(); ++id) {
    if (moved[id] != kNeeded) continue;
    nodes_[n_kept] = {nodes_[id].symbol, moved[nodes_[id].below], 0};
    moved[id] = n_kept++;
  }
  nodes_.resize(n_kept);
  for (NodeId& id : stacks_) id = moved[id];
  rebuild_index();
  n_nodes_to_collect_ = std::max(kNodesToCollectMin, 2 * nodes_.size());
}

bool GrammarMatcher::may_end() const {
  const Frame& now = frames_.front();
  const auto first = stacks_.begin() + static_cast<std::ptrdiff_t>(now.first);
  const auto last = stacks_.begin() + static_cast<std::ptrdiff_t>(now.last);
  return now.partial.n_left == 0 && std::find(first, last, kBottom) != last;
}

Result<void> GrammarMatcher::check_cost() const {
  if (n_steps_left_ > 0) return {};
  return fail(Code::kInvalidArgument,
              "the grammar is too ambiguous: the ways to read the answer so far are too many");
}

}  // namespace slipstream
