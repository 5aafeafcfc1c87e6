// Metrics: what GET /metrics tells Prometheus, with vLLM's names if the meaning is the same.
//
// Requests are measured where their answers are sent, so that the times are those that clients see.
// The engine's own counters are read for each GET /metrics.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "engine/generation.h"
#include "engine/model/expert_counters.h"
#include "engine/model/kv_memory_counters.h"
#include "engine/runner.h"
#include "server/reading/reading_stats.h"

namespace slipstream {

// Metrics of the requests to one model.
class RequestMetrics {
 public:
  RequestMetrics(prometheus::Registry& registry, const std::string& model_name);

  // Counts a conversation of which turns had to leave the window.
  void count_rescued() { rescued_.Increment(); }

  // Measures a request from its arrival to its last token.
  class Watch {
   public:
    using Clock = std::chrono::steady_clock;

    explicit Watch(RequestMetrics& metrics, Clock::time_point arrived = Clock::now())
        : metrics_(metrics), arrived_(arrived) {}
    void take(const Event& event, Clock::time_point now = Clock::now());

   private:
    RequestMetrics& metrics_;
    Clock::time_point arrived_;
    Clock::time_point last_token_ = {};
  };

 private:
  void count_ending(const Ending& ending);

  prometheus::Histogram& first_token_;
  prometheus::Histogram& between_tokens_;
  prometheus::Histogram& whole_;
  prometheus::Histogram& prompt_tokens_;
  prometheus::Histogram& generated_tokens_;
  prometheus::Counter& rescued_;
  prometheus::Family<prometheus::Counter>& endings_;
  const std::string model_name_;
};

// Metrics of the requests with one key. The registry owns them.
struct ClientMetrics {
  prometheus::Counter* requests;       // accepted
  prometheus::Counter* over_requests;  // refused: too many at a time
  prometheus::Counter* over_tokens;    // refused: too many tokens per minute
  prometheus::Counter* prompt_tokens;
  prometheus::Counter* generated_tokens;
};

class Metrics {
 public:
  // Returns the same counters for the same name, which is never a key.
  [[nodiscard]] ClientMetrics client(const std::string& name);

  // Returns the same object for the same name. It lives as long as this object.
  [[nodiscard]] RequestMetrics& requests_of(const std::string& model_name);

  // Counts an HTTP request that was answered.
  void count_http(std::string_view path, int status);

  // Counts the supervisor's restarts of this process. Call this once.
  void count_restarts(int n);

  // The current values of one engine.
  struct EngineReading {
    std::string model_name;
    std::string kv_scheme;
    std::uint64_t kv_bytes;
    std::uint64_t kv_f16_bytes;
    RunnerStats stats;
  };
  // The same of what reads texts for vectors or ranks.
  struct ReaderReading {
    std::string model_name;
    ReadingStats stats;
  };
  // All metrics in Prometheus's text format.
  [[nodiscard]] std::string text(const std::vector<EngineReading>& engines,
                                 const std::vector<ReaderReading>& readers,
                                 const std::vector<turbo::ExpertCounters>& experts,
                                 const std::optional<turbo::KvMemoryCounters>& kv_memory) const;

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& http_requests_ =
      prometheus::BuildCounter()
          .Name("slipstream:http_requests_total")
          .Help("HTTP requests by route and status")
          .Register(registry_);
  prometheus::Family<prometheus::Counter>& client_requests_ =
      prometheus::BuildCounter()
          .Name("slipstream:client_requests_total")
          .Help("Requests by the name of their key: taken, or refused for a limit of the key")
          .Register(registry_);
  prometheus::Family<prometheus::Counter>& client_tokens_ =
      prometheus::BuildCounter()
          .Name("slipstream:client_tokens_total")
          .Help("Tokens by the name of the key: of prompts, and generated")
          .Register(registry_);
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<RequestMetrics>> requests_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream
