#include "cli/serve/serve.h"

#include <llama.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/log.h"
#include "cli/kv_choice.h"
#include "server/api_server.h"

namespace slipstream::serve {
namespace {

// SIGINT and SIGTERM, waited for instead of handled. Blocked in every thread that starts later.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  // Whether one came within the time.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time) const {
    const timespec until{.tv_sec = time.count() / 1000, .tv_nsec = time.count() % 1000 * 1'000'000};
    return sigtimedwait(&set_, nullptr, &until) > 0;
  }
  void wait() const {
    int which = 0;
    sigwait(&set_, &which);
  }

 private:
  sigset_t set_{};
};

RunnerOptions runner_options(const Options& options) {
  return {.n_sequences_max = options.n_parallel, .n_prefixes_max = 128};
}

// The model's own. One that cannot be read is said, and costs chats, not the server.
std::optional<ChatTemplate> read_chat_template(const Engine& engine) {
  const char* source = llama_model_chat_template(engine.model(), nullptr);
  if (source == nullptr) return std::nullopt;
  const Vocabulary& vocabulary = engine.vocabulary();
  const auto text_of = [&](std::optional<Token> token) {
    return token ? vocabulary.piece(*token, true) : std::string();
  };
  Result<ChatTemplate> created =
      ChatTemplate::create(source, text_of(vocabulary.bos()), text_of(vocabulary.eos()));
  if (created) return std::move(*created);
  log::warn("serve.chat_template", {{"error", created.error().message}});
  return std::nullopt;
}

Result<std::unique_ptr<ServedModel>> load(const Options& options, const StopSignals& signals) {
  const RunnerOptions runner = runner_options(options);
  const Result<KvPlan> kv = plan_kv(
      options.model, options.kv,
      {.n_ctx = options.n_context, .n_sequences_max = runner.n_sequence_ids(), .n_threads = 1});
  if (!kv) return std::unexpected(kv.error());
  Result<Model> model = Model::load(
      {.path = options.model,
       .kv = kv->scheme,
       .plugin = kv->plugin,
       .n_cells = kv->n_context,
       .n_sequences_max = runner.n_sequence_ids(),
       .n_threads = options.n_threads,
       .on_progress = [&](float) { return !signals.wait_for(std::chrono::milliseconds(0)); }});
  if (!model) return std::unexpected(model.error());
  Result<std::unique_ptr<Engine>> engine =
      Engine::start(std::move(*model), {.runner = runner,
                                        .n_requests_max = options.n_queue,
                                        .disk_directory = options.kv_disk,
                                        .disk_bytes_max = options.kv_disk_bytes});
  if (!engine) return std::unexpected(engine.error());
  log::info("serve.model",
            {{"path", options.model}, {"kv", kv->scheme}, {"context", (*engine)->n_context()}});
  std::unique_ptr<EmbeddingWorker> embeddings;
  if (options.n_embedding_tokens_max > 0) {
    Result<std::unique_ptr<Embedder>> embedder =
        Embedder::create((*engine)->model(), options.n_embedding_tokens_max, options.n_threads);
    if (!embedder) return std::unexpected(embedder.error());
    embeddings = std::make_unique<EmbeddingWorker>(std::move(*embedder));
  }
  const std::string file = std::filesystem::path(options.model).stem();
  std::optional<ChatTemplate> chat_template = read_chat_template(**engine);
  return std::make_unique<ServedModel>(
      ServedModel{.name = options.name.empty() ? file : options.name,
                  .created = std::time(nullptr),
                  .engine = std::move(*engine),
                  .chat_template = std::move(chat_template),
                  .embeddings = std::move(embeddings),
                  .kv_scheme = kv->scheme,
                  .kv_bytes = kv->kv_bytes});
}

// Until all requests have ended, the time is up, or a second signal comes.
void drain(ApiServer& server, const StopSignals& signals, std::chrono::seconds time_max) {
  log::info("serve.drain", {{"seconds_max", time_max.count()}});
  const auto end = std::chrono::steady_clock::now() + time_max;
  while (!server.drain(std::chrono::milliseconds(50))) {
    if (std::chrono::steady_clock::now() > end || signals.wait_for(std::chrono::milliseconds(0))) {
      log::warn("serve.cut_off");
      return;
    }
  }
}

Result<void> try_serve(const Options& options) {
  const StopSignals signals;
  ApiServerOptions server_options;
  server_options.http.host = options.host;
  server_options.http.port = options.port;
  server_options.api_keys = options.api_keys;
  Result<std::unique_ptr<ApiServer>> server = ApiServer::start(server_options);
  if (!server) return std::unexpected(server.error());
  log::info("serve.listen", {{"address", (*server)->address()}});
  Result<std::unique_ptr<ServedModel>> model = load(options, signals);
  if (!model) return std::unexpected(model.error());
  (*server)->set_model(std::move(*model));
  log::info("serve.ready", {{"address", (*server)->address()}});
  signals.wait();
  drain(**server, signals, std::chrono::seconds(options.drain_seconds_max));
  return {};
}

}  // namespace

int serve(const Options& options) {
  const Result<void> served = try_serve(options);
  if (served || served.error().code == Code::kCancelled) return 0;
  std::fprintf(stderr, "slipstream serve: %s\n", served.error().message.c_str());
  return 1;
}

}  // namespace slipstream::serve
