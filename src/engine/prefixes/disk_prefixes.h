// DiskPrefixes: moves prefixes between memory and disk, at most a slice between two steps, so that
// no sequence waits long for its next token.
//
// Out: a prefix is remembered when its request ends. It is saved once it has been idle for a
// moment, or has waited long enough, or when memory gets scarce. In: another thread reads the file;
// then slice after slice becomes a prefix in memory again, which requests can take over.
//
// Threads: owned by the engine's thread; only other threads access the disk.
// Errors:  none; what cannot be saved or loaded is computed again, and the log says why.
#pragma once

#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/prefixes/disk/disk_tier.h"
#include "engine/prefixes/prefix_memory.h"
#include "engine/state/state_slices.h"

namespace slipstream {

class DiskPrefixes {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    // A prefix is saved after idle_time without use, or busy_time after it was first remembered. A
    // crash loses prefixes that are not saved yet. Each save writes the whole prefix, so a prefix
    // in constant use is not saved after every request.
    Clock::duration idle_time = std::chrono::seconds(1);
    Clock::duration busy_time = std::chrono::seconds(10);
    int n_tokens_min = 256;  // shorter prefixes are computed as fast as they are read
  };

  DiskPrefixes(std::unique_ptr<DiskTier> tier, PrefixMemory& memory, const Options& options);

  // Whether the disk has so much more of a prompt than memory that loading is worth it.
  [[nodiscard]] bool has_more(Salt salt, std::span<const Token> tokens) const;
  // One load at a time. REQUIRES: !is_loading().
  void begin_load(Salt salt, std::vector<Token> tokens);
  [[nodiscard]] bool is_loading() const { return load_.has_value(); }
  // Whether the file is still being read. If not, load_slice() has a slice to place.
  [[nodiscard]] bool is_reading() const;
  void load_slice();
  // Nobody waits for the load any more; its buffer is freed once the file has been read.
  void give_up_load();

  // Remembers a prefix in memory that may be worth keeping. One that begins others stays on disk
  // beside longer ones, where a state cannot be divided.
  void remember(Salt salt, std::span<const Token> tokens, bool begins_others = false);
  // When the next slice should be saved; a time in the past means now.
  [[nodiscard]] std::optional<Clock::time_point> next_save() const;
  void save_slice();
  // Memory gets scarce: makes everything remembered due now.
  void hurry();
  // Saves everything remembered until the time is up, then waits for the disk.
  void finish(Clock::duration time_max);

  [[nodiscard]] DiskTierStats stats() const { return tier_->stats(); }

 private:
  struct Load {
    Salt salt;
    std::vector<Token> tokens;  // the request's tokens that the file has too
    int n_stored;
    std::future<Result<std::vector<std::byte>>> file;
    std::vector<std::byte> state = {};
    std::vector<StateSlice> slices = {};
    std::size_t next = 0;
    bool is_wanted = true;
  };
  struct Remembered {
    Salt salt;
    bool begins_others;
    std::vector<Token> tokens;
    Clock::time_point since;  // when the first unsaved part was remembered
    Clock::time_point due;
  };
  struct Save {
    Salt salt;
    Salt salt_on_disk;
    std::vector<Token> tokens;
    std::vector<std::byte> state = {};
    int n_saved = 0;  // tokens
  };

  [[nodiscard]] DiskMatch find(Salt salt, std::span<const Token> tokens) const;
  [[nodiscard]] static bool take_file(Load& load);
  [[nodiscard]] bool place_next_slice(Load& load);
  [[nodiscard]] std::optional<Save> begin_save();
  [[nodiscard]] bool add_slice(Save& save) const;
  void write(Save save);

  const std::unique_ptr<DiskTier> tier_;
  PrefixMemory& memory_;
  const Options options_;
  std::optional<Load> load_;
  std::deque<Remembered> remembered_;  // in the order of `due`
  std::optional<Save> save_;
};

}  // namespace slipstream
