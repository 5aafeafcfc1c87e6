// PrefixIndex: which prefixes are on disk, and which of them shares most with a prompt. Pure: no
// files, no clock.
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

  // Returns the id that is superfluous and not in the index: a shorter entry that this one begins
  // with, or this one if a longer one exists; else 0.
  EntryId insert(PrefixEntry entry);
  void erase(EntryId id);

  [[nodiscard]] std::vector<EntryId> ids() const;
  [[nodiscard]] std::size_t n_entries() const { return entries_.size(); }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Key {
    std::uint64_t salt;
    std::span<const Token> tokens;  // points into the entry
    bool operator<(const Key& other) const;
    [[nodiscard]] bool begins_with(const Key& other) const;
  };

  std::map<EntryId, PrefixEntry> entries_;
  std::map<Key, EntryId> by_tokens_;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace slipstream
