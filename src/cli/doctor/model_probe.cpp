#include <algorithm>
#include <chrono>
#include <random>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/mapping.h"
#include "base/slab_reader.h"
#include "cli/doctor/probes.h"
#include "cli/hub/find_model.h"
#include "cli/kv_choice.h"
#include "cli/plugin_path.h"
#include "engine/forecast/context_choice.h"
#include "engine/forecast/product_trial.h"
#include "engine/model/model.h"

namespace slipstream::doctor {
namespace {

// The hit rate of the expert cache for which a speed is reported beside the speed without a cache.
constexpr double kHitRate = 0.9;

// Measures how fast the file is read in the way experts are: random pieces of 1 MiB, bypassing
// the page cache.
Result<double> measure_disk(const std::string& path) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  constexpr std::size_t kPieces = 64;
  constexpr std::chrono::milliseconds kTime(700);
  const Result<DataFile> file = open_data_file(path, ReadMethod::kUringDirect);
  if (!file) return std::unexpected(file.error());
  if (file->n_bytes < 4 * kPieceBytes) return 0;
  Result<Mapping> memory = Mapping::anonymous(kPieces * kPieceBytes);
  if (!memory) return std::unexpected(memory.error());
  std::mt19937_64 random(1);
  SlabReader reader(ReadMethod::kUringDirect);
  const auto start = std::chrono::steady_clock::now();
  std::chrono::duration<double> took{};
  std::size_t n_bytes = 0;
  while (took < kTime) {
    std::vector<FilePiece> pieces;
    for (std::size_t i = 0; i < kPieces; ++i) {
      pieces.push_back({.file = &*file,
                        .offset = random() % (file->n_bytes / kPieceBytes) * kPieceBytes,
                        .n_bytes = kPieceBytes,
                        .into = memory->bytes().data() + i * kPieceBytes});
    }
    if (Result<void> read = reader.wait(reader.start(pieces)); !read) {
      return std::unexpected(std::move(read.error()));
    }
    n_bytes += kPieces * kPieceBytes;
    took = std::chrono::steady_clock::now() - start;
  }
  return static_cast<double>(n_bytes) / took.count();
}

Result<ModelNeeds> find_needs(const std::string& model) {
  const Result<std::filesystem::path> found = find_model(model);
  if (!found) return std::unexpected(found.error());
  const std::string path = found->string();
  load_backends();
  const Result<ModelProfile> resident = read_profile(path);
  if (!resident) return std::unexpected(resident.error());
  const Result<ModelProfile> streamed = read_profile(path, {.streams_experts = true});
  if (!streamed) return std::unexpected(streamed.error());
  const ModelGeometry& geometry = resident->geometry;
  const ContextShape shape = {.n_ctx = std::min(kContextLeast, geometry.n_ctx_train)};
  const Result<MemoryForecast> whole = forecast(*resident, KvScheme{}, shape);
  if (!whole) return std::unexpected(whole.error());
  const Result<MemoryForecast> rest = forecast(*streamed, KvScheme{}, shape);
  if (!rest) return std::unexpected(rest.error());
  const Result<std::uint64_t> available = available_memory();
  if (!available) return std::unexpected(available.error());
  ModelNeeds needs{.architecture = geometry.architecture,
                   .n_context = whole->n_ctx,
                   .n_bytes = needed_bytes(*whole),
                   .n_bytes_streamed = needed_bytes(*rest),
                   .n_expert_bytes = resident->weights.experts,
                   .n_experts = geometry.n_experts,
                   .n_experts_used = geometry.n_experts_used,
                   .n_available_bytes = *available};
  if (needs.n_expert_bytes > 0) {
    const Result<double> disk = measure_disk(path);
    if (!disk) return std::unexpected(disk.error());
    needs.disk_bytes_per_second = *disk;
  }
  // Without the plugin there is nothing to try.
  if (const Result<std::filesystem::path> plugin = find_turbo_plugin()) {
    const auto products = try_products(path, *plugin, threads_to_use(0));
    if (!products) return std::unexpected(products.error());
    needs.products = *products;
  }
  const bool has_products = needs.products && needs.products->pays();
  if (const Result<KvPlan> plan = plan_kv(path, {}, {}, {.available_bytes = *available},
                                          {.prompts = has_products ? "on" : "off"})) {
    needs.kv = plan->scheme;
    needs.n_context = plan->n_context;
    needs.why_context = plan->why_context;
    needs.n_bytes = plan->total_bytes;
  }
  return needs;
}

Finding judge_products(const ProductTrial& trial) {
  return {.status = Status::kGood,
          .topic = "prompts",
          .value = format_text("{} kernels: ours read prompts {:.1f} times as fast as stock's, and "
                               "decode {:.2f} times as fast",
                               trial.pays() ? "our own" : "stock's", trial.prompt, trial.decode),
          .advice = ""};
}

std::vector<Finding> judge_streaming(const ModelNeeds& model) {
  const double token_bytes = static_cast<double>(model.n_expert_bytes) *
                             static_cast<double>(model.n_experts_used) /
                             static_cast<double>(std::max<std::int64_t>(model.n_experts, 1));
  const double warm_bytes = token_bytes * (1 - kHitRate);
  std::vector<Finding> findings;
  findings.push_back(
      {.status = Status::kGood,
       .topic = "experts",
       .value = format_text(
           "{} of {} are used for a token; streamed, {} stay in memory and a token reads {}, or {} "
           "while {:.0f} % of its experts are in memory",
           model.n_experts_used, model.n_experts, format_bytes(model.n_bytes_streamed),
           format_bytes(static_cast<std::uint64_t>(token_bytes)),
           format_bytes(static_cast<std::uint64_t>(warm_bytes)), kHitRate * 100),
       .advice = ""});
  if (model.disk_bytes_per_second > 0 && token_bytes > 0) {
    findings.push_back(
        {.status = Status::kGood,
         .topic = "disk speed",
         .value = format_text("{:.1f} GB/s: streamed, no more than {:.1f} tokens/s at first and "
                              "{:.0f} at {:.0f} %",
                              model.disk_bytes_per_second / 1e9,
                              model.disk_bytes_per_second / token_bytes,
                              model.disk_bytes_per_second / warm_bytes, kHitRate * 100),
         .advice = ""});
  }
  return findings;
}

}  // namespace

std::vector<Finding> judge_model(const ModelNeeds& model) {
  const bool fits = model.n_bytes <= model.n_available_bytes;
  const bool fits_streamed =
      model.n_expert_bytes > 0 && model.n_bytes_streamed <= model.n_available_bytes;
  std::string advice;
  if (!fits && fits_streamed) advice = "stream its experts: --stream-experts with serve or run";
  if (!fits && !fits_streamed) {
    advice =
        "choose a smaller context (--ctx), a compressed KV cache (--kv auto) or a smaller model";
  }
  std::vector<Finding> findings = {
      {.status = fits ? Status::kGood : Status::kNote,
       .topic = "model",
       .value =
           format_text("{}, needs {} with {} KV for a context of {} tokens ({}), {} are "
                       "available",
                       model.architecture, format_bytes(model.n_bytes), model.kv, model.n_context,
                       model.why_context, format_bytes(model.n_available_bytes)),
       .advice = std::move(advice)}};
  if (model.products) findings.push_back(judge_products(*model.products));
  if (model.n_expert_bytes > 0) findings.append_range(judge_streaming(model));
  return findings;
}

std::vector<Finding> probe_model(const std::string& model) {
  const Result<ModelNeeds> needs = find_needs(model);
  if (needs) return judge_model(*needs);
  return {{.status = Status::kNote,
           .topic = "model",
           .value = needs.error().message,
           .advice = "name a GGUF file"}};
}

}  // namespace slipstream::doctor
