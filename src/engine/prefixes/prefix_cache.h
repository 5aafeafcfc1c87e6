// PrefixCache: computed prefixes, as a radix tree over token ids whose nodes own KV cells. A
// request takes over the longest cached prefix of its prompt and computes only the rest.
//
//   Match match = cache.match(salt, prompt);                                 // to plan
//   Lease lease = cache.acquire(salt, prompt, n_tokens, seq);                // seq shares cells
//   cache.evict(n_needed - n_free);  compute;  cache.insert(lease, tokens);  // as often as needed
//   cache.release(lease);                                                    // the prefix stays
//
// Cells that a lease uses are never evicted. acquire() and release() evict nothing: the length that
// match() found stays valid until the next insert(), evict() or clear().
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
  // The tree's own sequences are [first_seq, first_seq + n_seqs); each leaf takes one. If there are
  // more of them than leases, one is always available; otherwise insert() may leave tokens out.
  SeqId first_seq;
  int n_seqs;
  int n_cells_max;  // that the tree owns; exceeded only while leases use them
};

struct Match {
  int n_tokens;     // the longest cached prefix
  int n_evictable;  // of these, those that no lease uses; acquire() makes them unevictable

  bool operator==(const Match&) const = default;
};

struct Eviction {
  Salt salt;
  std::vector<Token> tokens;  // from position 0 to the end of what is evicted
  int n_kept;                 // the first n_kept of them stay
};

// Counts of tokens since the start.
struct PrefixCacheCounters {
  std::int64_t n_queried = 0;  // prompt tokens given to acquire()
  std::int64_t n_hit = 0;      // of these, taken from the cache
  std::int64_t n_evicted = 0;
};

class PrefixCache {
 public:
  PrefixCache(Cells& cells, const PrefixCacheLimits& limits);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  [[nodiscard]] Match match(Salt salt, std::span<const Token> tokens) const;

  // Shares the cells of the first n_tokens tokens with `to`. REQUIRES: n_tokens is at most what
  // match() found; `to` holds no cells.
  [[nodiscard]] Lease acquire(Salt salt, std::span<const Token> tokens, int n_tokens, SeqId to);

  // The lease's sequence has computed `tokens`, starting at position 0. The tree now shares the
  // cells of those it lacks, under the same lease. If another sequence has already inserted the
  // same tokens, the tree keeps its cells and the sequence keeps its own.
  void insert(Lease& lease, std::span<const Token> tokens);

  // Ends the lease: its sequence releases all of its cells.
  void release(Lease& lease);

  // How many cells in the lease's path become evictable when it is released.
  [[nodiscard]] int n_exclusive(const Lease& lease) const;

  // Frees n_cells cells if that many are evictable, and at least the excess over n_cells_max. It
  // drops the ends of the least recently used prefixes and returns how many cells it freed.
  int evict(int n_cells);
  void clear() { evict(n_evictable()); }

  // For tests: called before cells are freed, also by insert(). May only call gather() and match().
  void on_evict(std::function<void(const Eviction&)> hook) { on_evict_ = std::move(hook); }

  // Shares the cells of `tokens` with `to`, without a lease: the caller removes them from `to`
  // before any other call here. REQUIRES: all of `tokens` are cached; `to` holds no cells.
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
  struct Place {  // of a prefix: it ends in `node` or at its end, after n_tokens
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
  const std::unique_ptr<Node> root_;  // shared by all salts: no tokens, no cells
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<SeqId> free_seqs_;
  std::int64_t tick_ = 0;
  PrefixCacheCounters counters_;
};

// The part of the tree that a running sequence uses. Must be released before it is destroyed.
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
  // of the sequence alone. The shared ones are its first tokens, except those that another sequence
  // had inserted first.
  [[nodiscard]] int n_shared() const { return n_shared_; }
  // Length in tokens of the path that the lease keeps from being evicted.
  [[nodiscard]] int n_locked() const;

 private:
  friend class PrefixCache;

  PrefixCache::Node* node_ = nullptr;
  Salt salt_ = 0;
  SeqId seq_ = -1;
  int n_shared_ = 0;
};

}  // namespace slipstream
