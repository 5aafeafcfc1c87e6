// Runs random traces of several sequences on a PrefixCache and compares it with a naive cache,
// which is a set of token strings, and with FakeCells. There are few different tokens, so that
// paths often part, meet and repeat.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>
#include <set>

#include "engine/prefixes/fake_cells.h"
#include "engine/prefixes/prefix_cache.h"

namespace slipstream {
namespace {

using Tokens = std::vector<Token>;

constexpr int kSlots = 5;  // sequences that run at a time
constexpr SeqId kFirstRandomSeq = 100;
constexpr SeqId kRandomScratch = 50;

enum class Kind { kBegin, kCompute, kInsert, kEnd, kEvict, kClear };

struct Operation {
  Kind kind;
  int slot;
  Salt salt;
  Tokens tokens;
  int n;
};

// Prints the trace that failed.
std::ostream& operator<<(std::ostream& out, const Operation& operation) {
  constexpr std::array kNames = {"begin", "compute", "insert", "end", "evict", "clear"};
  out << kNames.at(static_cast<std::size_t>(operation.kind)) << " slot " << operation.slot
      << " salt " << operation.salt << " n " << operation.n << " tokens ";
  for (const Token token : operation.tokens) out << token;
  return out;
}

rc::Gen<Operation> any_operation() {
  // Long enough for splits, trims and duplicates.
  const auto tokens = rc::gen::resize(
      12, rc::gen::container<Tokens>(rc::gen::weightedElement<Token>({{4, 0}, {2, 1}, {1, 2}})));
  return rc::gen::build<Operation>(
      rc::gen::set(&Operation::kind, rc::gen::weightedElement<Kind>({{6, Kind::kBegin},
                                                                     {6, Kind::kCompute},
                                                                     {8, Kind::kInsert},
                                                                     {3, Kind::kEnd},
                                                                     {2, Kind::kEvict},
                                                                     {1, Kind::kClear}})),
      rc::gen::set(&Operation::slot, rc::gen::inRange(0, kSlots)),
      rc::gen::set(&Operation::salt, rc::gen::weightedElement<Salt>({{3, 1}, {1, 2}})),
      rc::gen::set(&Operation::tokens, tokens),
      rc::gen::set(&Operation::n, rc::gen::inRange(0, 9)));
}

Tokens first_of(const Tokens& tokens, int n) { return {tokens.begin(), tokens.begin() + n}; }
int size_of(const Tokens& tokens) { return static_cast<int>(tokens.size()); }

class World {
 public:
  World(int n_seqs, int n_cells_max)
      : n_seqs_(n_seqs),
        n_cells_max_(n_cells_max),
        cache_(cells_,
               {.first_seq = kFirstRandomSeq, .n_seqs = n_seqs, .n_cells_max = n_cells_max}) {
    cache_.on_evict([this](const Eviction& eviction) { evicted(eviction); });
  }

  // A failed property throws; held leases would then end the process.
  ~World() {
    for (Running& sequence : running_) {
      if (sequence.lease.is_held()) cache_.release(sequence.lease);
    }
  }

  void run(const Operation& operation) {
    Running& sequence = running_[static_cast<std::size_t>(operation.slot)];
    n_evicted_ = 0;
    switch (operation.kind) {
      case Kind::kBegin: begin(sequence, operation); break;
      case Kind::kCompute: compute(sequence, operation.tokens); break;
      case Kind::kInsert: insert(sequence); break;
      case Kind::kEnd: end(sequence); break;
      case Kind::kEvict: evict(operation.n); break;
      case Kind::kClear: clear(); break;
    }
    check();
  }

  void end_all() {
    n_evicted_ = 0;
    for (Running& sequence : running_) end(sequence);
    check();
    clear();
    RC_ASSERT(cells_.n_cells() == 0);
    RC_ASSERT(cache_.n_nodes() == 0);
    RC_ASSERT(cache_.n_free_seqs() == n_seqs_);
  }

 private:
  struct Running {
    Lease lease = {};
    Salt salt = 0;
    Tokens tokens = {};  // computed
    int n_own = 0;       // of these, in cells that the tree does not share
  };
  using Prefixes = std::set<std::pair<Salt, Tokens>>;

  void begin(Running& sequence, const Operation& operation) {
    end(sequence);
    const int n_match = cache_.match(operation.salt, operation.tokens).n_tokens;
    const int n = std::max(0, n_match - operation.n % 3);
    const int n_evictable = cache_.n_evictable();
    const Tokens prefix = first_of(operation.tokens, n);
    const Match match = cache_.match(operation.salt, prefix);
    sequence.lease = cache_.acquire(operation.salt, operation.tokens, n, operation.slot);
    sequence.salt = operation.salt;
    sequence.tokens = prefix;
    sequence.n_own = 0;
    RC_ASSERT(cache_.n_evictable() == n_evictable - match.n_evictable);
    RC_ASSERT(n_evicted_ == 0);
    compute(sequence, {operation.tokens.begin() + n, operation.tokens.end()});
  }

  void compute(Running& sequence, const Tokens& tokens) {
    if (!sequence.lease.is_held()) return;
    for (const Token token : tokens) {
      cells_.compute(sequence.lease.seq(), size_of(sequence.tokens), token);
      sequence.tokens.push_back(token);
      ++sequence.n_own;
    }
  }

  void insert(Running& sequence) {
    if (!sequence.lease.is_held()) return;
    const int n_naive = naive_match(sequence.salt, sequence.tokens);
    cache_.insert(sequence.lease, sequence.tokens);
    const int n = size_of(sequence.tokens);
    if (n_naive == n) {
      RC_ASSERT(n_evicted_ == 0);
      return;
    }
    if (sequence.lease.n_locked() == n) {
      for (int i = n_naive + 1; i <= n; ++i) {
        naive_.emplace(sequence.salt, first_of(sequence.tokens, i));
      }
      sequence.n_own -= n - n_naive;
    } else {
      RC_ASSERT(sequence.lease.n_locked() == n_naive);
      RC_ASSERT(n_seqs_ <= cache_.n_leases());  // otherwise a sequence would be available
    }
    RC_ASSERT(cache_.n_cells() <= n_cells_max_ || cache_.n_evictable() == 0);
  }

  void end(Running& sequence) {
    if (!sequence.lease.is_held()) return;
    const int n_exclusive = cache_.n_exclusive(sequence.lease);
    const int n_evictable = cache_.n_evictable();
    cache_.release(sequence.lease);
    RC_ASSERT(cache_.n_evictable() == n_evictable + n_exclusive);
    RC_ASSERT(n_evicted_ == 0);
  }

  void evict(int n) {
    const int n_wanted = std::max(n, cache_.n_cells() - n_cells_max_);
    const int n_expected = std::min(n_wanted, cache_.n_evictable());
    const int n_cells = cells_.n_cells();
    const int n_evicted = cache_.evict(n);
    RC_ASSERT(n_evicted == n_expected);
    RC_ASSERT(n_evicted_ == n_expected);
    RC_ASSERT(cells_.n_cells() == n_cells - n_expected);
  }

  void clear() {
    cache_.clear();
    RC_ASSERT(cache_.n_evictable() == 0);
  }

  // The eviction hook: what is evicted can still be gathered, and no lease uses it.
  void evicted(const Eviction& eviction) {
    cache_.gather(eviction.salt, eviction.tokens, kRandomScratch);
    RC_ASSERT(cells_.tokens(kRandomScratch) == eviction.tokens);
    cells_.remove(kRandomScratch, 0, kEndOfSequence);
    for (int i = eviction.n_kept + 1; i <= size_of(eviction.tokens); ++i) {
      const auto prefix = std::pair(eviction.salt, first_of(eviction.tokens, i));
      RC_ASSERT(n_leases_of(prefix) == 0);
      RC_ASSERT(naive_.erase(prefix) == 1U);
      ++n_evicted_;
    }
  }

  [[nodiscard]] int naive_match(Salt salt, const Tokens& tokens) const {
    int n = 0;
    while (n < size_of(tokens) && naive_.contains({salt, first_of(tokens, n + 1)})) ++n;
    return n;
  }

  [[nodiscard]] int n_leases_of(const std::pair<Salt, Tokens>& prefix) const {
    const auto& [salt, tokens] = prefix;
    return static_cast<int>(std::ranges::count_if(running_, [&](const Running& sequence) {
      return sequence.lease.is_held() && sequence.salt == salt &&
             sequence.lease.n_locked() >= size_of(tokens) &&
             std::ranges::starts_with(sequence.tokens, tokens);
    }));
  }

  void check() {
    cache_.check_integrity();
    check_running();
    check_naive();
  }

  void check_running() const {
    int n_own = 0;
    int n_running = 0;
    for (const Running& sequence : running_) {
      if (!sequence.lease.is_held()) continue;
      RC_ASSERT(cells_.tokens(sequence.lease.seq()) == sequence.tokens);
      RC_ASSERT(size_of(sequence.tokens) - sequence.lease.n_shared() == sequence.n_own);
      n_own += sequence.n_own;
      ++n_running;
    }
    RC_ASSERT(cache_.n_leases() == n_running);
    RC_ASSERT(cells_.n_cells() == cache_.n_cells() + n_own);
    // A lease may also lock cells that only the tree holds: duplicates of its sequence's cells.
    RC_ASSERT(cache_.n_evictable() <= cells_.n_cells_only_from(kFirstRandomSeq));
  }

  void check_naive() {
    RC_ASSERT(cache_.n_cells() == static_cast<int>(naive_.size()));
    int n_evictable = 0;
    struct Count {
      int n_leases;
      int n_path_evictable;
    };
    std::map<std::pair<Salt, Tokens>, Count> counts;
    counts[{1, {}}] = counts[{2, {}}] = {.n_leases = 0, .n_path_evictable = 0};
    for (const auto& [salt, tokens] : naive_) {  // shorter ones come first
      const int n_leases = n_leases_of({salt, tokens});
      const int n_own_evictable = n_leases == 0 ? 1 : 0;
      const Count& above = counts.at({salt, first_of(tokens, size_of(tokens) - 1)});
      const int n_path_evictable = above.n_path_evictable + n_own_evictable;
      counts[{salt, tokens}] = {.n_leases = n_leases, .n_path_evictable = n_path_evictable};
      n_evictable += n_own_evictable;
      RC_ASSERT(cache_.match(salt, tokens) == (Match{size_of(tokens), n_path_evictable}));
      bool is_longest = true;
      for (const Token next : {0, 1, 2, 3}) {
        Tokens longer = tokens;
        longer.push_back(next);
        const bool is_cached = naive_.contains({salt, longer});
        RC_ASSERT(cache_.match(salt, longer).n_tokens == size_of(tokens) + (is_cached ? 1 : 0));
        is_longest = is_longest && !is_cached;
      }
      if (!is_longest) continue;
      cache_.gather(salt, tokens, kRandomScratch);
      RC_ASSERT(cells_.tokens(kRandomScratch) == tokens);
      cells_.remove(kRandomScratch, 0, kEndOfSequence);
    }
    RC_ASSERT(cache_.n_evictable() == n_evictable);
    for (const Running& sequence : running_) {
      if (!sequence.lease.is_held()) continue;
      int n_exclusive = 0;
      for (int i = 1; i <= sequence.lease.n_locked(); ++i) {
        n_exclusive +=
            counts.at({sequence.salt, first_of(sequence.tokens, i)}).n_leases == 1 ? 1 : 0;
      }
      RC_ASSERT(cache_.n_exclusive(sequence.lease) == n_exclusive);
    }
  }

  const int n_seqs_;
  const int n_cells_max_;
  FakeCells cells_;
  PrefixCache cache_;
  std::array<Running, kSlots> running_;
  Prefixes naive_;
  int n_evicted_ = 0;  // by the current operation
};

void run_any_trace(int n_seqs, int n_cells_max) {
  const auto operations =
      *rc::gen::scale(2, rc::gen::container<std::vector<Operation>>(any_operation()));
  World world(n_seqs, n_cells_max);
  for (const Operation& operation : operations) world.run(operation);
  world.end_all();
}

RC_GTEST_PROP(PrefixCacheProperty, IsASetOfPrefixes, ()) { run_any_trace(100, 100'000); }

RC_GTEST_PROP(PrefixCacheProperty, HoldsWithFewSequences, ()) {
  run_any_trace(*rc::gen::inRange(0, kSlots + 3), 100'000);
}

RC_GTEST_PROP(PrefixCacheProperty, HoldsWithASmallBudget, ()) {
  run_any_trace(*rc::gen::inRange(kSlots + 1, 10), *rc::gen::inRange(0, 30));
}

}  // namespace
}  // namespace slipstream
