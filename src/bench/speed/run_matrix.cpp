#include "bench/speed/run_matrix.h"

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "bench/speed/cell_json.h"

namespace slipstream::bench {
namespace {

Result<CellFigures> measure(const CellTask& task, const std::vector<std::string>& command,
                            const std::function<void(double)>& on_progress) {
  const Result<nlohmann::json> answer = ask_child(command, task, on_progress);
  if (!answer) return std::unexpected(answer.error());
  try {
    return answer->get<CellFigures>();
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::kCorrupt, error.what());
  }
}

// Each computed depth has its own folder of states. Those of an interrupted run are reused: at a large
// depth they are most of the work.
std::filesystem::path states_of(const CellTask& task, const Cell& cell) {
  return task.states / format_text("{}", n_computed(cell, task.n_computed_max));
}

void make_folder(const std::filesystem::path& path) {
  std::error_code ignored;  // a cell that cannot write there reports why
  std::filesystem::create_directories(path, ignored);
}

void remove_folder(const std::filesystem::path& path) {
  std::error_code ignored;  // leftovers cost space, not correctness
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

Result<void> run_matrix(const Matrix& matrix, const CellTask& task,
                        const std::vector<std::string>& command, Journal& journal,
                        const std::function<void(const MatrixProgress&)>& on_progress) {
  const std::vector<Turn> turns = plan_turns(matrix, journal.done());
  double cost_all = 0;
  for (const Turn& turn : turns) cost_all += guess_seconds(turn, matrix, task);
  double cost_done = 0;
  for (auto turn_at = turns.begin(); turn_at != turns.end(); ++turn_at) {
    const Turn& turn = *turn_at;
    const std::filesystem::path states = states_of(task, turn.cell);
    make_folder(states);
    const double cost = guess_seconds(turn, matrix, task);
    const auto show = [&](double done) {
      on_progress({.done = (cost_done + cost * done) / cost_all, .turn = &turn});
    };
    show(0);
    CellTask cell_task = task;
    cell_task.cell = turn.cell;
    cell_task.states = states;
    const auto start = std::chrono::steady_clock::now();
    const Result<CellFigures> figures = measure(cell_task, command, show);
    if (!figures && figures.error().code == Code::kCancelled)
      return std::unexpected(figures.error());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    TurnRecord record{.turn = turn,
                      .figures = {},
                      .error = figures ? "" : figures.error().message,
                      .seconds = taken.count()};
    if (figures) record.figures = *figures;
    if (const Result<void> kept = journal.add(std::move(record)); !kept) return kept;
    cost_done += cost;
    const bool is_needed = std::any_of(turn_at + 1, turns.end(), [&](const Turn& later) {
      return states_of(task, later.cell) == states;
    });
    if (!is_needed) remove_folder(states);
  }
  remove_folder(task.states);
  return {};
}

}  // namespace slipstream::bench
