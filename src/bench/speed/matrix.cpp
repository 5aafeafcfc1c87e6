#include "bench/speed/matrix.h"

#include <cstddef>
#include <string_view>

namespace slipstream::bench {
namespace {

// Seconds per computed token and per earlier token that it attends to. Compared with f16, stock's
// quantised caches are read faster by single tokens and slower by prompts.
struct AttentionCost {
  double prompt;
  double decode;
};

AttentionCost attention_of(std::string_view kv) {
  if (kv.starts_with("turbo")) return {.prompt = 3e-6, .decode = 7e-6};
  if (kv.starts_with("q")) return {.prompt = 4e-5, .decode = 6e-5};
  if (!has_flash_attention(kv)) return {.prompt = 2e-5, .decode = 3e-5};
  return {.prompt = 1e-5, .decode = 8e-5};
}

}  // namespace

std::vector<Turn> plan_turns(const Matrix& matrix, const std::set<Turn>& done) {
  std::vector<Turn> turns;
  for (const int depth : matrix.depths) {
    for (int repeat = 0; repeat < matrix.n_repeats; ++repeat) {
      for (const int n_sequences : matrix.n_sequences) {
        for (std::size_t i = 0; i < matrix.kv.size(); ++i) {
          const std::string& kv =
              matrix.kv[(i + static_cast<std::size_t>(repeat)) % matrix.kv.size()];
          Turn turn{.cell = {.kv = kv, .depth = depth, .n_sequences = n_sequences},
                    .repeat = repeat};
          if (!done.contains(turn)) turns.push_back(std::move(turn));
        }
      }
    }
  }
  return turns;
}

double guess_seconds(const Turn& turn, const Matrix& matrix, const CellTask& task) {
  constexpr double kLoad = 3;
  constexpr double kPromptToken = 0.029;
  constexpr double kStep = 0.03;
  constexpr double kStepToken = 0.036;
  const AttentionCost attention = attention_of(turn.cell.kv);
  const double depth = turn.cell.depth;
  const auto read = [&](double n_tokens, double behind) {
    return n_tokens * (kPromptToken + attention.prompt * behind);
  };
  const bool fills = turn.repeat == 0 && turn.cell.n_sequences == matrix.n_sequences.front();
  const double fill = fills ? read(depth, depth / 2) : 0;
  const double step = kStep + turn.cell.n_sequences * (kStepToken + attention.decode * depth);
  return kLoad + fill + read(task.n_prompt, depth) + task.n_tokens * step;
}

}  // namespace slipstream::bench
