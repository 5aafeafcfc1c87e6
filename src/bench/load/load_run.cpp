#include "bench/load/load_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/format.h"
#include "bench/load/stream_client.h"

namespace slipstream::bench {

std::string prompt_of(const LoadTask& task, int i) {
  // A prime, so that positions do not repeat before the whole text was used.
  constexpr std::size_t kStride = 7919;
  const std::size_t begin = (static_cast<std::size_t>(i) + 1) * kStride % task.text.size();
  std::string prompt = format_text("Page {} of {}. ", i + 1, task.n_clients);
  while (prompt.size() < task.n_prompt_bytes) {
    const std::size_t wanted = task.n_prompt_bytes - prompt.size();
    prompt += task.text.substr(prompt.size() < 32 ? begin : 0, wanted);
  }
  // Do not end in the middle of a character.
  while (!prompt.empty() && (static_cast<unsigned char>(prompt.back()) & 0x80U) != 0) {
    prompt.pop_back();
  }
  return prompt;
}

std::vector<RequestTrace> run_load(const LoadTask& task,
                                   const std::function<void(double)>& on_progress) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::atomic<int> next = 0;
  std::mutex mutex;
  std::vector<RequestTrace> traces;
  const auto ask_until_done = [&] {
    StreamClient client(task.url, task.api_key, task.timeout_seconds);
    for (int i = next++; i < task.n_requests; i = next++) {
      const StreamRequest request{
          .model = task.model, .prompt = prompt_of(task, i), .n_tokens = task.n_tokens};
      const double asked = std::chrono::duration<double>(Clock::now() - start).count();
      RequestTrace trace = client.complete(request);
      trace.asked_s = asked;
      trace.n_clients = task.n_clients;
      const std::scoped_lock lock(mutex);
      traces.push_back(std::move(trace));
      on_progress(static_cast<double>(traces.size()) / task.n_requests);
    }
  };
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < task.n_clients; ++i) clients.emplace_back(ask_until_done);
  }
  return traces;
}

}  // namespace slipstream::bench
