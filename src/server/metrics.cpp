#include "server/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace slipstream {
namespace {

using prometheus::ClientMetric;
using prometheus::Histogram;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Seconds = std::chrono::duration<double>;

const Histogram::BucketBoundaries& token_buckets() {
  static const Histogram::BucketBoundaries kBuckets = {1,    4,    16,    64,    256,
                                                       1024, 4096, 16384, 65536, 262144};
  return kBuckets;
}
const Histogram::BucketBoundaries& short_buckets() {
  static const Histogram::BucketBoundaries kBuckets = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
      0.3,   0.4,    0.5,   0.75, 1,     2.5,  5,     10,  30};
  return kBuckets;
}
const Histogram::BucketBoundaries& long_buckets() {
  static const Histogram::BucketBoundaries kBuckets = {0.05, 0.1, 0.25, 0.5, 1,   2.5, 5,    10,
                                                       20,   40,  60,   120, 300, 600, 1800, 7200};
  return kBuckets;
}

Histogram& add_histogram(prometheus::Registry& registry, const std::string& name,
                         const std::string& help, const std::string& model_name,
                         const Histogram::BucketBoundaries& buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(
      {{"model_name", model_name}}, buckets);
}

// Families of values that are read now, in the order in which they were added first.
class Reading {
 public:
  void gauge(const std::string& name, const std::string& help, double value,
             std::vector<ClientMetric::Label> labels) {
    add(name, help, MetricType::Gauge, std::move(labels)).gauge.value = value;
  }
  void counter(const std::string& name, const std::string& help, double value,
               std::vector<ClientMetric::Label> labels) {
    add(name, help, MetricType::Counter, std::move(labels)).counter.value = value;
  }
  void counter(const std::string& name, const std::string& help, std::int64_t value,
               std::vector<ClientMetric::Label> labels) {
    counter(name, help, static_cast<double>(value), std::move(labels));
  }
  [[nodiscard]] std::vector<MetricFamily> take() && { return std::move(families_); }

 private:
  ClientMetric& add(const std::string& name, const std::string& help, MetricType type,
                    std::vector<ClientMetric::Label> labels) {
    auto family = std::ranges::find(families_, name, &MetricFamily::name);
    if (family == families_.end()) {
      families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
      family = std::prev(families_.end());
    }
    family->metric.emplace_back().label = std::move(labels);
    return family->metric.back();
  }

  std::vector<MetricFamily> families_;
};

void read(const Metrics::EngineReading& engine, Reading& reading) {
  const RunnerStats& stats = engine.stats;
  const std::vector<ClientMetric::Label> model = {
      {.name = "model_name", .value = engine.model_name}};
  reading.gauge("vllm:num_requests_running", "Requests that are computed", stats.n_running, model);
  reading.gauge("vllm:num_requests_waiting", "Requests that wait", stats.n_waiting, model);
  reading.gauge(
      "vllm:kv_cache_usage_perc", "Share of the KV cache that is in use: 1 is all",
      stats.n_cells == 0
          ? 0
          : static_cast<double>(stats.n_cells_used - stats.n_cells_evictable) / stats.n_cells,
      model);
  reading.counter("vllm:prefix_cache_queries_total", "Tokens of prompts",
                  stats.n_prompt_tokens + stats.n_cached_tokens, model);
  reading.counter("vllm:prefix_cache_hits_total", "Tokens of prompts that were not computed again",
                  stats.n_cached_tokens, model);
  reading.counter("slipstream:recomputed_prompt_tokens_total",
                  "Tokens of prompts that were computed though an earlier request had done so",
                  stats.n_recomputed_tokens, model);
  reading.counter("vllm:prompt_tokens_total", "Tokens of prompts that were computed",
                  stats.n_prompt_tokens, model);
  reading.counter("vllm:generation_tokens_total", "Tokens that were generated",
                  stats.n_generated_tokens, model);
  reading.counter("vllm:num_preemptions_total", "Requests that had to give way to others",
                  stats.n_preempted, model);
  reading.counter("slipstream:steps_total", "Batches that were computed", stats.n_steps, model);
  reading.counter("slipstream:failed_batches_total", "Batches that libllama could not compute",
                  stats.n_failed_batches, model);
  const SpeculationStats& drafts = stats.speculation;
  reading.counter("vllm:spec_decode_num_drafts_total", "Drafts that steps verified",
                  drafts.n_drafts, model);
  reading.counter("vllm:spec_decode_num_draft_tokens_total", "Tokens of these drafts",
                  drafts.n_drafted, model);
  reading.counter("vllm:spec_decode_num_accepted_tokens_total",
                  "Of these tokens, those that became a part of an answer", drafts.n_accepted,
                  model);
  for (std::size_t i = 0; i < drafts.n_accepted_at.size(); ++i) {
    auto at = model;
    at.push_back({.name = "position", .value = std::to_string(i)});
    reading.counter("vllm:spec_decode_num_accepted_tokens_per_pos_total",
                    "The same by position in the draft", drafts.n_accepted_at[i], at);
  }
  reading.counter("slipstream:draft_model_tokens_total",
                  "Tokens that the draft model guessed, or the model's layer for MTP",
                  drafts.n_guessed, model);
  reading.counter("slipstream:draft_model_seconds_total",
                  "Time in which it guessed, and read what came before", drafts.draft_model_seconds,
                  model);
  reading.gauge("slipstream:draft_bytes", "Memory in which drafts are found",
                static_cast<double>(stats.n_draft_bytes), model);
  auto by_scheme = model;
  by_scheme.push_back({.name = "kv_scheme", .value = engine.kv_scheme});
  reading.gauge("slipstream:kv_cache_bytes", "Memory of the KV cache",
                static_cast<double>(engine.kv_bytes), by_scheme);
  reading.gauge("slipstream:kv_cache_f16_bytes", "Memory that the KV cache would take as f16",
                static_cast<double>(engine.kv_f16_bytes), model);
}

void read(const Metrics::ReaderReading& reader, Reading& reading) {
  const ReadingStats& stats = reader.stats;
  const std::vector<ClientMetric::Label> model = {
      {.name = "model_name", .value = reader.model_name}};
  reading.counter("slipstream:read_texts_total", "Texts and pairs read for vectors or ranks",
                  stats.n_texts, model);
  reading.counter("slipstream:read_tokens_total", "Their tokens", stats.n_tokens, model);
  reading.counter("slipstream:read_batches_total", "Batches in which they were read",
                  stats.n_batches, model);
  reading.counter("slipstream:read_seconds_total", "Time in which batches were computed",
                  stats.seconds, model);
  reading.gauge("slipstream:read_texts_waiting", "Texts and pairs that wait",
                static_cast<double>(stats.n_waiting), model);
}

void read(const turbo::ExpertCounters& experts, Reading& reading) {
  const std::vector<ClientMetric::Label> layer = {
      {.name = "layer", .value = std::to_string(experts.layer)}};
  const auto count = [&](const char* name, const char* help, std::uint64_t n) {
    reading.counter(name, help, static_cast<double>(n), layer);
  };
  count("slipstream:expert_hits_total", "Streamed experts that were needed and in memory",
        experts.n_hits);
  count("slipstream:expert_misses_total", "Streamed experts that were needed and had to be read",
        experts.n_misses);
  count("slipstream:expert_read_ahead_total", "Streamed experts that were read ahead of a batch",
        experts.n_guessed);
  count("slipstream:expert_read_ahead_used_total", "Of those, the ones that the batch needed",
        experts.n_guessed_used);
  count("slipstream:expert_read_bytes_total", "Bytes of experts that were read",
        experts.n_bytes_read);
  reading.counter("slipstream:expert_stall_seconds_total", "Time that computing waited for experts",
                  static_cast<double>(experts.stall_ns) / 1e9, layer);
}

void read(const turbo::KvMemoryCounters& kv, Reading& reading) {
  const auto count = [&](const char* name, const char* help, std::uint64_t n) {
    reading.counter(name, help, static_cast<double>(n), {});
  };
  count("slipstream:kv_memory_hits_total", "Pieces of KV caches that were needed and in memory",
        kv.n_hits);
  count("slipstream:kv_memory_misses_total",
        "Pieces of KV caches that were needed and had to be read", kv.n_misses);
  count("slipstream:kv_memory_read_bytes_total", "Bytes of KV caches that were read",
        kv.n_bytes_read);
  count("slipstream:kv_memory_written_bytes_total", "Bytes of KV caches that were written",
        kv.n_bytes_written);
  count("slipstream:kv_memory_failed_reads_total", "Reads of KV caches that failed",
        kv.n_failed_reads);
  count("slipstream:kv_memory_failed_writes_total", "Writes of KV caches that failed",
        kv.n_failed_writes);
  reading.gauge("slipstream:kv_memory_resident_bytes",
                "Codes of KV caches in memory, of those that may lie in a file",
                static_cast<double>(kv.n_bytes_resident), {});
}

}  // namespace

RequestMetrics::RequestMetrics(prometheus::Registry& registry, const std::string& model_name)
    : first_token_(add_histogram(registry, "vllm:time_to_first_token_seconds",
                                 "From a request's arrival to its first token", model_name,
                                 long_buckets())),
      between_tokens_(add_histogram(registry, "vllm:inter_token_latency_seconds",
                                    "Between two tokens of an answer", model_name,
                                    short_buckets())),
      whole_(add_histogram(registry, "vllm:e2e_request_latency_seconds",
                           "From a request's arrival to its last token", model_name,
                           long_buckets())),
      prompt_tokens_(add_histogram(registry, "vllm:request_prompt_tokens", "Tokens of a prompt",
                                   model_name, token_buckets())),
      generated_tokens_(add_histogram(registry, "vllm:request_generation_tokens",
                                      "Tokens of an answer", model_name, token_buckets())),
      rescued_(prometheus::BuildCounter()
                   .Name("slipstream:rescued_conversations_total")
                   .Help("Chats of which old turns left, because they are longer than the context")
                   .Register(registry)
                   .Add({{"model_name", model_name}})),
      endings_(prometheus::BuildCounter()
                   .Name("vllm:request_success_total")
                   .Help("Requests by how they ended")
                   .Register(registry)),
      model_name_(model_name) {}

void RequestMetrics::Watch::take(const Event& event, Clock::time_point now) {
  if (!event.tokens.empty()) {
    if (last_token_ == Clock::time_point()) {
      metrics_.first_token_.Observe(Seconds(now - arrived_).count());
    } else {
      metrics_.between_tokens_.Observe(Seconds(now - last_token_).count());
    }
    last_token_ = now;
  }
  if (!event.ending) return;
  metrics_.whole_.Observe(Seconds(now - arrived_).count());
  metrics_.count_ending(*event.ending);
}

void RequestMetrics::count_ending(const Ending& ending) {
  prompt_tokens_.Observe(ending.usage.n_prompt);
  generated_tokens_.Observe(ending.usage.n_generated);
  endings_.Add({{"model_name", model_name_}, {"finished_reason", std::string(name(ending.reason))}})
      .Increment();
}

RequestMetrics& Metrics::requests_of(const std::string& model_name) {
  const MutexLock lock(mutex_);
  auto& metrics = requests_[model_name];
  if (!metrics) metrics = std::make_unique<RequestMetrics>(registry_, model_name);
  return *metrics;
}

ClientMetrics Metrics::client(const std::string& name) {
  const auto requests = [&](const char* outcome) {
    return &client_requests_.Add({{"client", name}, {"outcome", outcome}});
  };
  const auto tokens = [&](const char* kind) {
    return &client_tokens_.Add({{"client", name}, {"kind", kind}});
  };
  return {.requests = requests("taken"),
          .over_requests = requests("too_many_requests"),
          .over_tokens = requests("too_many_tokens"),
          .prompt_tokens = tokens("prompt"),
          .generated_tokens = tokens("generated")};
}

void Metrics::count_http(std::string_view path, int status) {
  http_requests_.Add({{"path", std::string(path)}, {"status", std::to_string(status)}}).Increment();
}

void Metrics::count_restarts(int n) {
  prometheus::BuildCounter()
      .Name("slipstream:process_restarts_total")
      .Help("Times that the supervisor has started the server again")
      .Register(registry_)
      .Add({})
      .Increment(n);
}

std::string Metrics::text(const std::vector<EngineReading>& engines,
                          const std::vector<ReaderReading>& readers,
                          const std::vector<turbo::ExpertCounters>& experts,
                          const std::optional<turbo::KvMemoryCounters>& kv_memory) const {
  Reading reading;
  for (const EngineReading& engine : engines) read(engine, reading);
  for (const ReaderReading& reader : readers) read(reader, reading);
  for (const turbo::ExpertCounters& layer : experts) read(layer, reading);
  if (kv_memory) read(*kv_memory, reading);
  std::vector<MetricFamily> families = std::move(reading).take();
  std::ranges::move(registry_.Collect(), std::back_inserter(families));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace slipstream
