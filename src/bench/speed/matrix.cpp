#include "bench/speed/matrix.h"

#include <cstddef>

namespace slipstream::bench {

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

double guess_cost(const Turn& turn, const Matrix& matrix) {
  // On two cores with Qwen3-0.6B: loading 2 s, a thousand tokens of depth 6 s and growing, a step
  // of one sequence 0.06 s and as much more for each 500 tokens of depth that all sequences have.
  const double depth = turn.cell.depth;
  const bool is_stock = !turn.cell.kv.starts_with("turbo");
  const double slowness = is_stock ? 4 : 1;
  const bool fills = turn.repeat == 0 && turn.cell.n_sequences == matrix.n_sequences.front();
  const double fill = fills ? depth / 170 * (1 + slowness * depth / 8000) : 0;
  return 5 + fill + 64 * (0.06 + slowness * 3e-5 * depth * turn.cell.n_sequences);
}

}  // namespace slipstream::bench
