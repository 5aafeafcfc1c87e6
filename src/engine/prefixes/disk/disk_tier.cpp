#include "engine/prefixes/disk/disk_tier.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"

namespace slipstream {
namespace {

// How often the directory is looked at for what others have written.
constexpr std::chrono::milliseconds kLookEvery = std::chrono::seconds(1);

}  // namespace

DiskTier::DiskTier(PrefixDirectory directory, std::uint64_t bytes_max,
                   const Fingerprint& fingerprint, const DiskLimits& limits)
    : directory_(std::move(directory)),
      bytes_max_(bytes_max),
      fingerprint_(fingerprint),
      limits_(limits),
      queue_(limits.n_prefix_writes_max) {}

Result<std::unique_ptr<DiskTier>> DiskTier::open(const std::string& directory,
                                                 std::uint64_t bytes_max,
                                                 const Fingerprint& fingerprint,
                                                 const DiskLimits& limits) {
  Result<PrefixDirectory> locked = PrefixDirectory::open(directory);
  if (!locked) return std::unexpected(std::move(locked.error()));
  std::unique_ptr<DiskTier> tier(new DiskTier(std::move(*locked), bytes_max, fingerprint, limits));
  if (Result<void> scanned = tier->scan(); !scanned) {
    return std::unexpected(std::move(scanned.error()));
  }
  try {
    tier->writer_ =
        std::jthread([tier = tier.get()](const std::stop_token& stop) { tier->run(stop); });
  } catch (const std::system_error& error) {
    return fail(Code::kOverloaded, format_text("cannot start a thread: {}", error.what()));
  }
  return tier;
}

DiskTier::~DiskTier() {
  writer_.request_stop();
  if (writer_.joinable()) writer_.join();
}

// --- what is in the directory

Result<void> DiskTier::scan() {
  Result<PrefixDirectory::Turn> turn = directory_.take_turn(limits_.turn_wait_max);
  // Without a turn the files can be read, but the budget may have been larger in the last run.
  if (!turn) log::warn("disk_tier.no_turn", {{"error", turn.error().message}});
  Result<void> done = look_at_all();
  if (done && turn) done = make_room(0, 0);
  oldest_.reset();
  if (!done) return done;
  const DiskTierStats now = stats();
  log::info("disk_tier.open", {{"directory", directory_.path()},
                               {"n_files", now.n_files},
                               {"bytes", now.bytes},
                               {"n_corrupt", now.n_corrupt}});
  return {};
}

// The time of change has steps of milliseconds, and another process may change the directory twice
// in one, so that a look comes between: it is looked at until nothing has changed since last time.
void DiskTier::look() {
  const Result<std::int64_t> changed_at_ns = directory_.changed_at_ns();
  if (!changed_at_ns) return;
  const bool has_changed = *changed_at_ns != changed_at_ns_;
  if (!has_changed && is_settled_) return;
  is_settled_ = !has_changed;
  changed_at_ns_ = *changed_at_ns;
  if (Result<void> looked = look_at_all(); !looked) {
    log::debug("disk_tier.look_failed", {{"error", looked.error().message}});
  }
}

Result<void> DiskTier::look_at_all() {
  Result<std::vector<EntryId>> there = directory_.ids();
  if (!there) return std::unexpected(std::move(there.error()));
  std::ranges::sort(*there);
  std::vector<EntryId> appeared;
  {
    const MutexLock lock(mutex_);
    const std::vector<EntryId> known = index_.ids();
    std::ranges::set_difference(*there, known, std::back_inserter(appeared));
    std::vector<EntryId> gone;
    std::ranges::set_difference(known, *there, std::back_inserter(gone));
    for (const EntryId id : gone) index_.erase(id);
  }
  for (const EntryId id : appeared) look_at(id);
  return {};
}

void DiskTier::look_at(EntryId id) {
  Result<PrefixEntry> entry = head_of(id);
  const bool is_corrupt = !entry && entry.error().code == Code::kCorrupt;
  if (!entry && !is_corrupt) return;  // somebody has deleted it
  EntryId superfluous = id;
  {
    const MutexLock lock(mutex_);
    if (is_corrupt) ++stats_.n_corrupt;
    if (entry) superfluous = index_.insert(std::move(*entry));
  }
  if (superfluous != 0) remove(superfluous);
}

// Fails if the file is damaged or absent. One that cannot be read now, or is of another version or
// fingerprint, has an entry without tokens.
Result<PrefixEntry> DiskTier::head_of(EntryId id) const {
  const Result<std::uint64_t> file_bytes = directory_.file_bytes(id);
  if (!file_bytes) return std::unexpected(file_bytes.error());
  PrefixEntry entry = {.id = id, .file_bytes = *file_bytes};
  Result<UniqueFd> fd = directory_.open_file(id);
  if (!fd && fd.error().code == Code::kNotFound) return std::unexpected(std::move(fd.error()));
  if (!fd) return entry;
  Result<PrefixFile> opened = PrefixFile::open(std::move(*fd), limits_);
  if (!opened && opened.error().code == Code::kCorrupt) {
    return std::unexpected(std::move(opened.error()));
  }
  if (!opened || opened->head().fingerprint != fingerprint_) return entry;
  entry.salt = opened->head().salt;
  entry.tokens = opened->head().tokens;
  entry.state_bytes = opened->head().state_bytes;
  return entry;
}

// --- looking and reading

DiskMatch DiskTier::find(std::uint64_t salt, std::span<const Token> tokens) const {
  const MutexLock lock(mutex_);
  return index_.find(salt, tokens);
}

Result<std::vector<std::byte>> DiskTier::read(EntryId id) {
  {
    const MutexLock lock(mutex_);
    ++stats_.n_reads;
    const PrefixEntry* entry = index_.entry(id);
    if (entry == nullptr || entry->tokens.empty()) {
      return fail(Code::kNotFound, "the prefix was deleted");
    }
  }
  Result<std::vector<std::byte>> state = read_file(id);
  if (!state) {
    forget(id, state.error());
    return state;
  }
  directory_.touch(id, std::chrono::system_clock::now());
  const MutexLock lock(mutex_);
  ++stats_.n_hits;
  used_at_.erase(id);  // that use was earlier
  return state;
}

Result<std::vector<std::byte>> DiskTier::read_file(EntryId id) const {
  Result<UniqueFd> fd = directory_.open_file(id);
  if (!fd) return std::unexpected(std::move(fd.error()));
  Result<PrefixFile> file = PrefixFile::open(std::move(*fd), limits_);
  if (!file) return std::unexpected(std::move(file.error()));
  {
    const MutexLock lock(mutex_);
    const PrefixEntry* entry = index_.entry(id);
    if (entry == nullptr) return fail(Code::kNotFound, "the prefix was deleted");
    // Do not trust file names: a wrong state gives a wrong answer, or leaks another client's text.
    if (file->head().fingerprint != fingerprint_ || file->head().salt != entry->salt ||
        file->head().tokens != entry->tokens || file->head().state_bytes != entry->state_bytes) {
      return fail(Code::kCorrupt, "the file holds another prefix than when it was opened first");
    }
  }
  try {
    std::vector<std::byte> state(file->head().state_bytes);
    if (Result<void> read = file->read_state(state); !read) {
      return std::unexpected(std::move(read.error()));
    }
    return state;
  } catch (const std::bad_alloc&) {
    return fail(Code::kOutOfMemory,
                format_text("no memory for a state of {} bytes", file->head().state_bytes));
  }
}

void DiskTier::forget(EntryId id, const Error& why) {
  // Only for errors of the file itself; a lack of descriptors or memory is not its fault.
  if (why.code != Code::kCorrupt && why.code != Code::kIo && why.code != Code::kNotFound) return;
  {
    const MutexLock lock(mutex_);
    if (index_.entry(id) == nullptr) return;  // another reader has removed it
    index_.erase(id);
    if (why.code == Code::kCorrupt) ++stats_.n_corrupt;
  }
  if (why.code == Code::kNotFound) return;  // another process has removed it
  log::warn("disk_tier.unreadable", {{"id", id}, {"error", why.message}});
  remove(id);
}

void DiskTier::remove(EntryId id) const {
  if (Result<void> removed = directory_.remove(id); !removed) {
    log::warn("disk_tier.remove_failed", {{"error", removed.error().message}});
  }
}

DiskTierStats DiskTier::stats() const {
  const MutexLock lock(mutex_);
  DiskTierStats now = stats_;
  now.n_files = index_.n_entries();
  now.bytes = index_.file_bytes();
  return now;
}

// --- handing over

bool DiskTier::takes(std::uint64_t salt, std::span<const Token> tokens,
                     std::uint64_t state_bytes) const {
  const bool possible = !tokens.empty() && tokens.size() <= limits_.prefix_tokens_max &&
                        state_bytes > 0 && state_bytes <= limits_.prefix_state_bytes_max &&
                        prefix_file_bytes_max(tokens.size(), state_bytes) <= bytes_max_;
  if (!possible || pending_.size() >= limits_.n_prefix_writes_max ||
      pending_bytes_ + state_bytes > limits_.prefix_writes_bytes_max) {
    return false;
  }
  const bool waits_already = std::ranges::any_of(pending_, [&](const Pending& pending) {
    return pending.salt == salt && pending.tokens.size() >= tokens.size() &&
           std::ranges::equal(std::span(pending.tokens).first(tokens.size()), tokens);
  });
  return !waits_already && index_.covering(salt, tokens) == 0;
}

bool DiskTier::takes_or_uses(std::uint64_t salt, std::span<const Token> tokens,
                             std::uint64_t state_bytes) {
  if (takes(salt, tokens, state_bytes)) return true;
  if (const EntryId stored = index_.covering(salt, tokens); stored != 0) {
    used_at_[stored] = std::chrono::system_clock::now();
  }
  return false;
}

bool DiskTier::wants(std::uint64_t salt, std::span<const Token> tokens, std::uint64_t state_bytes) {
  const MutexLock lock(mutex_);
  return takes_or_uses(salt, tokens, state_bytes);
}

bool DiskTier::write(std::uint64_t salt, std::vector<Token> tokens, std::vector<std::byte> state) {
  const MutexLock lock(mutex_);
  const std::uint64_t state_bytes = state.size();
  if (!takes_or_uses(salt, tokens, state_bytes)) return false;
  pending_.push_back({salt, tokens, state_bytes});
  pending_bytes_ += state_bytes;
  const Result<void> pushed = queue_.try_push({.head = {.fingerprint = fingerprint_,
                                                        .salt = salt,
                                                        .tokens = std::move(tokens),
                                                        .state_bytes = state_bytes},
                                               .state = std::move(state)});
  SLIP_CHECK(pushed.has_value(), "the queue holds less than what is pending");
  return true;
}

void DiskTier::flush() {
  const MutexLock lock(mutex_);
  nothing_pending_.wait(mutex_,
                        [this]() SLIP_TSA(no_thread_safety_analysis) { return pending_.empty(); });
}

// --- the writing thread

void DiskTier::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    // After a stop request what is queued is dropped.
    std::optional<Job> job = queue_.pop_for(kLookEvery, stop);
    if (stop.stop_requested()) break;
    try {
      if (job) {
        work_off(*job, stop);
      } else {
        look();
      }
    } catch (const std::exception& error) {  // such as bad_alloc: it costs this prefix
      report(fail(Code::kOutOfMemory, error.what()));
    }
    remember_uses();
    if (!job) continue;
    job.reset();  // frees its memory before the next is taken
    const MutexLock lock(mutex_);
    pending_bytes_ -= pending_.front().state_bytes;
    pending_.pop_front();
    if (pending_.empty()) nothing_pending_.notify_all();
  }
  remember_uses();
}

void DiskTier::remember_uses() {
  std::map<EntryId, std::chrono::system_clock::time_point> used_at;
  {
    const MutexLock lock(mutex_);
    used_at.swap(used_at_);
  }
  for (const auto& [id, when] : used_at) directory_.touch(id, when);
}

void DiskTier::work_off(const Job& job, const std::stop_token& stop) {
  report(store(job, stop));
  oldest_.reset();
}

Result<void> DiskTier::store(const Job& job, const std::stop_token& stop) {
  const Result<PrefixDirectory::Turn> turn = directory_.take_turn(limits_.turn_wait_max, stop);
  if (!turn) return std::unexpected(turn.error());
  if (Result<void> looked = look_at_all(); !looked) return looked;
  {
    const MutexLock lock(mutex_);
    const EntryId stored = index_.covering(job.head.salt, job.head.tokens);
    if (stored != 0) {  // by another process, meanwhile
      used_at_[stored] = std::chrono::system_clock::now();
      return {};
    }
  }
  const EntryId id = new_id();
  const Result<std::uint64_t> file_bytes = write_file(id, job);
  if (!file_bytes) {
    directory_.discard(id);
    return std::unexpected(file_bytes.error());
  }
  EntryId superfluous = 0;
  {
    const MutexLock lock(mutex_);
    ++stats_.n_writes;
    superfluous = index_.insert({.id = id,
                                 .salt = job.head.salt,
                                 .tokens = job.head.tokens,
                                 .state_bytes = job.head.state_bytes,
                                 .file_bytes = *file_bytes});
  }
  if (superfluous != 0) remove(superfluous);
  return {};
}

// Never one that was there before: another process may still know the file of that name.
EntryId DiskTier::new_id() { return std::max<EntryId>(random_() >> 1U, 1); }

Result<std::uint64_t> DiskTier::write_file(EntryId id, const Job& job) {
  Result<UniqueFd> fd = directory_.create(id);
  if (!fd) return std::unexpected(std::move(fd.error()));
  Result<std::uint64_t> file_bytes = write_prefix_file(
      fd->get(), job.head, job.state, [this](std::uint64_t n_written, std::uint64_t n_more) {
        return make_room(n_written, n_more);
      });
  if (!file_bytes) return file_bytes;
  if (Result<void> published = directory_.publish(id, *fd); !published) {
    return std::unexpected(std::move(published.error()));
  }
  return file_bytes;
}

// Deletes the least recently used files until a file of n_written bytes may grow by n_more. Called
// for each block, because the compressed size of a state is not known beforehand. REQUIRES: a turn.
Result<void> DiskTier::make_room(std::uint64_t n_written, std::uint64_t n_more) {
  const Result<std::uint64_t> spare_bytes = directory_.spare_bytes(limits_.disk_reserve_bytes_max);
  if (!spare_bytes) return std::unexpected(spare_bytes.error());
  const std::uint64_t over_disk = n_more - std::min(n_more, *spare_bytes);
  const std::size_t n_entries_max = limits_.n_prefix_files_max - (n_more > 0 ? 1 : 0);
  std::uint64_t bytes_max = 0;
  {
    const MutexLock lock(mutex_);
    const std::uint64_t bytes = index_.file_bytes();
    const std::uint64_t n_new = n_written + n_more;
    if (n_new > bytes_max_ || over_disk > bytes) {
      return fail(Code::kOverloaded, format_text("{} bytes more do not fit: {} has {} to spare",
                                                 n_more, directory_.path(), *spare_bytes));
    }
    bytes_max = std::min(bytes_max_ - n_new, bytes - over_disk);
  }
  const auto has_room = [&] {
    const MutexLock lock(mutex_);
    return index_.file_bytes() <= bytes_max && index_.n_entries() <= n_entries_max;
  };
  while (!has_room()) {
    if (!evict_oldest()) {
      return fail(Code::kOverloaded,
                  format_text("{}: no file is left to be deleted", directory_.path()));
    }
  }
  return {};
}

bool DiskTier::evict_oldest() {
  if (!oldest_) {
    remember_uses();
    Result<std::vector<PrefixDirectory::File>> files = directory_.list();
    if (!files) return false;
    oldest_.emplace(files->begin(), files->end());
  }
  if (oldest_->empty()) return false;
  const EntryId id = oldest_->front().id;
  oldest_->pop_front();
  {
    const MutexLock lock(mutex_);
    if (index_.entry(id) == nullptr) return true;
    index_.erase(id);
    ++stats_.n_evicted;
  }
  remove(id);
  return true;
}

// Logs one line when writing starts to fail and one when it works again.
void DiskTier::report(const Result<void>& stored) {
  bool was_failing = false;
  {
    const MutexLock lock(mutex_);
    if (!stored) ++stats_.n_write_failures;
    was_failing = std::exchange(is_failing_, !stored.has_value());
  }
  if (!stored && !was_failing) {
    log::warn("disk_tier.write_failed",
              {{"directory", directory_.path()}, {"error", stored.error().message}});
  }
  if (stored && was_failing) {
    log::info("disk_tier.write_works_again", {{"directory", directory_.path()}});
  }
}

}  // namespace slipstream
