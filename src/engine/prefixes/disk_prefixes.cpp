#include "engine/prefixes/disk_prefixes.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace slipstream {
namespace {

// Beyond this, the prefix due last is dropped: it only has to be computed again.
constexpr std::size_t kRememberedMax = 256;

// The clock's epoch: it is in the past, and differences to it do not overflow.
constexpr DiskPrefixes::Clock::time_point kNow{};

// Of two prefixes with one salt the disk keeps the longer one, if it begins with the other. Those
// that begin other conversations have a salt of their own there.
constexpr Salt kBeginsOthers = 0x9E3779B97F4A7C15;

bool begins_with(std::span<const Token> tokens, std::span<const Token> prefix) {
  return tokens.size() >= prefix.size() && std::ranges::equal(tokens.first(prefix.size()), prefix);
}

}  // namespace

DiskPrefixes::DiskPrefixes(std::unique_ptr<DiskTier> tier, PrefixMemory& memory,
                           const Options& options)
    : tier_(std::move(tier)), memory_(memory), options_(options) {}

// A state that cannot be divided is of use only as a whole.
DiskMatch DiskPrefixes::find(Salt salt, std::span<const Token> tokens) const {
  const DiskMatch longest = tier_->find(salt, tokens);
  if (memory_.is_divisible()) return longest;
  const DiskMatch beginning = tier_->find(salt ^ kBeginsOthers, tokens);
  const auto n_usable = [](const DiskMatch& match) {
    return match.n_common == match.n_stored ? match.n_common : 0;
  };
  const DiskMatch& better = n_usable(beginning) > n_usable(longest) ? beginning : longest;
  return n_usable(better) > 0 ? better : DiskMatch{};
}

bool DiskPrefixes::has_more(Salt salt, std::span<const Token> tokens) const {
  const DiskMatch match = find(salt, tokens);
  return match.n_common >= options_.n_tokens_min &&
         match.n_common - memory_.n_held(salt, tokens) >= options_.n_tokens_min;
}

void DiskPrefixes::begin_load(Salt salt, std::vector<Token> tokens) {
  SLIP_CHECK(!load_, "loads two prefixes at a time");
  const DiskMatch match = find(salt, tokens);
  if (match.id == 0) return;
  tokens.resize(static_cast<std::size_t>(match.n_common));
  try {
    load_ = Load{.salt = salt,
                 .tokens = std::move(tokens),
                 .n_stored = match.n_stored,
                 .file = std::async(std::launch::async, [tier = tier_.get(), id = match.id] {
                   return tier->read(id);
                 })};
  } catch (const std::system_error& error) {  // no thread available: the prefix is computed again
    log::warn("engine.disk_prefix", {{"error", error.what()}});
  }
}

void DiskPrefixes::give_up_load() {
  if (load_) load_->is_wanted = false;
}

bool DiskPrefixes::is_reading() const {
  return load_ && load_->file.valid() &&
         load_->file.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void DiskPrefixes::load_slice() {
  if (!load_ || is_reading()) return;
  if (!load_->is_wanted) return load_.reset();
  const bool has_file = !load_->file.valid() || take_file(*load_);
  if (!has_file || !place_next_slice(*load_)) load_.reset();
}

bool DiskPrefixes::take_file(Load& load) {
  try {
    Result<std::vector<std::byte>> state = load.file.get();
    if (!state) return false;  // the tier has logged it
    load.state = std::move(*state);
  } catch (const std::exception& error) {  // such as bad_alloc on the reading thread
    log::warn("engine.disk_prefix", {{"error", error.what()}});
    return false;
  }
  Result<std::vector<StateSlice>> slices = parse_slices(load.state, load.n_stored);
  if (!slices) {
    log::warn("engine.disk_prefix", {{"error", slices.error().message}});
    return false;
  }
  load.slices = std::move(*slices);
  return true;
}

// Returns false if nothing is left to place.
bool DiskPrefixes::place_next_slice(Load& load) {
  const int n_held = memory_.n_held(load.salt, load.tokens);
  while (load.next < load.slices.size() && load.slices[load.next].end <= n_held) ++load.next;
  const auto n_wanted = static_cast<int>(load.tokens.size());
  if (load.next == load.slices.size() || n_held >= n_wanted) return false;
  const StateSlice& slice = load.slices[load.next];
  if (slice.first > n_held) return false;  // the tokens before it were evicted meanwhile
  ++load.next;
  const auto n_tokens = static_cast<std::size_t>(std::min(slice.end, n_wanted));
  const Result<void> restored =
      memory_.restore(load.salt, std::span(load.tokens).first(n_tokens), slice);
  if (!restored) log::warn("engine.disk_prefix", {{"error", restored.error().message}});
  return restored.has_value() && slice.end < n_wanted;
}

void DiskPrefixes::remember(Salt salt, std::span<const Token> tokens, bool begins_others) {
  if (static_cast<int>(tokens.size()) < options_.n_tokens_min) return;
  std::vector<Token> longest(tokens.begin(), tokens.end());
  const Clock::time_point now = Clock::now();
  Clock::time_point since = now;
  // Of one conversation only the longest prefix is kept.
  std::erase_if(remembered_, [&](Remembered& earlier) {
    if (earlier.salt != salt || earlier.begins_others != begins_others) return false;
    if (begins_with(earlier.tokens, longest)) longest = earlier.tokens;
    if (!begins_with(longest, earlier.tokens)) return false;
    since = std::min(since, earlier.since);
    return true;
  });
  if (remembered_.size() >= kRememberedMax) remembered_.pop_back();
  const Clock::time_point due = std::min(now + options_.idle_time, since + options_.busy_time);
  remembered_.insert(std::ranges::upper_bound(remembered_, due, {}, &Remembered::due),
                     {.salt = salt,
                      .begins_others = begins_others,
                      .tokens = std::move(longest),
                      .since = since,
                      .due = due});
}

std::optional<DiskPrefixes::Clock::time_point> DiskPrefixes::next_save() const {
  if (save_) return kNow;
  if (remembered_.empty()) return std::nullopt;
  return remembered_.front().due;
}

void DiskPrefixes::hurry() {
  for (Remembered& prefix : remembered_) prefix.due = kNow;
}

void DiskPrefixes::save_slice() {
  if (!save_) save_ = begin_save();
  if (!save_ || add_slice(*save_)) return;
  write(std::move(*save_));
  save_.reset();
}

std::optional<DiskPrefixes::Save> DiskPrefixes::begin_save() {
  if (remembered_.empty()) return std::nullopt;
  Remembered prefix = std::move(remembered_.front());
  remembered_.pop_front();
  const Salt on_disk = prefix.begins_others ? prefix.salt ^ kBeginsOthers : prefix.salt;
  if (!tier_->wants(on_disk, prefix.tokens, 1)) return std::nullopt;  // 1: any size
  return Save{.salt = prefix.salt, .salt_on_disk = on_disk, .tokens = std::move(prefix.tokens)};
}

// Returns false after the last slice, or if the rest has left memory.
bool DiskPrefixes::add_slice(Save& save) const {
  const auto n_tokens = static_cast<int>(save.tokens.size());
  const int n_slice = std::min(memory_.slice_tokens_max(), n_tokens);
  const int end = std::min(save.n_saved + n_slice, n_tokens);
  const auto tokens = std::span<const Token>(save.tokens).first(static_cast<std::size_t>(end));
  if (memory_.n_held(save.salt, tokens) < end) return false;
  const Result<std::vector<std::byte>> state = memory_.save(save.salt, tokens, save.n_saved);
  if (!state) {
    log::warn("engine.disk_prefix", {{"error", state.error().message}});
    return false;
  }
  if (save.n_saved == 0) {
    // Reserve all of it at once: a growing vector would copy gigabytes between two tokens.
    const auto n_slices = static_cast<std::size_t>((n_tokens + n_slice - 1) / n_slice);
    const std::size_t n_bytes = (state->size() + 64) * n_slices;
    if (!tier_->wants(save.salt_on_disk, save.tokens, n_bytes)) return false;
    save.state.reserve(n_bytes);
  }
  append_slice(save.state, end - save.n_saved, *state);
  save.n_saved = end;
  return end < n_tokens;
}

void DiskPrefixes::write(Save save) {
  if (save.n_saved < options_.n_tokens_min) return;
  save.tokens.resize(static_cast<std::size_t>(save.n_saved));
  tier_->write(save.salt_on_disk, std::move(save.tokens), std::move(save.state));
}

void DiskPrefixes::finish(Clock::duration time_max) {
  const Clock::time_point end = Clock::now() + time_max;
  while (next_save() && Clock::now() < end) {
    save_slice();
    if (!save_) tier_->flush();  // the tier accepts only a few at a time
  }
  tier_->flush();
}

}  // namespace slipstream
