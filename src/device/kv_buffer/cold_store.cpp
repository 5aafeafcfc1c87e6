#include "device/kv_buffer/cold_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "device/guard.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

constexpr unsigned kOwnerOnly = 0600;

std::atomic<bool> any_store = false;

Result<UniqueFd> open_nameless(const std::string& directory) {
  Result<UniqueFd> fd = open_file(directory, O_TMPFILE | O_RDWR, kOwnerOnly);
  if (fd) return fd;
  // Some file systems, such as those of the network, refuse files that never had a name.
  std::string path = directory + "/slipstream-kv-XXXXXX";
  UniqueFd named(::mkostemp(path.data(), O_CLOEXEC));
  if (!named) return fd;  // which says what is wrong with the directory
  if (::unlink(path.c_str()) != 0) return fail_errno(errno, "cannot remove the name " + path);
  return named;
}

}  // namespace

ColdCounters& ColdCounters::of_process() {
  static ColdCounters counters;
  return counters;
}

void ColdCounters::add(const KvMemoryCounters& more) {
  n_hits_ += more.n_hits;
  n_misses_ += more.n_misses;
  n_bytes_read_ += more.n_bytes_read;
  n_bytes_written_ += more.n_bytes_written;
  n_failed_reads_ += more.n_failed_reads;
  n_failed_writes_ += more.n_failed_writes;
}

KvMemoryCounters ColdCounters::read() const {
  return {.n_hits = n_hits_,
          .n_misses = n_misses_,
          .n_bytes_read = n_bytes_read_,
          .n_bytes_written = n_bytes_written_,
          .n_failed_reads = n_failed_reads_,
          .n_failed_writes = n_failed_writes_,
          .n_bytes_resident = static_cast<std::uint64_t>(n_bytes_resident_)};
}

ColdStore::ColdStore(ColdOptions options) : options_(std::move(options)) { any_store = true; }

bool ColdStore::was_used() { return any_store; }

std::size_t ColdStore::share_of(std::size_t n_bytes) const {
  const std::size_t n_all = std::max<std::size_t>(n_code_bytes_, 1);
  if (n_all <= options_.memory_bytes) return n_bytes;
  return static_cast<std::size_t>(static_cast<double>(options_.memory_bytes) /
                                  static_cast<double>(n_all) * static_cast<double>(n_bytes));
}

std::unique_ptr<SlabReader> ColdStore::borrow_reader() {
  std::unique_ptr<SlabReader> reader;
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      reader = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (reader == nullptr) reader = std::make_unique<SlabReader>(options_.way);
  reader->set_fault(faults_.read);
  return reader;
}

void ColdStore::give_back(std::unique_ptr<SlabReader> reader) noexcept {
  if (reader->has_ended()) has_ended_ = true;
  const MutexLock lock(mutex_);
  try {
    idle_.push_back(std::move(reader));
  } catch (const std::bad_alloc&) {
    reader.reset();  // the next one is made anew
  }
}

Result<void> ColdStore::check() const {
  if (!has_ended_) return {};
  return fail(Code::kIo,
              "cold chunks of the KV cache cannot be read any more, because io_uring has stopped: "
              "start again, with io=pread if it happens again");
}

void ColdStore::count(const KvMemoryCounters& more) {
  counters_.add(more);
  ColdCounters::of_process().add(more);
}

void ColdStore::count_resident(std::int64_t n_bytes_more) {
  counters_.change_resident(n_bytes_more);
  ColdCounters::of_process().change_resident(n_bytes_more);
}

void ColdStore::set_faults(Faults faults) { faults_ = std::move(faults); }

Result<std::shared_ptr<ColdFile>> ColdFile::create(std::shared_ptr<ColdStore> store) {
  const ColdOptions& options = store->options();
  Result<UniqueFd> fd = open_nameless(options.directory);
  if (!fd) {
    return fail(fd.error().code, "no file for cold chunks of the KV cache: " + fd.error().message);
  }
  DataFile file{.path = "the KV file in " + options.directory, .fd = std::move(*fd)};
  if (options.way != ReadMethod::kUringBuffered) {
    // Where O_DIRECT is refused, reads and writes go through the page cache.
    const int flags = ::fcntl(file.fd.get(), F_GETFL);
    file.is_direct = flags >= 0 && ::fcntl(file.fd.get(), F_SETFL, flags | O_DIRECT) == 0;
  }
  return std::shared_ptr<ColdFile>(new ColdFile(std::move(store), std::move(file)));
}

ColdFile::~ColdFile() {
  (void)is_done([&] {
    const KvMemoryCounters counters = store_->counters();
    if (counters.n_hits + counters.n_misses == 0) return;
    log_line(
        GGML_LOG_LEVEL_INFO,
        format_text("cold chunks of the KV cache: {} MiB read, {} MiB written; of {} that were "
                    "needed {} were not in memory",
                    counters.n_bytes_read >> 20U, counters.n_bytes_written >> 20U,
                    counters.n_hits + counters.n_misses, counters.n_misses));
  });
}

Result<void> ColdFile::reserve(std::uint64_t n_bytes) {
  if (n_bytes == 0) return {};
  const int fd = file_.fd.get();
  const auto end = static_cast<off_t>(file_.n_bytes + n_bytes);
  int status = 0;
  do {
    status = ::fallocate(fd, 0, static_cast<off_t>(file_.n_bytes), static_cast<off_t>(n_bytes));
  } while (status != 0 && errno == EINTR);
  // Where room cannot be reserved, the file grows as it is written.
  if (status != 0 && errno == EOPNOTSUPP) status = ::ftruncate(fd, end);
  if (status != 0) {
    return fail_errno(
        errno, format_text("cannot reserve {} MiB for cold chunks of the KV cache in "
                           "{}: name another directory, or a smaller context",
                           static_cast<std::uint64_t>(end) >> 20U, store_->options().directory));
  }
  file_.n_bytes = static_cast<std::uint64_t>(end);
  return {};
}

Result<std::uint64_t> ColdFile::take(std::uint64_t n_bytes) {
  SLIP_CHECK(n_bytes % kBlockBytes == 0, "whole blocks are taken");
  const std::uint64_t start = n_taken_;
  if (const std::uint64_t end = start + n_bytes; end > file_.n_bytes) {
    if (Result<void> done = reserve(end - file_.n_bytes); !done) {
      return std::unexpected(std::move(done.error()));
    }
  }
  n_taken_ += n_bytes;
  return start;
}

Result<void> ColdFile::write(std::span<const std::byte> from, std::uint64_t offset) const {
  while (!from.empty()) {
    if (const int fault = store_->write_fault(); fault != 0) {
      return fail_errno(fault, "cannot write " + file_.path);
    }
    const ssize_t n =
        ::pwrite(file_.fd.get(), from.data(), from.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "cannot write " + file_.path);
    // A direct write that stops between blocks could not go on there.
    const auto n_done = static_cast<std::size_t>(n) / kBlockBytes * kBlockBytes;
    if (n_done == 0) return fail(Code::kIo, "the disk takes no more of " + file_.path);
    from = from.subspan(n_done);
    offset += n_done;
  }
  return {};
}

}  // namespace slipstream::turbo
