// AttachmentStore: files that clients attached to their chats. Each chat has an index of its own,
// which holds their texts; the files themselves are not kept.
//
// A chat is found by the salt of its client's key and the id that the client gave it, so a key never
// reaches the chats of others. Its folder is FOLDER/SALT/ID, with an index as retrieval/ writes it.
// Nothing makes room for something new: what does not fit is refused. Chats that nobody used for
// long are removed.
//
// Threads: thread-safe. All functions wait for the disk; add() may take a minute.
// Errors:  open(): as PrivateFolder. kInvalidArgument for an id or a name that cannot be; kNotFound;
//          kUnsupported for a file without a text, with the reason; kOverloaded for a limit, with what
//          to do; those of the index.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/private_folder.h"
#include "base/result.h"
#include "engine/request.h"
#include "server/attachments/attached_files.h"

namespace slipstream {

struct AttachmentStoreOptions {
  std::string folder;
  std::uint64_t bytes_max = std::uint64_t{1} << 30;  // of all indexes
  std::chrono::hours idle_max{30 * 24};              // then a chat is removed
};

// A chat of a client.
struct AttachedChat {
  Salt salt = 0;
  std::string id;
};
// 1 to 64 letters, digits, '-' and '_': part of a path and of an address.
[[nodiscard]] bool is_chat_id(std::string_view id);
// Why no attachment can have this name; empty: it can.
[[nodiscard]] std::string why_no_attachment_name(std::string_view name);

class AttachmentStore {
 public:
  [[nodiscard]] static Result<std::unique_ptr<AttachmentStore>> open(
      const AttachmentStoreOptions& options);
  ~AttachmentStore();
  AttachmentStore(const AttachmentStore&) = delete;
  AttachmentStore& operator=(const AttachmentStore&) = delete;

  // Replaces the chat's file of this name. When it returns, the file is found, and on disk.
  [[nodiscard]] Result<IndexedFile> add(const AttachedChat& chat, const std::string& name,
                                        std::string bytes);
  // The chat's files; counts as a use of them. kNotFound: it has none.
  [[nodiscard]] Result<AttachedFiles> files_of(const AttachedChat& chat);
  [[nodiscard]] Result<void> remove(const AttachedChat& chat, const std::string& name);
  [[nodiscard]] Result<void> remove_all(const AttachedChat& chat);
  // Returns how many chats it removed.
  int remove_idle(std::chrono::system_clock::time_point now);

  struct Room {
    std::uint64_t n_bytes = 0;  // that the client has
    std::uint64_t n_bytes_max = 0;
  };
  [[nodiscard]] Room room_of(Salt salt);

 private:
  struct Entry {
    std::uint64_t n_bytes = 0;
    std::chrono::system_clock::time_point used = {};
  };

  AttachmentStore(const AttachmentStoreOptions& options, PrivateFolder folder);
  [[nodiscard]] Result<void> scan();
  void read_folder_of_client(const std::string& name);
  [[nodiscard]] std::string path_of(const std::string& key) const;

  [[nodiscard]] Result<void> check_room(const AttachedChat& chat, const std::string& name,
                                        std::uint64_t n_more)
      SLIP_TSA(requires_capability(writing_));
  [[nodiscard]] Result<IndexedFile> write(const std::string& key, const std::string& name,
                                          const Content& content)
      SLIP_TSA(requires_capability(writing_));
  // Looks how large the chat's index is now; one without files goes.
  void settle(const std::string& key) SLIP_TSA(requires_capability(writing_));
  [[nodiscard]] Result<void> remove_folder(const std::string& key)
      SLIP_TSA(requires_capability(writing_));
  [[nodiscard]] bool has(const std::string& key);
  void set_used(const std::string& key);
  [[nodiscard]] std::uint64_t bytes_of(Salt salt) SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] std::uint64_t bytes_max_of(Salt salt) const;

  const AttachmentStoreOptions options_;
  const PrivateFolder folder_;
  Mutex writing_;  // held while an index is written or removed; before mutex_
  int n_removed_ SLIP_GUARDED_BY(writing_) = 0;
  Mutex mutex_;
  // By "SALT/ID", so that those of a client stand together.
  std::map<std::string, Entry> chats_ SLIP_GUARDED_BY(mutex_);
  std::uint64_t n_bytes_ SLIP_GUARDED_BY(mutex_) = 0;
  std::jthread cleaner_;  // must be the last member: it uses all others
};

}  // namespace slipstream
