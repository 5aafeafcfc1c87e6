// PrefixIndex: which prefixes are on disk, which of them shares most with a prompt, and which was
// used longest ago. Pure: no files, no clock.
//
// Entries are kept in the order of their tokens: what shares most with a prompt stands beside the
// place where the prompt would stand, and what begins with a prefix stands right behind it. No
// entry begins with another entry: insert() says which of two is not needed.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "engine/request.h"

namespace slipstream {

using EntryId = std::uint64_t;  // 0 is none

struct DiskMatch {
  EntryId id = 0;    // 0: nothing shared
  int n_common = 0;  // tokens that prompt and entry begin with
  int n_stored = 0;  // tokens of the entry
  std::uint64_t state_bytes = 0;

  bool operator==(const DiskMatch&) const = default;
};

struct PrefixEntry {
  EntryId id = 0;
  std::uint64_t salt = 0;
  std::vector<Token> tokens = {};  // none: it takes space on disk and is never found
  std::uint64_t state_bytes = 0;
  std::uint64_t file_bytes = 0;
};

class PrefixIndex {
 public:
  [[nodiscard]] DiskMatch find(std::uint64_t salt, std::span<const Token> tokens) const;
  // The entry that is or begins with these tokens; 0 if there is none.
  [[nodiscard]] EntryId covering(std::uint64_t salt, std::span<const Token> tokens) const;
  [[nodiscard]] const PrefixEntry* entry(EntryId id) const;

  // As the one used last. What it makes superfluous and is thus not in the index: the shorter entry
  // that it begins with, or itself where a longer one is there; 0 if nothing.
  EntryId insert(PrefixEntry entry);
  void use(EntryId id);
  void erase(EntryId id);

  [[nodiscard]] EntryId least_recently_used() const;  // 0 of an empty index
  [[nodiscard]] std::size_t n_entries() const { return entries_.size(); }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Key {
    std::uint64_t salt;
    std::span<const Token> tokens;  // of the entry
    bool operator<(const Key& other) const;
    [[nodiscard]] bool begins_with(const Key& other) const;
  };
  struct Used {
    PrefixEntry entry;
    std::uint64_t use_no;  // later ones are larger
  };

  std::map<EntryId, Used> entries_;
  std::map<Key, EntryId> by_tokens_;
  std::map<std::uint64_t, EntryId> by_use_;
  std::uint64_t n_uses_ = 0;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace slipstream
