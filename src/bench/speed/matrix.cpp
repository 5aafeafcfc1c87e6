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

std::vector<std::vector<Cell>> cells_at(const Matrix& matrix, int depth) {
  std::vector<std::vector<Cell>> rows;
  for (const int n_sequences : matrix.n_sequences) {
    for (const bool shares_depth : {false, true}) {
      if (shares_depth && (!matrix.has_shared || n_sequences == 1 || depth == 0)) continue;
      std::vector<Cell>& row = rows.emplace_back();
      for (const std::string& kv : matrix.kv) {
        row.push_back(
            {.kv = kv, .depth = depth, .n_sequences = n_sequences, .shares_depth = shares_depth});
      }
    }
  }
  return rows;
}

std::vector<Turn> plan_turns(const Matrix& matrix, const std::set<Turn>& done) {
  std::vector<Turn> turns;
  for (const int depth : matrix.depths) {
    for (int repeat = 0; repeat < matrix.n_repeats; ++repeat) {
      for (const std::vector<Cell>& row : cells_at(matrix, depth)) {
        for (std::size_t i = 0; i < row.size(); ++i) {
          Turn turn{.cell = row[(i + static_cast<std::size_t>(repeat)) % row.size()],
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
  const double n_filled = n_computed(turn.cell, task.n_computed_max);
  const double fill = fills ? read(n_filled, n_filled / 2) : 0;
  const double step = kStep + turn.cell.n_sequences * (kStepToken + attention.decode * depth);
  return kLoad + fill + read(task.n_prompt, depth) + task.n_tokens * step;
}

}  // namespace slipstream::bench
