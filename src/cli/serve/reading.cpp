#include "cli/serve/reading.h"

#include <utility>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/log.h"
#include "cli/plugin_path.h"
#include "engine/embedding/reading_kind.h"

namespace slipstream::serve {

Result<std::optional<ReadingPlan>> plan_reading(const Options& options,
                                                const std::filesystem::path& model,
                                                std::uint64_t bytes_max) {
  const Result<GgufModel> file = GgufModel::open(model);
  if (!file) return std::unexpected(file.error());
  if (!reading_kind(*file)) return std::nullopt;
  if (!options.rpc.empty()) {
    return fail(Code::kInvalidArgument,
                format_text("{} only reads texts: --rpc serves models that write", model.string()));
  }
  ReadingPlan plan{.plugin = {},
                   .n_tokens_max = read_tokens_max(*file, options.n_embedding_tokens_max),
                   .total_bytes = 0};
  plan.total_bytes = reading_bytes(*file, plan.n_tokens_max);
  if (plan.total_bytes > bytes_max) {
    return fail(Code::kOutOfMemory,
                format_text("{} takes {} to read {} tokens at once, and {} are left: a smaller "
                            "--embeddings takes less",
                            model.string(), format_bytes(plan.total_bytes), plan.n_tokens_max,
                            format_bytes(bytes_max)));
  }
  // Not "auto": our kernels round f16 weights in another way, and vectors that others computed with
  // stock's are compared with these.
  if (options.weights.prompts == "on") {
    const Result<std::filesystem::path> plugin = find_turbo_plugin();
    if (!plugin) return std::unexpected(plugin.error());
    plan.plugin = *plugin;
  }
  return plan;
}

Result<std::unique_ptr<ServedModel>> load_reading(const Options& options, const std::string& name,
                                                  const std::filesystem::path& model,
                                                  const ReadingPlan& plan) {
  Result<std::unique_ptr<ReadingModel>> loaded =
      ReadingModel::load({.path = model,
                          .plugin = plan.plugin,
                          .n_threads = options.n_threads,
                          .n_tokens_max = plan.n_tokens_max},
                         ReadingModel::Reads::kAny);
  if (!loaded) return std::unexpected(loaded.error());
  auto reader = std::make_unique<ServedReader>(std::move(*loaded));
  log::info("serve.model", {{"name", name},
                            {"path", model.string()},
                            {"reads", reader->pairs() != nullptr ? "ranks" : "vectors"},
                            {"numbers", reader->reader().n_columns()},
                            {"prompts", plan.plugin.empty() ? "stock" : "own"},
                            {"context", reader->reader().n_tokens_max()}});
  return std::make_unique<ServedModel>(ServedModel{.name = name,
                                                   .engine = nullptr,
                                                   .reader = std::move(reader),
                                                   .file_name = model.filename().string()});
}

Result<std::unique_ptr<ServedReader>> reader_beside(const Options& options, const Engine& engine) {
  if (options.n_embedding_tokens_max == 0) return nullptr;
  Result<std::unique_ptr<TextReader>> reader =
      TextReader::create(engine.model(), options.n_embedding_tokens_max, options.n_threads);
  if (!reader) return std::unexpected(reader.error());
  return std::make_unique<ServedReader>(engine.vocabulary(), std::move(*reader));
}

}  // namespace slipstream::serve
