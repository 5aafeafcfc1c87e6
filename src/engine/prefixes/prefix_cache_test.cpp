#include "engine/prefixes/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/prefixes/fake_cells.h"

namespace slipstream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Salt kSalt = 7;
constexpr SeqId kFirstSeq = 1000;
constexpr SeqId kScratch = 900;

// One token per letter.
std::vector<Token> tokens_of(std::string_view text) { return {text.begin(), text.end()}; }

// Each request has a sequence of its own.
class PrefixCacheTest : public testing::Test {
 protected:
  struct Request {
    Lease lease;
    std::vector<Token> tokens;
  };

  explicit PrefixCacheTest(int n_seqs = 20, int n_cells_max = 1000)
      : cache_(cells_, {.first_seq = kFirstSeq, .n_seqs = n_seqs, .n_cells_max = n_cells_max}) {}

  // Takes over the cached part of the text and computes the rest, without inserting it.
  Request begin(std::string_view text, Salt salt = kSalt) {
    const std::vector<Token> tokens = tokens_of(text);
    const int n_cached = cache_.match(salt, tokens).n_tokens;
    Request request{.lease = cache_.acquire(salt, tokens, n_cached, n_requests_++),
                    .tokens = {tokens.begin(), tokens.begin() + n_cached}};
    compute(request, text.substr(static_cast<std::size_t>(n_cached)));
    return request;
  }

  void compute(Request& request, std::string_view text) {
    for (const Token token : tokens_of(text)) {
      cells_.compute(request.lease.seq(), static_cast<int>(request.tokens.size()), token);
      request.tokens.push_back(token);
    }
  }

  void insert(Request& request) {
    cache_.insert(request.lease, request.tokens);
    cache_.check_integrity();
  }

  void end(Request& request) {
    cache_.release(request.lease);
    cache_.check_integrity();
  }

  void run(std::string_view text, Salt salt = kSalt) {
    Request request = begin(text, salt);
    insert(request);
    end(request);
  }

  Match match(std::string_view text, Salt salt = kSalt) const {
    return cache_.match(salt, tokens_of(text));
  }
  int n_cached(std::string_view text, Salt salt = kSalt) const {
    return match(text, salt).n_tokens;
  }

  FakeCells cells_;
  PrefixCache cache_;
  SeqId n_requests_ = 0;
};

TEST_F(PrefixCacheTest, SharesAPrefixWithTheNextRequest) {
  EXPECT_EQ(match("system"), (Match{0, 0}));
  run("system one");
  EXPECT_EQ(match("system two"), (Match{7, 7}));
  EXPECT_EQ(match("system one and more"), (Match{10, 10}));

  Request second = begin("system two");
  EXPECT_EQ(cells_.tokens(second.lease.seq()), tokens_of("system two"));
  EXPECT_EQ(cells_.n_cells(), 10 + 3) << "the first seven are the same cells";
  EXPECT_EQ(second.lease.n_shared(), 7);
  EXPECT_EQ(match("system two"), (Match{7, 0})) << "a lease uses them now";
  insert(second);
  EXPECT_EQ(second.lease.n_shared(), 10);
  EXPECT_EQ(cells_.n_cells(), 13) << "the tree took no cells of its own";
  end(second);
  EXPECT_EQ(n_cached("system two"), 10);
  EXPECT_EQ(n_cached("system one"), 10);
}

TEST_F(PrefixCacheTest, IsEmptyAgainAfterClear) {
  run("abc");
  run("abd");
  run("xyz");
  cache_.clear();
  cache_.check_integrity();
  EXPECT_EQ(cells_.n_cells(), 0);
  EXPECT_EQ(cache_.n_nodes(), 0);
  EXPECT_EQ(cache_.n_free_seqs(), 20);
}

TEST_F(PrefixCacheTest, CanTakeLessThanMatches) {
  run("abcdef");
  Lease lease = cache_.acquire(kSalt, tokens_of("abcdef"), 4, 0);
  cache_.check_integrity();
  EXPECT_EQ(cells_.tokens(0), tokens_of("abcd"));
  EXPECT_EQ(cache_.n_evictable(), 2) << "the rest stays evictable";
  cache_.release(lease);
  cache_.check_integrity();
  EXPECT_EQ(cache_.n_nodes(), 1) << "the reason for the split is gone";
  EXPECT_EQ(n_cached("abcdef"), 6);
}

TEST_F(PrefixCacheTest, ALeafGrowsInPlace) {
  Request request = begin("a prompt");
  insert(request);
  compute(request, " and");
  insert(request);
  compute(request, " an answer");
  insert(request);
  EXPECT_EQ(cache_.n_nodes(), 1);
  EXPECT_EQ(n_cached("a prompt and an answer"), 22);
  end(request);
  // The next turn of the conversation continues the same leaf.
  run("a prompt and an answer and a question");
  EXPECT_EQ(cache_.n_nodes(), 1);
  EXPECT_EQ(cache_.n_free_seqs(), 19);
}

TEST_F(PrefixCacheTest, OthersShareWhatARunningSequenceHasInserted) {
  Request first = begin("long document");
  insert(first);
  Request second = begin("long document, question");
  EXPECT_EQ(second.lease.n_shared(), 13);
  EXPECT_EQ(cells_.n_cells(), 23);
  compute(first, "!");
  insert(first);  // must not append its own token to the cells that the second uses
  insert(second);
  EXPECT_EQ(n_cached("long document!"), 14);
  EXPECT_EQ(n_cached("long document, question"), 23);
  end(first);
  end(second);
}

TEST_F(PrefixCacheTest, SplittingTakesNoSequence) {
  run("abcd");
  EXPECT_EQ(cache_.n_free_seqs(), 19);
  run("abxy");
  EXPECT_EQ(cache_.n_nodes(), 3);
  EXPECT_EQ(cache_.n_free_seqs(), 18) << "two leaves";
  EXPECT_EQ(cells_.n_cells(), 6);
}

TEST_F(PrefixCacheTest, TheTreeKeepsItsCellsWhenTwoComputeTheSame) {
  Request first = begin("same prompt");
  Request second = begin("same prompt");
  insert(first);
  insert(second);
  EXPECT_EQ(first.lease.n_shared(), 11);
  EXPECT_EQ(second.lease.n_shared(), 0) << "its cells are its own";
  EXPECT_EQ(second.lease.n_locked(), 0) << "it needs nothing of the tree";
  EXPECT_EQ(cache_.n_cells(), 11);
  EXPECT_EQ(cells_.n_cells(), 22);
  EXPECT_EQ(cache_.n_exclusive(second.lease), 0);

  // What it computes beyond that is new to the tree, which shares these cells.
  compute(second, ", answer");
  insert(second);
  EXPECT_EQ(second.lease.n_shared(), 8);
  EXPECT_EQ(second.lease.n_locked(), 19);
  EXPECT_EQ(cache_.n_cells(), 19);
  EXPECT_EQ(cells_.n_cells(), 30);
  EXPECT_EQ(cache_.n_exclusive(second.lease), 8);
  end(first);
  EXPECT_EQ(cache_.n_exclusive(second.lease), 19) << "its answer hangs on the cells of the first";
  EXPECT_EQ(cache_.n_evictable(), 0);
  end(second);
  EXPECT_EQ(cells_.n_cells(), 19) << "the duplicates went with their sequence";
}

TEST_F(PrefixCacheTest, AShorterDuplicateDoesNotSplitWhatIsThere) {
  Request first = begin("same prompt");
  Request second = begin("same pr");
  insert(first);
  insert(second);
  EXPECT_EQ(cache_.n_nodes(), 1);
  EXPECT_EQ(second.lease.n_locked(), 0);
  end(first);
  EXPECT_EQ(cache_.n_evictable(), 11);
  end(second);
}

TEST_F(PrefixCacheTest, SaltsNeverMix) {
  run("secret prompt", 1);
  EXPECT_EQ(n_cached("secret prompt", 2), 0);
  run("secret prompt", 2);
  EXPECT_EQ(cache_.n_cells(), 26);
  Request third = begin("secret plan", 2);
  EXPECT_EQ(third.lease.n_shared(), 8);
  insert(third);
  EXPECT_EQ(n_cached("secret plan", 1), 8);
  EXPECT_EQ(n_cached("secret plan", 2), 11);
  end(third);
  EXPECT_EQ(n_cached("", 3), 0);
}

TEST_F(PrefixCacheTest, CountsWhatOnlyOneLeaseUses) {
  Request first = begin("abcd");
  insert(first);
  EXPECT_EQ(cache_.n_exclusive(first.lease), 4);
  Request second = begin("abxyz");
  insert(second);
  EXPECT_EQ(cache_.n_exclusive(first.lease), 2);
  EXPECT_EQ(cache_.n_exclusive(second.lease), 3);
  EXPECT_EQ(cache_.n_evictable(), 0);
  end(first);
  EXPECT_EQ(cache_.n_exclusive(second.lease), 5);
  EXPECT_EQ(cache_.n_evictable(), 2);
  EXPECT_EQ(match("abcd"), (Match{4, 2}));
  end(second);
}

TEST_F(PrefixCacheTest, EvictsTheLeastRecentlyUsedFirst) {
  run("one");
  run("two");
  run("three");
  run("one");
  EXPECT_EQ(cache_.evict(4), 4) << "two (but not its t), then the end of three";
  cache_.check_integrity();
  EXPECT_EQ(n_cached("two"), 1);
  EXPECT_EQ(n_cached("three"), 3);
  EXPECT_EQ(n_cached("one"), 3);
}

TEST_F(PrefixCacheTest, TrimsALeafRatherThanDroppingMoreThanAsked) {
  run("abcdefgh");
  EXPECT_EQ(cache_.evict(3), 3);
  EXPECT_EQ(n_cached("abcdefgh"), 5);
  EXPECT_EQ(cells_.n_cells(), 5);
  EXPECT_EQ(cache_.evict(100), 5);
  EXPECT_EQ(cells_.n_cells(), 0);
}

TEST_F(PrefixCacheTest, NeverEvictsWhatALeaseUses) {
  run("shared and gone");
  Request request = begin("shared");
  run("another");
  EXPECT_EQ(cache_.evict(1000), 9 + 7);
  cache_.check_integrity();
  EXPECT_EQ(n_cached("shared and gone"), 6);
  EXPECT_EQ(cells_.tokens(request.lease.seq()), tokens_of("shared"));
  EXPECT_EQ(cache_.evict(1), 0);
  end(request);
}

TEST_F(PrefixCacheTest, CellsOutliveTheLeafWhoseSequenceHeldThem) {
  run("abcd");  // its sequence holds ab for both leaves
  run("abxy");
  EXPECT_EQ(cache_.evict(2), 2);
  cache_.check_integrity();
  EXPECT_EQ(n_cached("abcd"), 2);
  EXPECT_EQ(cache_.n_nodes(), 1);
  Request request = begin("abxy");
  EXPECT_EQ(cells_.tokens(request.lease.seq()), tokens_of("abxy"));
  end(request);
}

TEST_F(PrefixCacheTest, ALeafHandsOverEverythingAboveIt) {
  run("abcd");  // its sequence holds a and bc for all three leaves
  run("abce");
  run("axyz");
  EXPECT_EQ(cache_.evict(1), 1);
  cache_.check_integrity();
  for (const std::string_view text : {"abce", "axyz"}) {
    Request request = begin(text);
    EXPECT_EQ(request.lease.n_shared(), 4);
    EXPECT_EQ(cells_.tokens(request.lease.seq()), tokens_of(text));
    end(request);
  }
}

TEST_F(PrefixCacheTest, APrefixInUseDoesNotAgeWithItsIdleEnd) {
  run("hot and cold");
  run("other");
  run("hot");
  EXPECT_EQ(cache_.n_nodes(), 2);
  EXPECT_EQ(cache_.evict(5), 5);
  EXPECT_EQ(n_cached("hot and cold"), 12);
  EXPECT_EQ(n_cached("other"), 0);
}

TEST_F(PrefixCacheTest, TellsWhatItEvictsWhileTheCellsAreThere) {
  run("abcd");
  run("abxyz");
  std::vector<std::vector<Token>> gathered;
  std::vector<int> n_kept;
  cache_.on_evict([&](const Eviction& eviction) {
    EXPECT_EQ(eviction.salt, kSalt);
    cache_.gather(eviction.salt, eviction.tokens, kScratch);
    gathered.push_back(cells_.tokens(kScratch));
    EXPECT_EQ(gathered.back(), eviction.tokens);
    cells_.remove(kScratch, 0, kEndOfSequence);
    n_kept.push_back(eviction.n_kept);
  });
  cache_.evict(4);
  EXPECT_THAT(gathered, ElementsAre(tokens_of("abcd"), tokens_of("abxyz")));
  EXPECT_THAT(n_kept, ElementsAre(2, 3));
}

TEST_F(PrefixCacheTest, CountsTokens) {
  run("abcdefgh");
  run("abcdxyz");
  cache_.evict(2);
  EXPECT_EQ(cache_.counters().n_queried, 15);
  EXPECT_EQ(cache_.counters().n_hit, 4);
  EXPECT_EQ(cache_.counters().n_evicted, 2);
}

TEST_F(PrefixCacheTest, ALongChainOfTurnsIsOneNode) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += "turn";
    run(text);
  }
  EXPECT_EQ(cache_.n_nodes(), 1);
  EXPECT_EQ(n_cached(text), 1200);
}

class SmallBudget : public PrefixCacheTest {
 protected:
  SmallBudget() : PrefixCacheTest(20, 10) {}
};

TEST_F(SmallBudget, IsKeptByEvictingWhatIsIdle) {
  run("sixsix");
  run("fourandmore");
  EXPECT_EQ(cache_.n_cells(), 11) << "in use while it was inserted";
  EXPECT_EQ(n_cached("sixsix"), 0);
  cache_.evict(0);
  EXPECT_EQ(cache_.n_cells(), 10);
  run("two");
  EXPECT_EQ(cache_.n_cells(), 10);
  EXPECT_EQ(n_cached("two"), 3);
}

class FewSequences : public PrefixCacheTest {
 protected:
  FewSequences() : PrefixCacheTest(2) {}
};

TEST_F(FewSequences, TheLeastRecentlyUsedLeafGivesItsSequence) {
  run("one");
  run("two");
  run("six");
  EXPECT_EQ(n_cached("one"), 0);
  EXPECT_EQ(n_cached("two"), 3);
  EXPECT_EQ(n_cached("six"), 3);
}

TEST_F(FewSequences, WithoutAnyLessIsInserted) {
  Request first = begin("one");
  Request second = begin("two");
  Request third = begin("six");
  insert(first);
  insert(second);
  insert(third);
  EXPECT_EQ(n_cached("six"), 0);
  EXPECT_EQ(third.lease.n_shared(), 0);
  EXPECT_EQ(cells_.tokens(third.lease.seq()), tokens_of("six"));
  end(first);
  insert(third);
  EXPECT_EQ(n_cached("six"), 3) << "now there is one";
  end(second);
  end(third);
}

TEST_F(FewSequences, ALeafThatContinuesALockedOneGivesNone) {
  run("abcd");
  Request first = begin("ab");  // cd below it is idle, but its sequence also holds ab
  Request second = begin("xy");
  insert(second);
  Request third = begin("zz");
  insert(third);
  EXPECT_EQ(n_cached("zz"), 0);
  EXPECT_EQ(n_cached("abcd"), 4);
  end(first);
  end(second);
  end(third);
}

using PrefixCacheDeathTest = PrefixCacheTest;

TEST_F(PrefixCacheDeathTest, MisuseIsABug) {
  EXPECT_DEATH({ const Lease lost = cache_.acquire(kSalt, {}, 0, 0); }, "without release");
  EXPECT_DEATH(static_cast<void>(cache_.acquire(kSalt, tokens_of("abc"), 1, 0)), "is cached");
  EXPECT_DEATH(static_cast<void>(cache_.acquire(kSalt, {}, 0, kFirstSeq)), "tree's own");
  EXPECT_DEATH(cache_.gather(kSalt, tokens_of("abc"), kScratch), "not cached");
  EXPECT_DEATH(
      {
        Lease lease = cache_.acquire(kSalt, {}, 0, 0);
        lease = cache_.acquire(kSalt, {}, 0, 1);
      },
      "overwritten");
  Request request = begin("abc");
  insert(request);
  EXPECT_DEATH(cache_.insert(request.lease, tokens_of("ab")), "fewer tokens");
  Lease moved = std::move(request.lease);
  cache_.release(moved);
  EXPECT_DEATH(cache_.release(moved), "released twice");
  EXPECT_DEATH(cache_.insert(moved, tokens_of("abc")), "without a lease");
}

}  // namespace
}  // namespace slipstream
