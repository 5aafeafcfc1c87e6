#include "server/store/response_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <span>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "server/store/response_document.h"
#include "server/store/response_id.h"

namespace slipstream {
namespace {

constexpr const char* kLockName = "responses.lock";
constexpr std::string_view kTemporaryEnd = ".partial";

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string temporary_name(const std::string& id) { return id + std::string(kTemporaryEnd); }

bool is_temporary(std::string_view name) {
  return name.ends_with(kTemporaryEnd) &&
         is_response_id(name.substr(0, name.size() - kTemporaryEnd.size()));
}

Result<std::uint64_t> bytes_of(const UniqueFd& fd) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(errno, "cannot look at a file");
  if (!S_ISREG(status.st_mode)) return fail(Code::kCorrupt, "it is no file");
  return static_cast<std::uint64_t>(status.st_size);
}

// Whether the file is of no use any more. Other errors may pass.
bool is_lost(const Error& error) {
  return error.code == Code::kCorrupt || error.code == Code::kNotFound;
}

std::unexpected<Error> not_found(const std::string& id) {
  return fail(Code::kNotFound, format_text("there is no response {}", id));
}

}  // namespace

ResponseStore::ResponseStore(const ResponseStoreOptions& options,
                             std::unique_ptr<const PrivateFolder> folder)
    : options_(options), folder_(std::move(folder)) {}

Result<std::unique_ptr<ResponseStore>> ResponseStore::open(const ResponseStoreOptions& options) {
  std::unique_ptr<const PrivateFolder> folder;
  if (!options.folder.empty()) {
    Result<PrivateFolder> opened = PrivateFolder::open(options.folder, kLockName);
    if (!opened) return std::unexpected(opened.error());
    folder = std::make_unique<const PrivateFolder>(std::move(*opened));
  }
  std::unique_ptr<ResponseStore> store(new ResponseStore(options, std::move(folder)));
  if (const Result<void> scanned = store->scan(); !scanned) {
    return std::unexpected(scanned.error());
  }
  return store;
}

Result<void> ResponseStore::scan() {
  if (!folder_) return {};
  const Result<std::vector<std::string>> names = folder_->names();
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    if (is_temporary(name)) folder_->discard(name);  // its writer died before the rename
    if (!is_response_id(name)) continue;
    Result<Entry> entry = read_entry(name);
    if (entry) {
      const MutexLock lock(mutex_);
      n_bytes_ += entry->n_bytes;
      insert(name, std::move(*entry));
    } else {
      log::warn("responses.damaged", {{"file", name}, {"error", entry.error().message}});
      if (is_lost(entry.error())) remove_file(name);
    }
  }
  const Result<std::vector<std::string>> too_many = make_room(0);  // the limit may be lower now
  if (too_many) {
    for (const std::string& id : *too_many) remove_file(id);
  }
  return {};
}

Result<ResponseStore::Entry> ResponseStore::read_entry(const std::string& id) const {
  const Result<UniqueFd> fd = folder_->open_file(id, O_RDONLY | O_NONBLOCK);
  if (!fd) return std::unexpected(fd.error());
  const Result<std::uint64_t> n_bytes = bytes_of(*fd);
  if (!n_bytes) return std::unexpected(n_bytes.error());
  std::array<char, kDocumentHeadBytesMax> head{};
  const std::size_t n = std::min<std::uint64_t>(*n_bytes, head.size());
  const auto read = read_exactly(fd->get(), std::as_writable_bytes(std::span(head).first(n)), 0);
  if (!read) return std::unexpected(read.error());
  const Result<DocumentHead> known = read_document_head(std::string_view(head.data(), n));
  if (!known) return std::unexpected(known.error());
  if (known->n_bytes() != *n_bytes) return fail(Code::kCorrupt, "it is cut short");
  return Entry{.salt = known->salt, .created_ns = known->created_ns, .n_bytes = *n_bytes};
}

Result<void> ResponseStore::put(const std::string& id, Salt salt, const StoredResponse& stored) {
  SLIP_CHECK(is_response_id(id), "an id that is none");
  const std::int64_t created_ns = now_ns();
  std::string text = to_document(salt, created_ns, stored);
  Entry entry{.salt = salt, .created_ns = created_ns, .n_bytes = text.size()};
  const Result<std::vector<std::string>> too_old = make_room(entry.n_bytes);
  if (!too_old) return std::unexpected(too_old.error());
  if (folder_) {
    for (const std::string& old_id : *too_old) remove_file(old_id);
    if (Result<void> written = write_file(id, text); !written) {
      const MutexLock lock(mutex_);
      n_bytes_ -= entry.n_bytes;
      return written;
    }
  } else {
    entry.text = std::make_shared<const std::string>(std::move(text));
  }
  const MutexLock lock(mutex_);
  insert(id, std::move(entry));
  return {};
}

Result<StoredResponse> ResponseStore::get(const std::string& id, Salt salt) {
  const Result<Entry> entry = find(id, salt);
  if (!entry) return std::unexpected(entry.error());
  if (entry->text) return read_document(*entry->text);
  Result<StoredResponse> stored =
      read_file(id, entry->n_bytes).and_then([](const std::string& text) {
        return read_document(text);
      });
  if (stored) return stored;
  log::warn("responses.damaged", {{"file", id}, {"error", stored.error().message}});
  if (!is_lost(stored.error())) return stored;
  if (const Result<void> removed = remove(id, salt); !removed) {
    return std::unexpected(removed.error());
  }
  return not_found(id);
}

Result<void> ResponseStore::remove(const std::string& id, Salt salt) {
  if (const Result<Entry> entry = find(id, salt); !entry) return std::unexpected(entry.error());
  {
    const MutexLock lock(mutex_);
    erase(id);
  }
  remove_file(id);
  return {};
}

Result<ResponseStore::Entry> ResponseStore::find(const std::string& id, Salt salt) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.salt != salt) return not_found(id);
  return found->second;
}

Result<std::vector<std::string>> ResponseStore::make_room(std::uint64_t n_bytes) {
  if (n_bytes > options_.bytes_max) {
    return fail(Code::kUnsupported, format_text("a response of {} bytes does not fit into {} bytes",
                                                n_bytes, options_.bytes_max));
  }
  const MutexLock lock(mutex_);
  std::vector<std::string> too_old;
  const std::size_t n_kept_max = n_bytes > 0 ? options_.n_max - 1 : options_.n_max;
  while (!by_age_.empty() &&
         (n_bytes_ + n_bytes > options_.bytes_max || entries_.size() > n_kept_max)) {
    too_old.push_back(by_age_.begin()->second);
    erase(too_old.back());
  }
  if (n_bytes_ + n_bytes > options_.bytes_max) {
    return fail(Code::kOverloaded, "too many responses are being written");
  }
  n_bytes_ += n_bytes;
  return too_old;
}

Result<void> ResponseStore::write_file(const std::string& id, const std::string& text) const {
  const Result<UniqueFd> fd = folder_->open_file(temporary_name(id), O_WRONLY | O_CREAT | O_EXCL);
  if (!fd) return std::unexpected(fd.error());
  Result<void> written = write_exactly(fd->get(), std::as_bytes(std::span(text)));
  if (written) written = folder_->publish(*fd, temporary_name(id), id);
  if (!written) {
    folder_->discard(temporary_name(id));
    remove_file(id);
  }
  return written;
}

Result<std::string> ResponseStore::read_file(const std::string& id, std::uint64_t n_bytes) const {
  const Result<UniqueFd> fd = folder_->open_file(id, O_RDONLY | O_NONBLOCK);
  if (!fd) return std::unexpected(fd.error());
  std::string text(n_bytes, '\0');
  const auto read = read_exactly(fd->get(), std::as_writable_bytes(std::span(text)), 0);
  if (!read) return std::unexpected(read.error());
  return text;
}

void ResponseStore::remove_file(const std::string& id) const {
  if (!folder_) return;
  if (const Result<void> removed = folder_->remove(id); !removed) {
    log::warn("responses.remove", {{"error", removed.error().message}});
  }
}

void ResponseStore::insert(const std::string& id, Entry entry) {
  by_age_.emplace(entry.created_ns, id);
  entries_.emplace(id, std::move(entry));
}

void ResponseStore::erase(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  n_bytes_ -= found->second.n_bytes;
  by_age_.erase({found->second.created_ns, id});
  entries_.erase(found);
}

}  // namespace slipstream
