// DiskPrefixes: moves prefixes between memory and disk, a slice between two steps at a time, so
// that nobody's next token waits long for it.
//
// Out: what a request has computed is remembered when it ends, and saved when nobody came back to
// it for a moment, or when it has waited for that long enough, or when room in memory gets scarce.
// In: another thread reads the file; then slice after slice becomes a prefix in memory, which
// requests take over as if it had never left.
//
// Threads: owned by the engine's thread; the disk is only ever touched by others. Errors: none:
// what cannot be saved or loaded is computed again, and the log says why.
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
    // Before a prefix is saved: what is not on disk when the process crashes is computed again.
    // Each save writes the whole prefix, so that one that is in use all the time is not saved each
    // time.
    Clock::duration idle_time = std::chrono::seconds(1);
    Clock::duration busy_time = std::chrono::seconds(10);
    int n_tokens_min = 256;  // fewer are computed again as fast as they are read
  };
  static constexpr int kSliceTokens = 256;

  DiskPrefixes(std::unique_ptr<DiskTier> tier, PrefixMemory& memory, const Options& options);

  // Whether the disk has enough more of a prompt than memory for loading to be worth it.
  [[nodiscard]] bool has_more(Salt salt, std::span<const Token> tokens) const;
  // One at a time: not while is_loading().
  void begin_load(Salt salt, std::vector<Token> tokens);
  [[nodiscard]] bool is_loading() const { return load_.has_value(); }
  // Whether the file is still being read; else there is a slice to place.
  [[nodiscard]] bool is_reading() const;
  void load_slice();
  // Nobody waits for it any more: what was read is freed as soon as the file has been.
  void give_up_load();

  // The end of a prefix in memory that may be worth keeping.
  void remember(Salt salt, std::span<const Token> tokens);
  // When the next slice is to be saved; in the past if now.
  [[nodiscard]] std::optional<Clock::time_point> next_save() const;
  void save_slice();
  // Memory gets scarce: everything remembered is to be saved now.
  void hurry();
  // Saves everything remembered, until the time is up, and waits for the disk.
  void finish(Clock::duration time_max);

  [[nodiscard]] DiskTierStats stats() const { return tier_->stats(); }

 private:
  struct Load {
    Salt salt;
    std::vector<Token> tokens;  // of the request, as many as the file has too
    int n_stored;
    std::future<Result<std::vector<std::byte>>> file;
    std::vector<std::byte> state = {};
    std::vector<StateSlice> slices = {};
    std::size_t next = 0;
    bool is_wanted = true;
  };
  struct Remembered {
    Salt salt;
    std::vector<Token> tokens;
    Clock::time_point since;  // when none of it was on disk
    Clock::time_point due;
  };
  struct Save {
    Salt salt;
    std::vector<Token> tokens;
    std::vector<std::byte> state = {};
    int n_saved = 0;  // tokens
  };

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
