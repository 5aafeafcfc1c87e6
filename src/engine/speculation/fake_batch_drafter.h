// FakeBatchDrafter: a draft model without a model, for tests. It knows how each text goes on, is right
// as often as it is told to be, and takes the time that it is told to take.
//
// Threads: thread-compatible. Errors: as in batch_drafter.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>

#include "engine/speculation/batch_drafter.h"

namespace slipstream {

class FakeBatchDrafter final : public BatchDrafter {
 public:
  static constexpr Token kWrong = 1'000'000;  // in no text

  [[nodiscard]] std::optional<int> n_missing(SeqId seq,
                                             std::span<const Token> tokens) const override {
    if (tokens.size() > n_tokens_max) return std::nullopt;
    const auto has = held.find(seq);
    const std::size_t n = has == held.end() ? 0 : std::min(has->second, tokens.size() - 1);
    return static_cast<int>(tokens.size() - n);
  }
  [[nodiscard]] bool learn(SeqId seq, std::span<const Token> /*tokens*/, int n) override {
    seconds += token_seconds * n;
    n_learned += n;
    held[seq] += static_cast<std::size_t>(n);
    if (fails) held.erase(seq);
    return !fails;
  }
  [[nodiscard]] bool draft(std::span<Wish> wishes) override {
    int n_rounds = 0;
    for (Wish& wish : wishes) {
      n_rounds = std::max(n_rounds, wish.n);
      held[wish.seq] = wish.tokens.size();
      const std::vector<Token>& text = texts[wish.seq];
      bool is_right = true;
      for (int i = 0; i < wish.n && !fails; ++i) {
        const std::size_t at = wish.tokens.size() + static_cast<std::size_t>(i);
        is_right = is_right && at < text.size() && chance(random) < right;
        wish.draft.push_back(is_right ? text[at] : kWrong);
      }
    }
    seconds += round_seconds * n_rounds;
    n_calls += 1;
    if (fails) release_all(wishes);
    return !fails;
  }
  void release(SeqId seq) override { held.erase(seq); }
  void clear() override { held.clear(); }
  [[nodiscard]] double relative_cost() const override { return 0.1; }

  std::map<SeqId, std::vector<Token>> texts = {};
  double right = 1;
  double round_seconds = 0;
  double token_seconds = 0;
  std::size_t n_tokens_max = 1'000'000;
  bool fails = false;

  std::map<SeqId, std::size_t> held = {};  // tokens that are computed
  double seconds = 0;                      // the time
  int n_calls = 0;
  int n_learned = 0;

 private:
  void release_all(std::span<const Wish> wishes) {
    for (const Wish& wish : wishes) held.erase(wish.seq);
  }

  std::mt19937 random{11};
  std::uniform_real_distribution<double> chance{0, 1};
};

}  // namespace slipstream
