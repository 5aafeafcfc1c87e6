#include "engine/prefixes/disk/prefix_index.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace slipstream {
namespace {

using Tokens = std::vector<Token>;

TEST(PrefixIndex, FindsWhatSharesMost) {
  PrefixIndex index;
  EXPECT_EQ(index.find(0, Tokens{1}), DiskMatch());
  index.insert({.id = 1, .tokens = {1, 2, 3, 4}, .state_bytes = 40});
  index.insert({.id = 2, .tokens = {1, 2, 9}, .state_bytes = 30});
  EXPECT_EQ(index.find(0, Tokens{1, 2, 3, 5}),
            (DiskMatch{.id = 1, .n_common = 3, .n_stored = 4, .state_bytes = 40}));
  EXPECT_EQ(index.find(0, Tokens{1, 2, 9, 9}),
            (DiskMatch{.id = 2, .n_common = 3, .n_stored = 3, .state_bytes = 30}));
  EXPECT_EQ(index.find(0, Tokens{7}), DiskMatch());
  EXPECT_EQ(index.find(0, Tokens{}), DiskMatch());
  EXPECT_EQ(index.find(1, Tokens{1, 2, 3, 4}), DiskMatch()) << "of another salt";
}

TEST(PrefixIndex, TheLongerOneMakesTheShorterSuperfluous) {
  PrefixIndex index;
  EXPECT_EQ(index.insert({.id = 1, .tokens = {1, 2}, .file_bytes = 10}), 0U);
  EXPECT_EQ(index.insert({.id = 2, .tokens = {1, 2, 3}, .file_bytes = 15}), 1U);
  EXPECT_EQ(index.insert({.id = 3, .tokens = {1}, .file_bytes = 5}), 3U);
  EXPECT_EQ(index.insert({.id = 4, .tokens = {1, 2, 3}, .file_bytes = 15}), 4U);
  EXPECT_EQ(index.insert({.id = 5, .salt = 1, .tokens = {1}, .file_bytes = 7}), 0U);
  EXPECT_EQ(index.n_entries(), 2U);
  EXPECT_EQ(index.file_bytes(), 22U);
  EXPECT_EQ(index.covering(0, Tokens{1, 2}), 2U);
  EXPECT_EQ(index.covering(0, Tokens{1, 2, 3, 4}), 0U);
}

TEST(PrefixIndex, WhatHasNoTokensTakesSpaceAndIsNeverFound) {
  PrefixIndex index;
  index.insert({.id = 1, .file_bytes = 10});
  index.insert({.id = 2, .file_bytes = 10});
  index.insert({.id = 3, .tokens = {5}, .file_bytes = 10});
  EXPECT_EQ(index.file_bytes(), 30U);
  EXPECT_EQ(index.ids(), (std::vector<EntryId>{1, 2, 3}));
  EXPECT_EQ(index.find(0, Tokens{5}).id, 3U);
  EXPECT_EQ(index.find(0, Tokens{4}).id, 0U);
}

// --- any trace, compared with lists that are searched linearly

struct Action {
  int kind;  // 0, 1: insert; 2: erase
  std::uint64_t salt;
  Tokens tokens;
  std::size_t which;
};

rc::Gen<Tokens> any_tokens() { return rc::gen::container<Tokens>(rc::gen::inRange<Token>(0, 3)); }

rc::Gen<Action> any_action() {
  return rc::gen::build<Action>(rc::gen::set(&Action::kind, rc::gen::inRange(0, 3)),
                                rc::gen::set(&Action::salt, rc::gen::inRange<std::uint64_t>(0, 2)),
                                rc::gen::set(&Action::tokens, any_tokens()),
                                rc::gen::set(&Action::which, rc::gen::arbitrary<std::size_t>()));
}

bool begins_with(const Tokens& tokens, const Tokens& start) {
  return tokens.size() >= start.size() && std::equal(start.begin(), start.end(), tokens.begin());
}

class Naive {
 public:
  EntryId insert(const PrefixEntry& entry) {
    EntryId superfluous = 0;
    if (!entry.tokens.empty()) {
      if (covering(entry.salt, entry.tokens) != 0) return entry.id;
      for (const PrefixEntry& other : entries) {
        if (other.salt == entry.salt && !other.tokens.empty() &&
            begins_with(entry.tokens, other.tokens)) {
          RC_ASSERT(superfluous == 0U);
          superfluous = other.id;
        }
      }
      erase(superfluous);
    }
    entries.push_back(entry);
    return superfluous;
  }
  [[nodiscard]] EntryId covering(std::uint64_t salt, const Tokens& tokens) const {
    for (const PrefixEntry& entry : entries) {
      if (entry.salt == salt && !entry.tokens.empty() && begins_with(entry.tokens, tokens)) {
        return entry.id;
      }
    }
    return 0;
  }
  void erase(EntryId id) {
    std::erase_if(entries, [id](const PrefixEntry& entry) { return entry.id == id; });
  }
  [[nodiscard]] static int n_common(const PrefixEntry& entry, std::uint64_t salt,
                                    const Tokens& tokens) {
    int n = 0;
    while (entry.salt == salt && static_cast<std::size_t>(n) < tokens.size() &&
           static_cast<std::size_t>(n) < entry.tokens.size() &&
           entry.tokens[static_cast<std::size_t>(n)] == tokens[static_cast<std::size_t>(n)]) {
      ++n;
    }
    return n;
  }

  std::vector<PrefixEntry> entries;
};

void compare(const PrefixIndex& index, const Naive& naive, std::uint64_t salt,
             const Tokens& tokens) {
  std::uint64_t file_bytes = 0;
  int n_common_max = 0;
  for (const PrefixEntry& entry : naive.entries) {
    file_bytes += entry.file_bytes;
    n_common_max = std::max(n_common_max, Naive::n_common(entry, salt, tokens));
    RC_ASSERT(index.entry(entry.id) != nullptr);
  }
  RC_ASSERT(index.n_entries() == naive.entries.size());
  RC_ASSERT(index.file_bytes() == file_bytes);
  RC_ASSERT((index.covering(salt, tokens) != 0) == (naive.covering(salt, tokens) != 0));
  const DiskMatch match = index.find(salt, tokens);
  RC_ASSERT(match.n_common == n_common_max);
  RC_ASSERT((match.id != 0) == (n_common_max > 0));
  if (match.id != 0) {
    const PrefixEntry& entry = *index.entry(match.id);
    RC_ASSERT(Naive::n_common(entry, salt, tokens) == n_common_max);
    RC_ASSERT(match.n_stored == static_cast<int>(entry.tokens.size()));
    RC_ASSERT(match.state_bytes == entry.state_bytes);
  }
}

RC_GTEST_PROP(PrefixIndex, AnyTraceAgreesWithANaiveSearch, ()) {
  const auto actions = *rc::gen::container<std::vector<Action>>(any_action());
  PrefixIndex index;
  Naive naive;
  EntryId last_id = 0;
  for (const Action& action : actions) {
    const EntryId which = last_id == 0 ? 1 : 1 + action.which % last_id;
    if (action.kind <= 1) {
      const PrefixEntry entry = {.id = ++last_id,
                                 .salt = action.salt,
                                 .tokens = action.tokens,
                                 .state_bytes = action.tokens.size() * 10,
                                 .file_bytes = action.tokens.size() + 1};
      RC_ASSERT(index.insert(entry) == naive.insert(entry));
    } else {
      index.erase(which);
      naive.erase(which);
    }
    compare(index, naive, action.salt, *any_tokens());
  }
}

}  // namespace
}  // namespace slipstream
