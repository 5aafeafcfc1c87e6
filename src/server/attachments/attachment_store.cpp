#include "server/attachments/attachment_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/log.h"
#include "base/utf8.h"
#include "server/attachments/attachment_limits.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;
using SystemClock = std::chrono::system_clock;

constexpr const char* kLockName = "attachments.lock";
constexpr std::string_view kRemoved = "removed-";
constexpr std::size_t kSaltDigits = 16;
// Of an index: its empty tables; and what each byte of text takes at most while it is written.
constexpr std::uint64_t kIndexBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kBytesPerByte = 2;

std::string name_of(Salt salt) { return format_text("{:016x}", salt); }
std::string key_of(const AttachedChat& chat) { return name_of(chat.salt) + "/" + chat.id; }

bool is_client_folder(std::string_view name) {
  return name.size() == kSaltDigits && std::ranges::all_of(name, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t n_bytes = 0;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    std::error_code gone;
    const std::uintmax_t n = item->file_size(gone);
    if (!gone) n_bytes += n;
  }
  return n_bytes;
}

std::unexpected<Error> nothing_attached() {
  return fail(Code::kNotFound, "no files are attached to this chat");
}

Result<void> check_id(const AttachedChat& chat) {
  if (is_chat_id(chat.id)) return {};
  return fail(Code::kInvalidArgument,
              format_text("the id of a chat is 1 to {} letters, digits, '-' and '_'",
                          kAttachmentLimits.chat_id_bytes_max));
}

}  // namespace

bool is_chat_id(std::string_view id) {
  return !id.empty() && id.size() <= kAttachmentLimits.chat_id_bytes_max &&
         std::ranges::all_of(id, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_';
         });
}

std::string why_no_attachment_name(std::string_view name) {
  if (name.empty()) return "a file needs a name";
  if (name.size() > kAttachmentLimits.name_bytes_max) {
    return format_text("the name has {} bytes, more than {}: give it a shorter one", name.size(),
                       kAttachmentLimits.name_bytes_max);
  }
  if (!is_utf8(name)) return "the name is not UTF-8";
  const bool has_control = std::ranges::any_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (has_control) return "the name has control characters";
  if (name.contains('/') || name == "." || name == "..")
    return "the name is a path: leave out folders";
  return {};
}

AttachmentStore::AttachmentStore(const AttachmentStoreOptions& options, PrivateFolder folder)
    : options_(options), folder_(std::move(folder)) {}

AttachmentStore::~AttachmentStore() = default;

Result<std::unique_ptr<AttachmentStore>> AttachmentStore::open(
    const AttachmentStoreOptions& options) {
  Result<PrivateFolder> folder = PrivateFolder::open(options.folder, kLockName);
  if (!folder) return std::unexpected(folder.error());
  std::unique_ptr<AttachmentStore> store(new AttachmentStore(options, std::move(*folder)));
  if (Result<void> scanned = store->scan(); !scanned) return std::unexpected(scanned.error());
  store->remove_idle(SystemClock::now());
  store->cleaner_ = std::jthread([&store = *store](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      never.wait_for(lock, stop, kAttachmentLimits.looks_for_idle_every, [] { return false; });
      if (!stop.stop_requested()) store.remove_idle(SystemClock::now());
    }
  });
  return store;
}

std::string AttachmentStore::path_of(const std::string& key) const {
  return folder_.path() + "/" + key;
}

Result<void> AttachmentStore::scan() {
  const Result<std::vector<std::string>> names = folder_.names();
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    std::error_code error;
    if (name.starts_with(kRemoved)) fs::remove_all(path_of(name), error);
    if (is_client_folder(name)) read_folder_of_client(name);
  }
  return {};
}

void AttachmentStore::read_folder_of_client(const std::string& name) {
  std::error_code error;
  for (fs::directory_iterator item(path_of(name), error), end; !error && item != end;
       item.increment(error)) {
    const std::string id = item->path().filename().string();
    struct stat status{};
    if (!is_chat_id(id) || ::lstat(item->path().c_str(), &status) != 0 ||
        !S_ISDIR(status.st_mode)) {
      continue;
    }
    const Entry entry{.n_bytes = bytes_in(item->path().string()),
                      .used = SystemClock::from_time_t(status.st_mtim.tv_sec)};
    const MutexLock lock(mutex_);
    n_bytes_ += entry.n_bytes;
    chats_.emplace(format_text("{}/{}", name, id), entry);
  }
}

Result<IndexedFile> AttachmentStore::add(const AttachedChat& chat, const std::string& name,
                                         std::string bytes) {
  if (Result<void> checked = check_id(chat); !checked) return std::unexpected(checked.error());
  if (std::string why = why_no_attachment_name(name); !why.empty()) {
    return fail(Code::kInvalidArgument, std::move(why));
  }
  {
    // Before it is read, which may take a minute.
    const MutexLock lock(writing_);
    if (Result<void> room = check_room(chat, name, 0); !room) return std::unexpected(room.error());
  }
  const Result<Content> content = content_of_attachment(name, std::move(bytes));
  if (!content) return std::unexpected(content.error());
  const MutexLock lock(writing_);
  if (Result<void> room =
          check_room(chat, name, kIndexBytes + kBytesPerByte * content->text.size());
      !room) {
    return std::unexpected(room.error());
  }
  return write(key_of(chat), name, *content);
}

Result<void> AttachmentStore::check_room(const AttachedChat& chat, const std::string& name,
                                         std::uint64_t n_more) {
  const std::string key = key_of(chat);
  if (has(key)) {
    Result<AttachedFiles> attached = AttachedFiles::open(path_of(key) + "/index.db");
    if (!attached) return std::unexpected(attached.error());
    const Result<std::vector<IndexedFile>> files = attached->list();
    if (!files) return std::unexpected(files.error());
    if (files->size() >= kAttachmentLimits.files_of_chat_max &&
        !std::ranges::contains(*files, name, &IndexedFile::path)) {
      return fail(Code::kOverloaded, format_text("this chat has {} files, as many as it may: "
                                                 "remove one first",
                                                 files->size()));
    }
  }
  const MutexLock lock(mutex_);
  if (!chats_.contains(key) && chats_.size() >= kAttachmentLimits.chats_max) {
    return fail(Code::kOverloaded,
                format_text("{} chats have files, as many as may: delete chats that have some",
                            chats_.size()));
  }
  const std::uint64_t n_of_client = bytes_of(chat.salt);
  if (const std::uint64_t n_max = bytes_max_of(chat.salt); n_of_client + n_more > n_max) {
    return fail(Code::kOverloaded,
                format_text("your files take {} of {}, and this one may need {}: remove some, or "
                            "delete chats that have some",
                            format_bytes(n_of_client), format_bytes(n_max), format_bytes(n_more)));
  }
  if (n_bytes_ + n_more > options_.bytes_max) {
    return fail(Code::kOverloaded,
                format_text("the files of all clients take {} of {}, and this one may need {}: "
                            "remove some of yours, or ask who runs the server for more "
                            "(--attachments-size)",
                            format_bytes(n_bytes_), format_bytes(options_.bytes_max),
                            format_bytes(n_more)));
  }
  return {};
}

Result<IndexedFile> AttachmentStore::write(const std::string& key, const std::string& name,
                                           const Content& content) {
  const std::string folder = path_of(key);
  const bool is_new = !has(key);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail_errno(error.value(), format_text("cannot make {}", folder));
  const std::string index = folder + "/index.db";
  Result<void> attached = attach_content(index, name, content);
  Result<IndexedFile> file = attached.and_then([&] {
    return AttachedFiles::open(index).and_then(
        [&](AttachedFiles&& files) { return files.find(name); });
  });
  if (!file && is_new) {
    if (const Result<void> removed = remove_folder(key); !removed) {
      log::warn("attachments.remove", {{"error", removed.error().message}});
    }
    return file;
  }
  settle(key);
  return file;
}

void AttachmentStore::settle(const std::string& key) {
  const std::uint64_t n_bytes = bytes_in(path_of(key));
  {
    const MutexLock lock(mutex_);
    Entry& entry = chats_[key];
    n_bytes_ += n_bytes - entry.n_bytes;
    entry.n_bytes = n_bytes;
  }
  set_used(key);
}

bool AttachmentStore::has(const std::string& key) {
  const MutexLock lock(mutex_);
  return chats_.contains(key);
}

void AttachmentStore::set_used(const std::string& key) {
  const MutexLock lock(mutex_);
  const auto found = chats_.find(key);
  if (found == chats_.end()) return;
  found->second.used = SystemClock::now();
  (void)::utimensat(AT_FDCWD, path_of(key).c_str(), nullptr, 0);  // for the next process
}

Result<AttachedFiles> AttachmentStore::files_of(const AttachedChat& chat) {
  if (Result<void> checked = check_id(chat); !checked) return std::unexpected(checked.error());
  const std::string key = key_of(chat);
  if (!has(key)) return nothing_attached();
  Result<AttachedFiles> files = AttachedFiles::open(path_of(key) + "/index.db");
  if (!files && !has(key)) return nothing_attached();  // removed in the meantime
  if (files) set_used(key);
  return files;
}

Result<void> AttachmentStore::remove(const AttachedChat& chat, const std::string& name) {
  if (Result<void> checked = check_id(chat); !checked) return checked;
  const std::string key = key_of(chat);
  const MutexLock lock(writing_);
  if (!has(key)) return nothing_attached();
  const Result<std::size_t> n_left = detach_content(path_of(key) + "/index.db", name);
  if (!n_left) return std::unexpected(n_left.error());
  if (*n_left == 0) return remove_folder(key);
  settle(key);
  return {};
}

Result<void> AttachmentStore::remove_all(const AttachedChat& chat) {
  if (Result<void> checked = check_id(chat); !checked) return checked;
  const MutexLock lock(writing_);
  if (!has(key_of(chat))) return nothing_attached();
  return remove_folder(key_of(chat));
}

// Renamed first: nobody finds a part of it, whatever happens.
Result<void> AttachmentStore::remove_folder(const std::string& key) {
  const std::string removed = path_of(format_text("{}{}", kRemoved, n_removed_++));
  std::error_code error;
  fs::rename(path_of(key), removed, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail_errno(error.value(), format_text("cannot remove {}", path_of(key)));
  }
  {
    const MutexLock lock(mutex_);
    if (const auto found = chats_.find(key); found != chats_.end()) {
      n_bytes_ -= found->second.n_bytes;
      chats_.erase(found);
    }
  }
  fs::remove_all(removed, error);
  if (error) log::warn("attachments.remove", {{"folder", removed}, {"error", error.message()}});
  fs::remove(fs::path(path_of(key)).parent_path(), error);  // unless the client has other chats
  return {};
}

int AttachmentStore::remove_idle(SystemClock::time_point now) {
  std::vector<std::string> idle;
  const MutexLock writing(writing_);
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, entry] : chats_) {
      if (now - entry.used > options_.idle_max) idle.push_back(key);
    }
  }
  int n_removed = 0;
  for (const std::string& key : idle) {
    if (const Result<void> removed = remove_folder(key); removed) {
      ++n_removed;
    } else {
      log::warn("attachments.remove", {{"error", removed.error().message}});
    }
  }
  if (n_removed > 0) log::info("attachments.idle", {{"n_chats", n_removed}});
  return n_removed;
}

AttachmentStore::Room AttachmentStore::room_of(Salt salt) {
  const MutexLock lock(mutex_);
  return {.n_bytes = bytes_of(salt), .n_bytes_max = bytes_max_of(salt)};
}

std::uint64_t AttachmentStore::bytes_of(Salt salt) {
  const std::string client = name_of(salt) + "/";
  std::uint64_t n_bytes = 0;
  for (auto chat = chats_.lower_bound(client);
       chat != chats_.end() && chat->first.starts_with(client); ++chat) {
    n_bytes += chat->second.n_bytes;
  }
  return n_bytes;
}

// Without keys there is one client.
std::uint64_t AttachmentStore::bytes_max_of(Salt salt) const {
  return salt == 0 ? options_.bytes_max : options_.bytes_max / kAttachmentLimits.key_share;
}

}  // namespace slipstream
