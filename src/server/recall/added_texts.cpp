#include "server/recall/added_texts.h"

#include <algorithm>
#include <boost/hash2/sha2.hpp>
#include <utility>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr std::size_t kEntryBytes = 256;  // of an entry itself, about

MessageKey digest_of(const MessageKey& before, std::string_view text) {
  boost::hash2::sha2_256 hash;
  hash.update(before.data(), before.size());
  hash.update(text.data(), text.size());
  const auto result = hash.result();
  MessageKey key{};
  std::ranges::copy(result, key.begin());
  return key;
}

std::size_t bytes_of(const AddedPlaces& added) {
  std::size_t n = kEntryBytes;
  for (const auto& [source, text] : added) {
    n += sizeof(AddedPlace) + text.size() + source.project.size() + source.chat.size() +
         source.path.size();
  }
  return n;
}

}  // namespace

std::string numbered(std::size_t number, const AddedPlace& place) {
  const RecallSource& source = place.source;
  return format_text("\n[{}] {}{}{}:{}-{}\n{}{}", number, source.project,
                     source.project.empty() ? "" : "/", source.path, source.first_line,
                     source.last_line, place.text, place.text.ends_with('\n') ? "" : "\n");
}

MessageKeys::MessageKeys(Salt salt, std::string_view purpose) : last_{} {
  for (std::size_t i = 0; i < sizeof(salt); ++i) {
    last_[i] = static_cast<unsigned char>(salt >> (8 * i));
  }
  last_ = digest_of(last_, purpose);
}

MessageKey MessageKeys::next(std::string_view user_text) {
  last_ = digest_of(last_, user_text);
  return last_;
}

std::shared_ptr<const AddedPlaces> AddedTexts::find(const MessageKey& key) {
  const MutexLock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->added;
}

void AddedTexts::put(const MessageKey& key, AddedPlaces added) {
  const std::size_t n_bytes = bytes_of(added);
  const MutexLock lock(mutex_);
  if (const auto old = by_key_.find(key); old != by_key_.end()) remove(old->second);
  if (n_bytes > bytes_max_) return;
  while (n_bytes_ + n_bytes > bytes_max_) remove(std::prev(entries_.end()));
  entries_.push_front({.key = key,
                       .added = std::make_shared<const AddedPlaces>(std::move(added)),
                       .n_bytes = n_bytes});
  by_key_.emplace(key, entries_.begin());
  n_bytes_ += n_bytes;
}

void AddedTexts::remove(Entries::iterator entry) {
  n_bytes_ -= entry->n_bytes;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace slipstream
