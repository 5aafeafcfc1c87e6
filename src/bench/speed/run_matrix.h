// run_matrix(): measures what is missing in the journal, one process per turn.
//
// Threads: call from one thread.
// Errors:  those of the journal. A turn that fails is an entry of the journal.
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

// task: everything except the cell. command: a program that answers with run_cell() (child_task.h).
// Kept depths are removed as soon as they are no longer needed.
[[nodiscard]] Result<void> run_matrix(
    const Matrix& matrix, const CellTask& task, const std::vector<std::string>& command,
    Journal& journal, const std::function<void(const MatrixProgress&)>& on_progress);

}  // namespace slipstream::bench
