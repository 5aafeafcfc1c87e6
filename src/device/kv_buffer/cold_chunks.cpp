#include "device/kv_buffer/cold_chunks.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/format.h"

namespace slipstream::turbo {
namespace {

// Slabs are dropped in batches of up to so many, so that neighbours are written together.
constexpr std::size_t kBatchMax = 256;

}  // namespace

Result<std::unique_ptr<ColdChunks>> ColdChunks::create(const CodePlanes& planes,
                                                       std::shared_ptr<ColdFile> file) {
  SLIP_CHECK(planes.slab_bytes % kBlockBytes == 0 && planes.plane_stride % kBlockBytes == 0,
             "slabs are whole blocks");
  if (std::cmp_greater(planes.n_slabs(), std::numeric_limits<Slab>::max())) {
    return fail(Code::kUnsupported, "the cache has more slabs than can be numbered");
  }
  const Result<std::uint64_t> start = file->take(planes.n_bytes());
  if (!start) return std::unexpected(start.error());
  return std::unique_ptr<ColdChunks>(new ColdChunks(planes, std::move(file), *start));
}

ColdChunks::ColdChunks(const CodePlanes& planes, std::shared_ptr<ColdFile> file,
                       std::uint64_t file_start)
    : planes_(planes),
      file_(std::move(file)),
      store_(file_->store()),
      file_start_(file_start),
      entries_(static_cast<std::size_t>(planes.n_slabs())) {
  hot_.reserve(entries_.size());  // so that nothing throws while states change
  // A slab that is read must not bring a page of 2 MiB into memory. Where there are none of these,
  // this is refused.
  for (std::int64_t plane = 0; plane < planes_.n_planes; ++plane) {
    std::byte* first = address(static_cast<Slab>(plane * planes_.slabs_of_plane));
    const std::size_t n_bytes =
        static_cast<std::size_t>(planes_.slabs_of_plane) * planes_.slab_bytes;
    ::madvise(first, n_bytes, MADV_NOHUGEPAGE);
    if (store_.options().is_guarded) ::mprotect(first, n_bytes, PROT_NONE);
  }
  store_.add_codes(planes_.n_bytes());
}

ColdChunks::~ColdChunks() {
  set_in_memory(0);
  store_.remove_codes(planes_.n_bytes());
}

std::byte* ColdChunks::address(Slab slab) const {
  const auto of_plane = static_cast<Slab>(planes_.slabs_of_plane);
  return planes_.first + slab / of_plane * planes_.plane_stride +
         slab % of_plane * planes_.slab_bytes;
}

// Of slabs in order of their numbers.
std::size_t ColdChunks::run_length(const std::vector<Slab>& slabs, std::size_t first) const {
  const auto of_plane = static_cast<Slab>(planes_.slabs_of_plane);
  std::size_t n = 1;
  while (first + n < slabs.size() && slabs[first + n] == slabs[first] + n &&
         slabs[first + n] / of_plane == slabs[first] / of_plane) {
    ++n;
  }
  return n;
}

void ColdChunks::guard(const std::vector<Slab>& slabs, bool is_open) const {
  if (!store_.options().is_guarded) return;
  for (const Slab slab : slabs) {
    const int status =
        ::mprotect(address(slab), planes_.slab_bytes, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
    SLIP_CHECK(status == 0, "mprotect refused on memory of our own");
  }
}

// A slab that was empty or cold is in memory, or about to be.
void ColdChunks::enter(Slab slab, State state) {
  entries_[slab].state = state;
  hot_.push_back(slab);
  set_in_memory(n_in_memory_ + 1);
}

void ColdChunks::set_in_memory(std::size_t n_slabs) {
  store_.count_resident(
      (static_cast<std::int64_t>(n_slabs) - static_cast<std::int64_t>(n_in_memory_)) *
      static_cast<std::int64_t>(planes_.slab_bytes));
  n_in_memory_ = n_slabs;
}

Result<ColdChunks::Held> ColdChunks::start(std::vector<Slab> slabs, Access access) {
  if (Result<void> well = store_.check(); !well) return std::unexpected(std::move(well.error()));
  Held held;
  held.reading_.reserve(slabs.size());
  std::vector<Slab> opened;
  opened.reserve(slabs.size());
  std::vector<FilePiece> pieces;
  {
    Lock lock(mutex_);
    if (!loss_.empty()) return fail(Code::kIo, loss_);
    held.of_ = this;
    held.access_ = access;
    held.slabs_ = std::move(slabs);
    std::size_t n_missing = 0;
    for (const Slab slab : held.slabs_) {
      Entry& entry = entries_[slab];
      ++entry.n_holds;
      entry.is_used = true;
      if (entry.state == State::kEmpty || entry.state == State::kCold) ++n_missing;
    }
    if (Result<void> made = make_room(lock, n_missing); !made) {
      return std::unexpected(std::move(made.error()));
    }
    for (const Slab slab : held.slabs_) {
      Entry& entry = entries_[slab];
      if (entry.state == State::kEmpty || entry.state == State::kCold) opened.push_back(slab);
      if (entry.state == State::kEmpty ||
          (entry.state == State::kCold && access == Access::kReplace)) {
        enter(slab, State::kHot);
      } else if (entry.state == State::kCold) {
        enter(slab, State::kReading);
        held.reading_.push_back(slab);
      }
      if (access == Access::kReplace) entry.is_changed = true;
    }
    // What was empty was neither found nor has it to be read.
    store_.count({.n_hits = held.slabs_.size() - opened.size(), .n_misses = held.reading_.size()});
    guard(opened, true);
  }
  if (held.reading_.empty()) return held;
  // Neighbours are read at once. What throws here leaves reads to end_reads().
  std::ranges::sort(held.reading_);
  for (std::size_t i = 0; i < held.reading_.size();) {
    const std::size_t n = run_length(held.reading_, i);
    const Slab first = held.reading_[i];
    pieces.push_back({.file = &file_->file(),
                      .offset = place(first),
                      .n_bytes = n * planes_.slab_bytes,
                      .into = address(first)});
    i += n;
  }
  held.reader_ = store_.borrow_reader();
  held.ticket_ = held.reader_->start(pieces);
  return held;
}

Result<ColdChunks::Held> ColdChunks::hold(std::vector<Slab> slabs, Access access) {
  Result<Held> held = start(std::move(slabs), access);
  if (!held) return held;
  if (Result<void> done = held->finish(); !done) return std::unexpected(std::move(done.error()));
  return held;
}

void ColdChunks::Held::swap(Held& other) noexcept {
  std::swap(of_, other.of_);
  std::swap(access_, other.access_);
  slabs_.swap(other.slabs_);
  reading_.swap(other.reading_);
  reader_.swap(other.reader_);
  std::swap(ticket_, other.ticket_);
  std::swap(read_, other.read_);
}

Result<void> ColdChunks::Held::end_reads() {
  if (reading_.empty()) return read_;
  Result<void> read = fail(Code::kIo, "not started");  // short, because memory may have run out
  if (reader_ != nullptr) {
    if (ticket_ != 0) {
      read = reader_->wait(ticket_);
    } else {
      reader_->wait_for_all();
    }
    of_->store_.give_back(std::move(reader_));
  }
  if (read) {
    of_->store_.count({.n_bytes_read = reading_.size() * of_->planes_.slab_bytes});
  } else {
    of_->store_.count({.n_failed_reads = 1});
  }
  {
    const Lock lock(of_->mutex_);
    for (const Slab slab : reading_) of_->entries_[slab].state = State::kHot;
    if (!read) {
      // What was read of them is of no use. Others who hold them see in finish() that they are cold.
      of_->drop(reading_);
      std::erase_if(of_->hot_, [&](Slab slab) { return std::ranges::contains(reading_, slab); });
    }
  }
  of_->changed_.notify_all();
  reading_.clear();
  read_ = read;
  return read;
}

bool ColdChunks::Held::has_moving() const {
  return std::ranges::any_of(slabs_, [this](Slab slab) {
    const State state = of_->entries_[slab].state;
    return state == State::kReading || state == State::kWriting;
  });
}

bool ColdChunks::Held::is_moving() const {
  if (of_ == nullptr) return false;
  const Lock lock(of_->mutex_);
  return has_moving();
}

Result<void> ColdChunks::Held::finish() {
  if (of_ == nullptr) return {};
  if (Result<void> read = end_reads(); !read) {
    release();
    return read;
  }
  Lock lock(of_->mutex_);
  of_->changed_.wait(lock, [&] { return !has_moving(); });
  const auto is_hot = [&](Slab slab) { return of_->entries_[slab].state == State::kHot; };
  if (!std::ranges::all_of(slabs_, is_hot)) {
    lock.unlock();
    release();
    return fail(Code::kIo, "cold chunks of the KV cache could not be read for another thread");
  }
  if (access_ == Access::kWrite) {
    for (const Slab slab : slabs_) of_->entries_[slab].is_changed = true;
  }
  return {};
}

Result<void> ColdChunks::Held::finish(std::span<Held> held, std::span<Held> ahead) {
  for (Held& one : held) {
    if (Result<void> read = one.end_reads(); !read) return read;
  }
  if (std::ranges::any_of(held, &Held::is_moving)) {
    for (Held& one : ahead) {
      [[maybe_unused]] const Result<void> read = one.end_reads();  // its finish() says it, too
    }
  }
  for (Held& one : held) {
    if (Result<void> finished = one.finish(); !finished) return finished;
  }
  return {};
}

void ColdChunks::Held::release() noexcept {
  if (of_ == nullptr) return;
  [[maybe_unused]] const Result<void> read = end_reads();  // nobody uses what was read
  {
    const Lock lock(of_->mutex_);
    for (const Slab slab : slabs_) --of_->entries_[slab].n_holds;
  }
  slabs_.clear();
  of_ = nullptr;
}

// Drops slabs so that so many more find room. May let go of the lock for a while.
Result<void> ColdChunks::make_room(Lock& lock, std::size_t n_slabs) {
  const std::size_t n_share = store_.share_of(planes_.n_bytes()) / planes_.slab_bytes;
  if (n_in_memory_ + n_slabs <= n_share) return {};
  const std::size_t n_over = n_in_memory_ + n_slabs - n_share;
  const std::size_t n_more = std::min(kBatchMax, n_share / 8);
  std::vector<Slab> changed;
  changed.reserve(n_over + n_more);  // now, because victims must not be forgotten
  std::vector<Slab> victims = choose_victims(n_over, n_more);
  std::ranges::sort(victims);
  for (const Slab slab : victims) {
    if (entries_[slab].is_changed) changed.push_back(slab);
  }
  for (const Slab slab : changed) entries_[slab].state = State::kWriting;
  std::erase_if(victims, [&](Slab slab) { return entries_[slab].is_changed; });
  drop(victims);
  if (changed.empty()) return {};
  lock.unlock();
  Result<void> written;
  try {
    written = write(changed);
  } catch (const std::bad_alloc&) {  // nobody else would set the states
    written = fail(Code::kOutOfMemory, "no memory");
  }
  if (!written) store_.count({.n_failed_writes = 1});
  lock.lock();
  victims.clear();
  for (const Slab slab : changed) {
    Entry& entry = entries_[slab];
    entry.state = State::kHot;
    if (written) {
      entry.is_changed = false;
      entry.is_in_file = true;
    }
    if (written && entry.n_holds == 0) {
      victims.push_back(slab);  // fits: they all came from there
    } else {
      hot_.push_back(slab);
    }
  }
  drop(victims);
  changed_.notify_all();
  return written;
}

// Takes slabs that nobody holds out of the list of hot ones, in two rounds at most: the first may
// find that all were used. Of n_more, which are not needed yet, only those not used of late.
std::vector<Slab> ColdChunks::choose_victims(std::size_t n_slabs, std::size_t n_more) {
  std::vector<Slab> victims;
  victims.reserve(n_slabs + n_more);
  // Used ones are met among them: the newest of the list takes the place of a victim.
  std::size_t n_more_looks = 2 * n_more;
  for (std::size_t n_left = 2 * hot_.size(); n_left > 0 && !hot_.empty(); --n_left) {
    if (victims.size() == n_slabs + n_more) break;
    const bool is_enough = victims.size() >= n_slabs;
    if (is_enough && n_more_looks-- == 0) break;
    if (hand_ >= hot_.size()) hand_ = 0;
    Entry& entry = entries_[hot_[hand_]];
    if (entry.state != State::kHot || entry.n_holds > 0 || entry.is_used) {
      if (!is_enough && entry.n_holds == 0) entry.is_used = false;
      ++hand_;
      continue;
    }
    victims.push_back(hot_[hand_]);
    hot_[hand_] = hot_.back();
    hot_.pop_back();
  }
  return victims;
}

Result<void> ColdChunks::write(const std::vector<Slab>& slabs) const {
  for (std::size_t i = 0; i < slabs.size();) {
    const std::size_t n = run_length(slabs, i);
    const std::span<const std::byte> bytes(address(slabs[i]), n * planes_.slab_bytes);
    if (Result<void> written = file_->write(bytes, place(slabs[i])); !written) return written;
    store_.count({.n_bytes_written = bytes.size()});
    i += n;
  }
  return {};
}

// Gives the memory of slabs in order of their numbers back to the system. They are no longer in the
// list of hot ones, or the caller takes them out of it.
void ColdChunks::drop(const std::vector<Slab>& slabs) {
  for (std::size_t i = 0; i < slabs.size();) {
    const std::size_t n = run_length(slabs, i);
    const int status = ::madvise(address(slabs[i]), n * planes_.slab_bytes, MADV_DONTNEED);
    SLIP_CHECK(status == 0, "MADV_DONTNEED refused on memory of our own");
    i += n;
  }
  guard(slabs, false);
  for (const Slab slab : slabs) {
    entries_[slab].state = entries_[slab].is_in_file ? State::kCold : State::kEmpty;
  }
  set_in_memory(n_in_memory_ - slabs.size());
}

bool ColdChunks::is_empty(Slab slab) const {
  const Lock lock(mutex_);
  return entries_[slab].state == State::kEmpty;
}

// Makes a slab empty that nobody holds.
void ColdChunks::forget(Slab slab) {
  const Lock lock(mutex_);
  entries_[slab].is_in_file = false;
  if (entries_[slab].state != State::kHot) {
    entries_[slab].state = State::kEmpty;
    return;
  }
  std::erase(hot_, slab);
  entries_[slab].is_changed = false;
  drop({slab});
}

Result<void> ColdChunks::copy(Slab from, Slab to, Slab n) {
  constexpr Slab kAtOnce = 64;
  for (Slab first = 0; first < n; first += kAtOnce) {
    std::vector<Slab> sources;
    std::vector<Slab> targets;
    for (Slab i = first; i < std::min(first + kAtOnce, n); ++i) {
      if (is_empty(from + i)) {
        forget(to + i);
      } else {
        sources.push_back(from + i);
        targets.push_back(to + i);
      }
    }
    const Result<Held> read = hold(sources, Access::kRead);
    if (!read) return std::unexpected(read.error());
    const Result<Held> written = hold(targets, Access::kReplace);
    if (!written) return std::unexpected(written.error());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::memcpy(address(targets[i]), address(sources[i]), planes_.slab_bytes);
    }
  }
  return {};
}

void ColdChunks::forget_all() {
  const Lock lock(mutex_);
  SLIP_CHECK(std::ranges::all_of(entries_, [](const Entry& e) { return e.n_holds == 0; }),
             "cleared while in use");
  guard(hot_, false);
  std::ranges::fill(entries_, Entry{});
  hot_.clear();
  set_in_memory(0);
  loss_.clear();
}

void ColdChunks::lose(const std::string& why) {
  const Lock lock(mutex_);
  loss_ = format_text("rows of the KV cache are lost until it is cleared: {}", why);
}

}  // namespace slipstream::turbo
