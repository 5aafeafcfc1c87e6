#include "bench/load/load_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/format.h"
#include "base/utf8.h"
#include "bench/load/stream_client.h"

namespace slipstream::bench {
namespace {

// The first character that begins at `at` or behind it; that of the text if there is none.
std::size_t character_from(std::string_view text, std::size_t at) {
  const auto is_within = [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
  };
  while (at < text.size() && is_within(text[at])) ++at;
  return at < text.size() ? at : 0;
}

}  // namespace

std::string prompt_of(const LoadTask& task, int i) {
  // A prime, so that positions do not repeat before the whole text was used.
  constexpr std::size_t kStride = 7919;
  const std::size_t begin =
      character_from(task.text, (static_cast<std::size_t>(i) + 1) * kStride % task.text.size());
  std::string prompt = format_text("Page {} of {}. ", i + 1, task.n_clients);
  while (prompt.size() < task.n_prompt_bytes) {
    const std::size_t wanted = task.n_prompt_bytes - prompt.size();
    prompt += task.text.substr(prompt.size() < 32 ? begin : 0, wanted);
  }
  // A character that was cut at the end is left out. What was no UTF-8 in the text is replaced: JSON
  // cannot carry it.
  std::string readable;
  append_repaired_utf8(readable, prompt);
  return readable;
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
