#include "cli/index/embed.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>

#include "base/format.h"
#include "base/log.h"
#include "cli/hub/find_model.h"
#include "cli/progress.h"
#include "cli/search/search_models.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream::index {
namespace {

Result<EmbedSummary> embed_with_progress(Database& database, TextEmbedder& embedder) {
  Progress progress("computing vectors");
  const auto began = std::chrono::steady_clock::now();
  return embed_chunks(database, embedder, {}, [&](std::int64_t n_done, std::int64_t n_all) {
    const double share = static_cast<double>(n_done) / static_cast<double>(n_all);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    ProgressNote note{.text = format_text("{} of {} pieces", n_done, n_all), .seconds_left = {}};
    if (share > 0.005) note.seconds_left = seconds.count() / share * (1 - share);
    progress.show(share, note);
  });
}

// The model that the index has vectors of, if it still is what it was.
Result<std::unique_ptr<TextEmbedder>> open_own(const EmbedderInfo& info, int n_threads) {
  Result<std::unique_ptr<TextEmbedder>> embedder = search::open_embedder(info.path, n_threads);
  if (!embedder) return embedder;
  if ((*embedder)->id() != info.id) {
    return fail(Code::kUnsupported,
                format_text("{} is another model than the one whose vectors the index has: "
                            "slipstream index embed {} computes new ones",
                            info.path, info.path));
  }
  return embedder;
}

Result<void> embed_all(Database& database, TextEmbedder& embedder) {
  const Result<EmbedSummary> summary = embed_with_progress(database, embedder);
  if (!summary) return std::unexpected(summary.error());
  std::fputs(format_embedding(*summary).c_str(), stdout);
  return {};
}

}  // namespace

Result<void> embed_index(const Options& options) {
  Result<Database> database = open_index(index_path(options.path));
  if (!database) return std::unexpected(database.error());
  if (options.is_off) return remove_embedder(*database);
  if (options.model().empty()) {
    const Result<std::optional<EmbedderInfo>> info = find_embedder(*database);
    if (!info) return std::unexpected(info.error());
    if (!*info) {
      return fail(Code::kInvalidArgument,
                  "the index has no embedder yet: name a GGUF file or an installed model");
    }
    const Result<std::unique_ptr<TextEmbedder>> own = open_own(**info, options.n_threads);
    if (!own) return std::unexpected(own.error());
    return embed_all(*database, **own);
  }
  const Result<std::filesystem::path> file = find_model(options.model());
  if (!file) return std::unexpected(file.error());
  const Result<std::unique_ptr<TextEmbedder>> embedder =
      search::open_embedder(file->string(), options.n_threads);
  if (!embedder) return std::unexpected(embedder.error());
  if ((*embedder)->n_dimensions() > kRetrievalLimits.vector_dimensions_max) {
    return fail(Code::kUnsupported, format_text("vectors of {} numbers are too long for an index",
                                                (*embedder)->n_dimensions()));
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(*file, error);
  if (Result<void> set = set_embedder(*database, {.id = (*embedder)->id(),
                                                  .path = (error ? *file : absolute).string(),
                                                  .n_dimensions = (*embedder)->n_dimensions()});
      !set) {
    return set;
  }
  return embed_all(*database, **embedder);
}

Result<void> embed_new(Database& database, int n_threads) {
  const Result<std::optional<EmbedderInfo>> info = find_embedder(database);
  if (!info) return std::unexpected(info.error());
  if (!*info) return {};
  const Result<VectorCounts> counts = count_vectors(database);
  if (!counts) return std::unexpected(counts.error());
  if (counts->n_without == 0) return {};
  const Result<std::unique_ptr<TextEmbedder>> embedder = open_own(**info, n_threads);
  if (!embedder) return std::unexpected(embedder.error());
  return embed_all(database, **embedder);
}

BackgroundEmbedding::BackgroundEmbedding(std::string index_path, int n_threads)
    : index_path_(std::move(index_path)),
      n_threads_(n_threads),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void BackgroundEmbedding::run(const std::stop_token& stop) {
  constexpr std::chrono::seconds kLookEvery(1);
  constexpr std::chrono::minutes kTryAgainAfter(1);
  Result<Database> database = open_index(index_path_);
  std::unique_ptr<TextEmbedder> embedder;
  std::int64_t seen = -1;  // the state of the index that has all vectors
  std::mutex mutex;
  std::condition_variable_any never;
  const auto wait = [&](std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, time, [] { return false; });
  };
  const auto embed = [&]() -> Result<void> {
    const Result<std::int64_t> version = database->version();
    if (!version) return std::unexpected(version.error());
    if (*version == seen) return {};
    const Result<std::optional<EmbedderInfo>> info = find_embedder(*database);
    if (!info) return std::unexpected(info.error());
    if (*info && (embedder == nullptr || embedder->id() != (*info)->id)) {
      Result<std::unique_ptr<TextEmbedder>> opened = open_own(**info, n_threads_);
      if (!opened) return std::unexpected(opened.error());
      embedder = std::move(*opened);
    }
    if (*info) {
      const Result<EmbedSummary> summary = embed_chunks(*database, *embedder, stop);
      if (!summary) return std::unexpected(summary.error());
    }
    seen = *version;
    return {};
  };
  while (!stop.stop_requested()) {
    const Result<void> done = database ? embed() : std::unexpected(database.error());
    if (!done && done.error().code != Code::kCancelled) {
      log::warn("index.embed", {{"error", done.error().message}});
    }
    wait(done ? std::chrono::milliseconds(kLookEvery) : std::chrono::milliseconds(kTryAgainAfter));
  }
}

std::string format_embedding(const EmbedSummary& summary) {
  if (summary.n_chunks == 0) return "every piece has its vector\n";
  return format_text("{} pieces have got vectors, {} of them computed, in {:.1f} s\n",
                     summary.n_chunks, summary.n_computed, summary.seconds);
}

}  // namespace slipstream::index
