// PrefixIndex: which prefixes are on disk, which of them shares most with a prompt, and which is
// the least recently used. Pure: no files, no clock.
//
// Entries are sorted by their tokens: the entry that shares most with a prompt is next to the
// prompt's own position, and an entry that begins with a prefix comes right after it. No entry
// begins with another entry; insert() says which of the two is not needed.
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

using EntryId = std::uint64_t;  // 0: none

struct DiskMatch {
  EntryId id = 0;    // 0: nothing shared
  int n_common = 0;  // length of the common prefix
  int n_stored = 0;  // tokens of the entry
  std::uint64_t state_bytes = 0;

  bool operator==(const DiskMatch&) const = default;
};

struct PrefixEntry {
  EntryId id = 0;
  std::uint64_t salt = 0;
  std::vector<Token> tokens = {};  // empty: it takes space on disk and is never found
  std::uint64_t state_bytes = 0;
  std::uint64_t file_bytes = 0;
};

class PrefixIndex {
 public:
  [[nodiscard]] DiskMatch find(std::uint64_t salt, std::span<const Token> tokens) const;
  // The entry that begins with (or equals) these tokens; 0 if there is none.
  [[nodiscard]] EntryId covering(std::uint64_t salt, std::span<const Token> tokens) const;
  [[nodiscard]] const PrefixEntry* entry(EntryId id) const;

  // Inserts the entry as most recently used. Returns the id that is superfluous and not in the
  // index: a shorter entry that this one begins with, or this one if a longer one exists; else 0.
  EntryId insert(PrefixEntry entry);
  void use(EntryId id);
  void erase(EntryId id);

  [[nodiscard]] EntryId least_recently_used() const;  // 0 if the index is empty
  [[nodiscard]] std::size_t n_entries() const { return entries_.size(); }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Key {
    std::uint64_t salt;
    std::span<const Token> tokens;  // points into the entry
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
