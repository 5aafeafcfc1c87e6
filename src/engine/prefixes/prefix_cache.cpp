// Invariants between any two calls (check_integrity):
//   1. A node has the tokens of positions [first, end). Its children continue at end and differ in
//      their first tokens. The root has no tokens; its children may differ in their salts instead.
//   2. A lease ends at the end of a node and locks it and all nodes above. So n_locks of a node is
//      the sum over its children plus one for each lease that ends there; the root's is the number
//      of leases; and nothing below an unlocked node is locked.
//   3. A node with one child is locked more often than the child; otherwise the two are joined. So
//      there are fewer nodes than twice the leaves and the leases.
//   4. A leaf has a sequence of its own; an inner node uses the sequence of one of its children.
//      The sequence holds the node's cells, and no other sequence of the tree does. So splitting a
//      node needs no sequence and changes no cells, and the tree uses only one of the scarce
//      sequences per leaf. Holding each leaf's whole path would be simpler, but libllama keeps a
//      tree node for every position of every sequence.
//   5. A node was used at least as recently as its children.
#include "engine/prefixes/prefix_cache.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "base/check.h"

namespace slipstream {
namespace {

int size_of(std::span<const Token> tokens) { return static_cast<int>(tokens.size()); }

std::span<const Token> from_position(std::span<const Token> tokens, int first) {
  return tokens.subspan(static_cast<std::size_t>(first));
}

std::span<const Token> up_to_position(std::span<const Token> tokens, int end) {
  return tokens.first(static_cast<std::size_t>(end));
}

}  // namespace

struct PrefixCache::Node {
  Salt salt = 0;
  int first = 0;
  std::vector<Token> run = {};
  SeqId seq = -1;
  int n_locks = 0;
  std::int64_t last_used = 0;  // tick
  Node* parent = nullptr;      // null: the root
  std::map<std::pair<Salt, Token>, Node*> children = {};

  [[nodiscard]] int n_cells() const { return size_of(run); }
  [[nodiscard]] int end() const { return first + n_cells(); }
  [[nodiscard]] bool is_root() const { return parent == nullptr; }
  [[nodiscard]] bool is_leaf() const { return children.empty() && !is_root(); }
  [[nodiscard]] std::pair<Salt, Token> key() const { return {salt, run.front()}; }
  [[nodiscard]] Node* child(Salt of_salt, Token token) const {
    const auto found = children.find({of_salt, token});
    return found == children.end() ? nullptr : found->second;
  }
};

PrefixCache::PrefixCache(Cells& cells, const PrefixCacheLimits& limits)
    : cells_(cells), limits_(limits), root_(std::make_unique<Node>()) {
  SLIP_CHECK(limits.first_seq >= 0 && limits.n_seqs >= 0, "sequences that cannot exist");
  for (const int i : std::views::iota(0, limits.n_seqs) | std::views::reverse) {
    free_seqs_.push_back(limits.first_seq + i);
  }
}

PrefixCache::~PrefixCache() { SLIP_CHECK(n_leases() == 0, "a lease outlives its cache"); }

Match PrefixCache::match(Salt salt, std::span<const Token> tokens) const {
  const Place place = find(root_.get(), salt, tokens);
  Match match{.n_tokens = place.n_tokens, .n_evictable = 0};
  for (const Node* node = place.node; !node->is_root() && node->n_locks == 0; node = node->parent) {
    match.n_evictable += std::min(node->end(), place.n_tokens) - node->first;
  }
  return match;
}

Lease PrefixCache::acquire(Salt salt, std::span<const Token> tokens, int n_tokens, SeqId to) {
  SLIP_CHECK(n_tokens >= 0 && n_tokens <= size_of(tokens), "more of a prompt than there is");
  SLIP_CHECK(to < limits_.first_seq || to >= limits_.first_seq + limits_.n_seqs,
             "one of the tree's own sequences");
  const Place place = find(root_.get(), salt, up_to_position(tokens, n_tokens));
  SLIP_CHECK(place.n_tokens == n_tokens, "more than is cached");
  ++tick_;
  counters_.n_queried += size_of(tokens);
  counters_.n_hit += n_tokens;
  Lease lease;
  lease.node_ = split(place.node, n_tokens);
  lease.salt_ = salt;
  lease.seq_ = to;
  lease.n_shared_ = n_tokens;
  for (Node* node = lease.node_; node != nullptr; node = node->parent) ++node->n_locks;
  mark_used(lease.node_);
  share(lease.node_, n_tokens, to);
  return lease;
}

void PrefixCache::insert(Lease& lease, std::span<const Token> tokens) {
  SLIP_CHECK(lease.is_held(), "an insertion without a lease");
  const int n_tokens = size_of(tokens);
  SLIP_CHECK(n_tokens >= lease.n_locked(), "fewer tokens than the sequence has already");
  ++tick_;
  Node* const top = lease.node_;
  const Place place = find(top, lease.salt_, tokens);
  if (place.n_tokens == n_tokens) {
    // The tree lacks nothing. The sequence has its own cells, so it need not lock those of others.
    mark_used(place.node);
    return;
  }
  lease.node_ = split(place.node, place.n_tokens);
  for (Node* node = lease.node_; node != top; node = node->parent) ++node->n_locks;
  mark_used(lease.node_);
  join_only_child(top);
  grow(lease, tokens);
  evict(0);
}

void PrefixCache::release(Lease& lease) {
  SLIP_CHECK(lease.is_held(), "a lease is released twice");
  ++tick_;
  cells_.remove(lease.seq_, 0, kEndOfSequence);
  mark_used(lease.node_);
  for (Node* node = lease.node_; node != nullptr; node = node->parent) --node->n_locks;
  join_only_child(lease.node_);
  lease.node_ = nullptr;
}

int PrefixCache::n_exclusive(const Lease& lease) const {
  SLIP_CHECK(lease.is_held(), "a lease that was released");
  int n = 0;
  for (const Node* node = lease.node_; !node->is_root() && node->n_locks == 1;
       node = node->parent) {
    n += node->n_cells();
  }
  return n;
}

int PrefixCache::evict(int n_cells_wanted) {
  const int n_wanted = std::max(n_cells_wanted, n_cells() - limits_.n_cells_max);
  int n_freed = 0;
  while (n_freed < n_wanted) {
    Node* leaf = least_recently_used(/*to_free_a_seq=*/false);
    if (leaf == nullptr) break;
    const int n = std::min(leaf->n_cells(), n_wanted - n_freed);
    drop_tail(leaf, n);
    n_freed += n;
  }
  return n_freed;
}

void PrefixCache::gather(Salt salt, std::span<const Token> tokens, SeqId to) const {
  const Place place = find(root_.get(), salt, tokens);
  SLIP_CHECK(place.n_tokens == size_of(tokens), "gathers what is not cached");
  share(place.node, place.n_tokens, to);
}

int PrefixCache::n_cells() const {
  int n = 0;
  for (const auto& node : nodes_) n += node->n_cells();
  return n;
}

int PrefixCache::n_evictable() const {
  int n = 0;
  for (const auto& node : nodes_) n += node->n_locks == 0 ? node->n_cells() : 0;
  return n;
}

int PrefixCache::n_leases() const { return root_->n_locks; }

// --- paths

// Follows the tokens down from the end of a node as far as they match.
PrefixCache::Place PrefixCache::find(Node* from, Salt salt, std::span<const Token> tokens) {
  Place place{.node = from, .n_tokens = from->end()};
  while (place.n_tokens == place.node->end() && place.n_tokens < size_of(tokens)) {
    const std::span<const Token> rest = from_position(tokens, place.n_tokens);
    Node* child = place.node->child(salt, rest.front());
    if (child == nullptr) break;
    const auto differ = std::ranges::mismatch(child->run, rest);
    place.n_tokens += static_cast<int>(differ.in1 - child->run.begin());
    place.node = child;
  }
  return place;
}

// One copy for all adjacent nodes in the same sequence: libllama visits every cell in each copy.
void PrefixCache::share(const Node* node, int n_tokens, SeqId to) const {
  int end = n_tokens;
  while (!node->is_root()) {
    const SeqId seq = node->seq;
    int first = node->first;
    while (!node->is_root() && node->seq == seq) {
      first = node->first;
      node = node->parent;
    }
    cells_.copy(seq, to, first, end);
    end = first;
  }
}

void PrefixCache::mark_used(Node* node) const {
  for (; node != nullptr; node = node->parent) node->last_used = tick_;
}

std::vector<Token> PrefixCache::path(const Node* node) {
  std::vector<Token> tokens(static_cast<std::size_t>(node->end()));
  for (; !node->is_root(); node = node->parent) {
    std::ranges::copy(node->run, tokens.begin() + node->first);
  }
  return tokens;
}

// --- nodes

PrefixCache::Node* PrefixCache::add_node(Node* parent, Node node) {
  node.parent = parent;
  Node* added = nodes_.emplace_back(std::make_unique<Node>(std::move(node))).get();
  parent->children[added->key()] = added;
  return added;
}

void PrefixCache::erase(const Node* node) {
  std::erase_if(nodes_, [node](const auto& owned) { return owned.get() == node; });
}

// Returns the node that ends at position `at`: this node if it ends there, otherwise a new one
// above it. This node remains the lower part, so that leases and children can still refer to it.
PrefixCache::Node* PrefixCache::split(Node* node, int at) {
  if (at == node->end()) return node;
  const auto middle = node->run.begin() + (at - node->first);
  Node* upper = add_node(node->parent, {.salt = node->salt,
                                        .first = node->first,
                                        .run = {node->run.begin(), middle},
                                        .seq = node->seq,
                                        .n_locks = node->n_locks,
                                        .last_used = node->last_used});
  node->run.erase(node->run.begin(), middle);
  node->first = at;
  node->parent = upper;
  upper->children[node->key()] = node;
  return upper;
}

// Undoes a split that is no longer needed. If a lease ended at `node`, `node` would have more locks
// than its child.
void PrefixCache::join_only_child(Node* node) {
  if (node->is_root() || node->children.size() != 1) return;
  Node* child = node->children.begin()->second;
  if (child->n_locks != node->n_locks) return;
  child->run.insert_range(child->run.begin(), node->run);
  child->first = node->first;
  child->parent = node->parent;
  child->last_used = node->last_used;  // so that a prefix in use does not age with its idle end
  child->parent->children[child->key()] = child;
  erase(node);
}

// Appends tokens at the end of a lease's path, in a leaf that only this lease uses or in a new
// leaf. Does nothing if no sequence is available.
void PrefixCache::grow(Lease& lease, std::span<const Token> tokens) {
  Node* node = lease.node_;
  const int first = node->end();
  const std::span<const Token> rest = from_position(tokens, first);
  if (node->is_leaf() && node->n_locks == 1) {
    node->run.append_range(rest);
  } else {
    const std::optional<SeqId> seq = node->is_leaf() ? node->seq : take_seq();
    if (!seq) return;
    node = add_node(node, {.salt = lease.salt_,
                           .first = first,
                           .run = {rest.begin(), rest.end()},
                           .seq = *seq,
                           .n_locks = 1,
                           .last_used = tick_});
  }
  cells_.copy(lease.seq_, node->seq, first, node->end());
  lease.node_ = node;
  lease.n_shared_ += size_of(rest);
}

// --- eviction

std::optional<SeqId> PrefixCache::take_seq() {
  if (free_seqs_.empty()) {
    Node* leaf = least_recently_used(/*to_free_a_seq=*/true);
    if (leaf == nullptr) return std::nullopt;
    drop_tail(leaf, leaf->n_cells());
  }
  const SeqId seq = free_seqs_.back();
  free_seqs_.pop_back();
  return seq;
}

// Returns null if every leaf is locked. An only child cannot give up its sequence: its parent then
// becomes a leaf and needs it. A lease ends at such a parent (3), so if no leaf can give up its
// sequence, there are no more leaves than leases.
PrefixCache::Node* PrefixCache::least_recently_used(bool to_free_a_seq) const {
  Node* oldest = nullptr;
  for (const auto& node : nodes_) {
    if (!node->is_leaf() || node->n_locks > 0) continue;
    const bool is_only_child = !node->parent->is_root() && node->parent->children.size() == 1;
    if (to_free_a_seq && is_only_child) continue;
    if (oldest == nullptr || node->last_used < oldest->last_used) oldest = node.get();
  }
  return oldest;
}

void PrefixCache::drop_tail(Node* leaf, int n_cells_dropped) {
  const int end = leaf->end();
  const int n_kept = end - n_cells_dropped;
  if (on_evict_) on_evict_({.salt = leaf->salt, .tokens = path(leaf), .n_kept = n_kept});
  cells_.remove(leaf->seq, n_kept, end);
  counters_.n_evicted += n_cells_dropped;
  if (n_kept == leaf->first) {
    unlink(leaf);
  } else {
    leaf->run.resize(static_cast<std::size_t>(n_kept - leaf->first));
  }
}

void PrefixCache::unlink(Node* leaf) {
  Node* parent = leaf->parent;
  const SeqId seq = leaf->seq;
  parent->children.erase(leaf->key());
  erase(leaf);
  if (parent->is_leaf()) return;  // the parent keeps the sequence
  if (parent->seq == seq) hand_over(parent, parent->children.begin()->second->seq);
  free_seqs_.push_back(seq);
  join_only_child(parent);
}

// Moves the cells of a node, and of those above it in the same sequence, to a child's sequence.
void PrefixCache::hand_over(Node* node, SeqId heir) {
  const SeqId seq = node->seq;
  const int end = node->end();
  int first = end;
  for (; !node->is_root() && node->seq == seq; node = node->parent) {
    node->seq = heir;
    first = node->first;
  }
  cells_.copy(seq, heir, first, end);
  cells_.remove(seq, first, end);
}

// --- integrity

void PrefixCache::check_integrity() const {
  check_node(*root_);
  std::size_t n_children = root_->children.size();
  std::vector<SeqId> seqs = free_seqs_;
  for (const auto& node : nodes_) {
    check_node(*node);
    n_children += node->children.size();
    if (node->is_leaf()) seqs.push_back(node->seq);
  }
  SLIP_CHECK(n_children == nodes_.size(), "(1) every node is a child of one other");
  std::ranges::sort(seqs);
  SLIP_CHECK(std::ranges::equal(
                 seqs, std::views::iota(limits_.first_seq, limits_.first_seq + limits_.n_seqs)),
             "(4) every sequence is free or of one leaf");
}

void PrefixCache::check_node(const Node& node) const {
  int n_locks = 0;
  int n_in_seq = 0;
  for (const auto& [key, child] : node.children) {
    SLIP_CHECK(child->parent == &node && child->first == node.end(), "(1) a child goes on");
    SLIP_CHECK(!child->run.empty() && child->key() == key, "(1) a child is found");
    SLIP_CHECK(node.is_root() || child->salt == node.salt, "(1) salts part ways at the root");
    SLIP_CHECK(child->last_used <= node.last_used, "(5) recency");
    n_locks += child->n_locks;
    n_in_seq += child->seq == node.seq ? 1 : 0;
  }
  SLIP_CHECK(node.last_used <= tick_, "(5) used in the future");
  SLIP_CHECK(node.n_locks >= n_locks, "(2) locked from the root on");
  if (node.is_root()) {
    SLIP_CHECK(node.run.empty() && node.first == 0, "(1) the root has no tokens");
    return;
  }
  SLIP_CHECK(node.children.size() != 1 || node.n_locks > n_locks, "(3) could be one node");
  SLIP_CHECK(node.is_leaf() || n_in_seq == 1, "(4) in the sequence of one child");
}

// --- Lease

Lease::Lease(Lease&& other) noexcept
    : node_(std::exchange(other.node_, nullptr)),
      salt_(other.salt_),
      seq_(other.seq_),
      n_shared_(other.n_shared_) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  SLIP_CHECK(!is_held() || this == &other, "a lease is overwritten before it is released");
  node_ = std::exchange(other.node_, nullptr);
  salt_ = other.salt_;
  seq_ = other.seq_;
  n_shared_ = other.n_shared_;
  return *this;
}

int Lease::n_locked() const { return is_held() ? node_->end() : 0; }

Lease::~Lease() { SLIP_CHECK(!is_held(), "a lease ends without release"); }

}  // namespace slipstream
