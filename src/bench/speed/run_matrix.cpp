#include "bench/speed/run_matrix.h"

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

void forget_states(const std::filesystem::path& states) {
  std::error_code ignored;  // what is left is removed with the next depth
  std::filesystem::remove_all(states, ignored);
  std::filesystem::create_directories(states, ignored);
}

}  // namespace

Result<void> run_matrix(const Matrix& matrix, const CellTask& task,
                        const std::vector<std::string>& command, Journal& journal,
                        const std::function<void(const MatrixProgress&)>& on_progress) {
  const std::vector<Turn> turns = plan_turns(matrix, journal.done());
  double cost_all = 0;
  for (const Turn& turn : turns) cost_all += guess_cost(turn, matrix);
  double cost_done = 0;
  const Turn* before = nullptr;
  for (const Turn& turn : turns) {
    if (before == nullptr || before->cell.depth != turn.cell.depth) forget_states(task.states);
    before = &turn;
    const double cost = guess_cost(turn, matrix);
    const auto show = [&](double done) {
      on_progress({.done = (cost_done + cost * done) / cost_all, .turn = &turn});
    };
    show(0);
    CellTask cell_task = task;
    cell_task.cell = turn.cell;
    const Result<CellFigures> figures = measure(cell_task, command, show);
    if (!figures && figures.error().code == Code::kCancelled)
      return std::unexpected(figures.error());
    TurnRecord record{.turn = turn, .figures = {}, .error = figures ? "" : figures.error().message};
    if (figures) record.figures = *figures;
    if (const Result<void> kept = journal.add(std::move(record)); !kept) return kept;
    cost_done += cost;
  }
  std::error_code ignored;
  std::filesystem::remove_all(task.states, ignored);
  return {};
}

}  // namespace slipstream::bench
