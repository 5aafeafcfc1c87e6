// AddedTexts: what the server itself added to messages of conversations.
//
// A client sends its whole conversation with each turn, without what the server added to the messages
// before. It is added again, so that the prompt begins with the same tokens and the prefix that was
// computed is used again. Texts that were not used for longest are forgotten first.
//
// Threads: thread-safe. Errors: none; a text too long for the limit is not kept.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "engine/request.h"
#include "server/recall/sources.h"

namespace slipstream {

struct AddedPlace {
  RecallSource source;
  std::string text;
};
using AddedPlaces = std::vector<AddedPlace>;

// How a place is shown in a message, under its number.
[[nodiscard]] std::string numbered(std::size_t number, const AddedPlace& place);

// Names a message of one client's conversation: by what users said up to it, and no more. What the
// model said in between comes back as the client's program sees it, which may differ.
using MessageKey = std::array<unsigned char, 32>;

// Makes the keys of a conversation's messages, in order.
class MessageKeys {
 public:
  // purpose: what is added, with all that it depends on beside the conversation.
  MessageKeys(Salt salt, std::string_view purpose);
  // The key of the user's next message.
  [[nodiscard]] MessageKey next(std::string_view user_text);

 private:
  MessageKey last_;
};

class AddedTexts {
 public:
  explicit AddedTexts(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Null if nothing is known. Without places nothing was found.
  [[nodiscard]] std::shared_ptr<const AddedPlaces> find(const MessageKey& key);
  // Replaces what the key had.
  void put(const MessageKey& key, AddedPlaces added);

 private:
  struct Entry {
    MessageKey key;
    std::shared_ptr<const AddedPlaces> added;
    std::size_t n_bytes;
  };
  using Entries = std::list<Entry>;
  void remove(Entries::iterator entry) SLIP_TSA(requires_capability(mutex_));

  const std::size_t bytes_max_;
  Mutex mutex_;
  std::size_t n_bytes_ SLIP_GUARDED_BY(mutex_) = 0;
  Entries entries_ SLIP_GUARDED_BY(mutex_);  // the one used last is the first
  std::map<MessageKey, Entries::iterator> by_key_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream
