// run_matrix(): measures what the journal does not have yet, one process per turn.
//
// Threads: call from one thread.
// Errors:  of the journal. A turn that fails is an entry of the journal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/child_task.h"
#include "bench/speed/journal.h"

namespace slipstream::bench {

struct MatrixProgress {
  double done = 0;  // of all turns, from 0 to 1
  const Turn* turn = nullptr;
};

// task: everything but the cell. command: a program that answers with run_cell() (child_task.h).
// Kept depths are removed as soon as they are not needed any more.
[[nodiscard]] Result<void> run_matrix(
    const Matrix& matrix, const CellTask& task, const std::vector<std::string>& command,
    Journal& journal, const std::function<void(const MatrixProgress&)>& on_progress);

}  // namespace slipstream::bench
