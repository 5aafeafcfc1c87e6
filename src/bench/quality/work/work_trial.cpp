#include "bench/quality/work/work_trial.h"

#include <memory>

#include "base/format.h"
#include "bench/quality/work/arithmetic.h"
#include "bench/quality/work/code.h"
#include "bench/quality/work/extraction.h"
#include "bench/quality/work/facts.h"

namespace slipstream::quality {

Result<std::vector<WorkTask>> make_work(std::string_view kind, int n_tasks, const Hay& hay) {
  if (kind == "arithmetic") return make_arithmetic(n_tasks, hay);
  if (kind == "facts") return make_facts(n_tasks, hay);
  if (kind == "json") return make_extraction(n_tasks, hay);
  if (kind == "code") {
    Result<Sandbox> sandbox = Sandbox::open();
    if (!sandbox) return std::unexpected(sandbox.error());
    return make_code(n_tasks, hay, std::make_shared<const Sandbox>(std::move(*sandbox)));
  }
  return fail(Code::kInvalidArgument, format_text("there is no work of the kind {}", kind));
}

Result<std::vector<WorkAnswer>> try_work(Engine& engine, std::string_view kind,
                                         const std::vector<WorkTask>& tasks,
                                         const OnProgress& on_progress) {
  const Result<Asker> asker = Asker::create(engine);
  const auto ask = [&](const WorkTask& task) -> Result<std::string> {
    if (!asker) return complete(engine, task.beginning, task.n_tokens_max, task.stops);
    const Result<Reply> reply =
        asker->ask({.text = task.message, .n_tokens_max = task.n_tokens_max});
    if (!reply) return std::unexpected(reply.error());
    return reply->answer.content;
  };
  std::vector<WorkAnswer> answers;
  for (const WorkTask& task : tasks) {
    Result<std::string> answer = ask(task);
    if (!answer) return std::unexpected(answer.error());
    const Mark mark = task.judge(*answer);
    answers.push_back({.kind = std::string(kind),
                       .expected = task.right,
                       .answer = std::move(*answer),
                       .valid = mark.valid,
                       .right = mark.right});
    on_progress(static_cast<double>(answers.size()) / static_cast<double>(tasks.size()));
  }
  return answers;
}

}  // namespace slipstream::quality
