#include "engine/prefixes/disk/prefix_index.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "base/check.h"

namespace slipstream {
namespace {

int n_common(std::span<const Token> a, std::span<const Token> b) {
  return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

bool PrefixIndex::Key::operator<(const Key& other) const {
  if (salt != other.salt) return salt < other.salt;
  return std::ranges::lexicographical_compare(tokens, other.tokens);
}

bool PrefixIndex::Key::begins_with(const Key& other) const {
  return salt == other.salt && tokens.size() >= other.tokens.size() &&
         std::ranges::equal(tokens.first(other.tokens.size()), other.tokens);
}

DiskMatch PrefixIndex::find(std::uint64_t salt, std::span<const Token> tokens) const {
  DiskMatch best;
  const auto consider = [&](const std::pair<const Key, EntryId>& candidate) {
    const auto& [key, id] = candidate;
    const int n = key.salt == salt ? n_common(key.tokens, tokens) : 0;
    if (n <= best.n_common) return;
    best = {.id = id,
            .n_common = n,
            .n_stored = static_cast<int>(key.tokens.size()),
            .state_bytes = entries_.at(id).state_bytes};
  };
  const auto behind = by_tokens_.lower_bound({salt, tokens});
  if (behind != by_tokens_.end()) consider(*behind);
  if (behind != by_tokens_.begin()) consider(*std::prev(behind));
  return best;
}

EntryId PrefixIndex::covering(std::uint64_t salt, std::span<const Token> tokens) const {
  const Key key{salt, tokens};
  const auto behind = by_tokens_.lower_bound(key);
  return behind != by_tokens_.end() && behind->first.begins_with(key) ? behind->second : 0;
}

const PrefixEntry* PrefixIndex::entry(EntryId id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

EntryId PrefixIndex::insert(PrefixEntry entry) {
  SLIP_CHECK(entry.id != 0 && !entries_.contains(entry.id), "an entry needs an id of its own");
  EntryId superfluous = 0;
  if (!entry.tokens.empty()) {
    const Key key{entry.salt, entry.tokens};
    if (covering(entry.salt, entry.tokens) != 0) return entry.id;
    // At most one: if the new entry began with two others, one of them would begin with the other.
    const auto behind = by_tokens_.lower_bound(key);
    if (behind != by_tokens_.begin() && key.begins_with(std::prev(behind)->first)) {
      superfluous = std::prev(behind)->second;
      erase(superfluous);
    }
  }
  const EntryId id = entry.id;
  file_bytes_ += entry.file_bytes;
  const PrefixEntry& kept = entries_.emplace(id, std::move(entry)).first->second;
  if (!kept.tokens.empty()) by_tokens_.emplace(Key{kept.salt, kept.tokens}, id);
  return superfluous;
}

void PrefixIndex::erase(EntryId id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  const PrefixEntry& entry = found->second;
  file_bytes_ -= entry.file_bytes;
  if (!entry.tokens.empty()) by_tokens_.erase(Key{entry.salt, entry.tokens});
  entries_.erase(found);
}

std::vector<EntryId> PrefixIndex::ids() const {
  return {std::from_range, std::views::keys(entries_)};
}

}  // namespace slipstream
