// PrefixCache: what was computed before, as a radix tree over token ids whose nodes own KV cells. A
// request takes over the longest prefix of its prompt and computes only the rest.
//
//   Match match = cache.match(salt, prompt);                             plan with it, then
//   Lease lease = cache.acquire(salt, prompt, n_tokens, seq);            seq shares the cells
//   cache.evict(n_needed - n_free);  compute;  cache.insert(lease, tokens);  as often as it takes
//   cache.release(lease);                                                seq ends, the prefix stays
//
// No cell that a lease uses is evicted. acquire() and release() evict nothing at all: the length
// that match() found is there until the next insert(), evict() or clear().
//
// Threads: owned by the engine thread. Errors: none; misuse is a bug (SLIP_CHECK).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/prefixes/cells.h"
#include "engine/request.h"

namespace slipstream {

class Lease;

struct PrefixCacheLimits {
  // The tree's own sequences: [first_seq, first_seq + n_seqs). It takes one for each leaf. With
  // more of them than leases there is always one to be had; else insert() may leave tokens out.
  SeqId first_seq;
  int n_seqs;
  int n_cells_max;  // that the tree may own; more only while leases use them
};

struct Match {
  int n_tokens;     // the longest cached prefix
  int n_evictable;  // of these, what no lease uses: it stops being evictable when acquired

  bool operator==(const Match&) const = default;
};

struct Eviction {
  Salt salt;
  std::vector<Token> tokens;  // from the first position to the end of what goes
  int n_kept;                 // of these; the others go
};

// In tokens, since the start.
struct PrefixCacheCounters {
  std::int64_t n_queried = 0;  // of prompts given to acquire()
  std::int64_t n_hit = 0;      // of these, what it shared
  std::int64_t n_evicted = 0;
};

class PrefixCache {
 public:
  PrefixCache(Cells& cells, const PrefixCacheLimits& limits);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  [[nodiscard]] Match match(Salt salt, std::span<const Token> tokens) const;

  // Shares the cells of the first n_tokens, at most as many as match, with `to`, which holds none.
  [[nodiscard]] Lease acquire(Salt salt, std::span<const Token> tokens, int n_tokens, SeqId to);

  // The lease's sequence has computed `tokens`, from the first position on. What the tree lacks of
  // them it shares with the sequence from now on, under the same lease. Where another sequence came
  // first with the same tokens the tree keeps the cells it has, and the sequence its own.
  void insert(Lease& lease, std::span<const Token> tokens);

  // The end of the lease's sequence: it lets go of all of its cells.
  void release(Lease& lease);

  // Of the cells in the lease's path, those that become evictable when it is released.
  [[nodiscard]] int n_exclusive(const Lease& lease) const;

  // Frees n_cells if so many are evictable, and in any case what exceeds n_cells_max: the ends of
  // the prefixes that were used least recently. Returns how many it freed.
  int evict(int n_cells);
  void clear() { evict(n_evictable()); }

  // For tests: called before cells go, also by insert(). It may gather() and match(), nothing else.
  void on_evict(std::function<void(const Eviction&)> hook) { on_evict_ = std::move(hook); }

  // Shares the cells of `tokens`, all of which must be cached, with `to`, which holds none. Without
  // a lease: the caller removes them from `to` before it calls anything else here.
  void gather(Salt salt, std::span<const Token> tokens, SeqId to) const;

  [[nodiscard]] int n_cells() const;
  [[nodiscard]] int n_evictable() const;
  [[nodiscard]] int n_nodes() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] int n_leases() const;
  [[nodiscard]] int n_free_seqs() const { return static_cast<int>(free_seqs_.size()); }
  [[nodiscard]] const PrefixCacheCounters& counters() const { return counters_; }

  // Checks every invariant (prefix_cache.cpp); for tests.
  void check_integrity() const;

 private:
  friend class Lease;
  struct Node;
  struct Place {  // of a prefix: n_tokens end in, or at the end of, node
    Node* node;
    int n_tokens;
  };

  static Place find(Node* from, Salt salt, std::span<const Token> tokens);
  void share(const Node* node, int n_tokens, SeqId to) const;
  void mark_used(Node* node) const;
  Node* add_node(Node* parent, Node node);
  Node* split(Node* node, int at);
  void join_only_child(Node* node);
  void grow(Lease& lease, std::span<const Token> tokens);
  std::optional<SeqId> take_seq();
  Node* least_recently_used(bool to_free_a_seq) const;
  void drop_tail(Node* leaf, int n_cells);
  void unlink(Node* leaf);
  void hand_over(Node* node, SeqId heir);
  void erase(const Node* node);
  static std::vector<Token> path(const Node* node);
  void check_node(const Node& node) const;

  Cells& cells_;
  const PrefixCacheLimits limits_;
  std::function<void(const Eviction&)> on_evict_;
  const std::unique_ptr<Node> root_;  // of all salts: no tokens, no cells
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<SeqId> free_seqs_;
  std::int64_t tick_ = 0;
  PrefixCacheCounters counters_;
};

// What a running sequence uses of the tree. Must be released before it ends.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();

  [[nodiscard]] bool is_held() const { return node_ != nullptr; }
  [[nodiscard]] SeqId seq() const { return seq_; }
  // How many of the sequence's tokens are in cells that the tree owns too; the others are in cells
  // of the sequence alone. These are its first tokens, unless another sequence came first with the
  // same ones: then those are missing in between.
  [[nodiscard]] int n_shared() const { return n_shared_; }
  // How many tokens long the path is that it keeps from being evicted.
  [[nodiscard]] int n_locked() const;

 private:
  friend class PrefixCache;

  PrefixCache::Node* node_ = nullptr;
  Salt salt_ = 0;
  SeqId seq_ = -1;
  int n_shared_ = 0;
};

}  // namespace slipstream
