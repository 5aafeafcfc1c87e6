// The trial of one kind of work: its tasks are asked one by one, greedily, through the model's chat
// template, or as texts to continue if it has none.
//
// Threads: for one thread. Errors: those of Asker::ask() and complete(); make_work():
//          kInvalidArgument for a kind that does not exist, and those of Sandbox::open() for code.
#pragma once

#include <string>
#include <vector>

#include "bench/quality/asker.h"
#include "bench/quality/divergence_pass.h"
#include "bench/quality/work/work_task.h"

namespace slipstream::quality {

struct WorkAnswer {
  std::string kind = {};
  std::string expected = {};
  std::string answer = {};
  bool valid = false;
  bool right = false;
};

// Makes n_tasks of a kind, or fewer if there are no more.
[[nodiscard]] Result<std::vector<WorkTask>> make_work(std::string_view kind, int n_tasks,
                                                      const Hay& hay);

[[nodiscard]] Result<std::vector<WorkAnswer>> try_work(Engine& engine, std::string_view kind,
                                                       const std::vector<WorkTask>& tasks,
                                                       const OnProgress& on_progress);

}  // namespace slipstream::quality
