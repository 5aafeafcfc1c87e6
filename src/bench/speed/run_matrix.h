// run_matrix(): measures what the journal does not have yet, one process per turn.
//
// Threads: call from one thread. Errors: of the journal. A turn that fails is an entry of the
// journal.
#pragma once

#include <functional>

#include "bench/child.h"
#include "bench/speed/journal.h"

namespace slipstream::bench {

struct MatrixProgress {
  double done = 0;  // of all turns, from 0 to 1
  const Turn* turn = nullptr;
};

// task: everything but the cell. Kept depths are removed as soon as they are not needed any more.
[[nodiscard]] Result<void> run_matrix(
    const Matrix& matrix, const CellTask& task, const ChildProgram& program, Journal& journal,
    const std::function<void(const MatrixProgress&)>& on_progress);

}  // namespace slipstream::bench
