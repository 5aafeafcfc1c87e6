#include "cli/bench/bench.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/memory_info.h"
#include "bench/quality/plain_text.h"
#include "bench/quality/report.h"
#include "bench/report/speed_report.h"
#include "bench/report/speed_table.h"
#include "bench/speed/cell_json.h"
#include "bench/speed/cell_run.h"
#include "bench/speed/run_matrix.h"
#include "cli/depth.h"
#include "cli/hub/find_model.h"
#include "cli/kv_choice.h"
#include "cli/kv_profile.h"
#include "cli/plugin_path.h"
#include "cli/progress.h"
#include "cli/run_facts.h"
#include "cli/scheme_list.h"
#include "engine/model/kv_scheme.h"
#include "engine/model/model.h"

namespace slipstream::bench {
namespace {

using nlohmann::json;

// The scheme that --kv auto chooses for the model, with a context for the deepest cell.
Result<std::string> resolve_auto(const Options& options, const Matrix& matrix) {
  const Result<std::uint64_t> available = available_memory();
  if (!available) return std::unexpected(available.error());
  const int n_sequences = std::ranges::max(matrix.n_sequences);
  const int n_each = std::ranges::max(matrix.depths) + options.n_prompt + options.n_tokens;
  const ContextShape shape{.n_ctx = static_cast<std::int64_t>(n_each) * n_sequences,
                           .n_sequences_max = n_sequences};
  Result<KvPlan> plan = plan_kv(options.model, {}, {.shape = shape, .rope = options.rope},
                                {.available_bytes = *available}, {.prompts = "off"});
  if (!plan) return std::unexpected(plan.error());
  return std::move(plan->scheme);
}

Result<Matrix> read_matrix(const Options& options) {
  Matrix matrix{.kv = {std::begin(kStockSettings), std::end(kStockSettings)},
                .depths = {},
                .n_sequences = options.n_sequences,
                .has_shared = options.has_shared,
                .n_repeats = options.n_repeats};
  for (const std::string& text : options.depths) {
    const Result<int> depth = parse_depth(text);
    if (!depth) return std::unexpected(depth.error());
    if (!std::ranges::contains(matrix.depths, *depth)) matrix.depths.push_back(*depth);
  }
  for (const std::string& asked : join_schemes(options.kv)) {
    const Result<std::string> kv =
        asked == "auto" ? resolve_auto(options, matrix) : Result<std::string>(asked);
    if (!kv) return std::unexpected(kv.error());
    if (const Result<KvScheme> scheme = parse_kv_scheme(*kv); !scheme) {
      return std::unexpected(scheme.error());
    }
    if (!std::ranges::contains(matrix.kv, *kv)) matrix.kv.push_back(*kv);
    if (options.prompts == "on") matrix.kv.push_back(format_text("{}{}", *kv, kOwnProducts));
  }
  return matrix;
}

// --kv-memory is of use to schemes that limit what is read.
Result<void> check_kv_memory(const Options& options, const Matrix& matrix) {
  const auto is_limited = [](const std::string& kv) {
    return parse_kv_scheme(cache_scheme(kv)).transform(&KvScheme::attend).value_or(0) != 0;
  };
  if (options.kv_memory_bytes == 0 || std::ranges::any_of(matrix.kv, is_limited)) return {};
  return fail(
      Code::kInvalidArgument,
      "--kv-memory needs a scheme that limits what is read, such as --kv turbo4,attend=4096");
}

Result<std::filesystem::path> plugin_for(const Matrix& matrix) {
  const bool is_needed = std::ranges::any_of(
      matrix.kv, [](const std::string& kv) { return kv.starts_with("turbo") || has_products(kv); });
  if (!is_needed) return std::filesystem::path();
  return find_turbo_plugin();
}

Result<void> write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return fail_errno(errno, format_text("cannot write {}", path.string()));
  return {};
}

// The text that was named, or plain_text(), written where the cells' processes find it.
Result<std::filesystem::path> text_for(const Options& options, const std::filesystem::path& to) {
  if (!options.text.empty()) return std::filesystem::path(options.text);
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  std::filesystem::path path = to / "text.txt";
  const Result<void> written = write_file(path, quality::plain_text(kBytes));
  if (!written) return std::unexpected(written.error());
  return path;
}

// Reads quality.json, which `slipstream eval --out` wrote into the same directory, at its greatest
// depth. Returns nothing if the file is missing.
std::vector<QualityPoint> read_quality(const std::filesystem::path& path) {
  std::ifstream file(path);
  try {
    return quality::quality_points(json::parse(file));
  } catch (const json::exception&) {
    return {};  // another file of that name
  }
}

double seconds_of(std::span<const TurnRecord> records) {
  double seconds = 0;
  for (const TurnRecord& record : records) seconds += record.seconds;
  return seconds;
}

Result<void> write_reports(const std::filesystem::path& directory, const SpeedReport& report) {
  for (const Picture& picture : pictures(report)) {
    const Result<void> written = write_file(directory / picture.file, picture.svg);
    if (!written) return written;
  }
  for (const auto& [name, text] : {std::pair{"speed.csv", csv_table(report.cells)},
                                   std::pair{"report.md", markdown_report(report)},
                                   std::pair{"report.html", html_report(report)}}) {
    if (const Result<void> written = write_file(directory / name, text); !written) return written;
  }
  return {};
}

Result<int> try_run(Options options) {
  const Result<std::filesystem::path> model = find_model(options.model);
  if (!model) return std::unexpected(model.error());
  options.model = model->string();
  const Result<Matrix> matrix = read_matrix(options);
  if (!matrix) return std::unexpected(matrix.error());
  if (Result<void> checked = check_kv_memory(options, *matrix); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  const Result<int> n_computed_max = parse_depth(options.computed_depth);
  if (!n_computed_max) return std::unexpected(n_computed_max.error());
  if (*n_computed_max < 2) {
    return fail(Code::kInvalidArgument, "--computed-depth: fewer than 2 tokens cannot be repeated");
  }
  const Result<std::filesystem::path> plugin = plugin_for(*matrix);
  if (!plugin) return std::unexpected(plugin.error());
  Result<json> work = describe_model(options.model);
  if (!work) return std::unexpected(work.error());
  const int n_threads = threads_to_use(options.n_threads);
  work->update({{"threads", n_threads},
                {"prompt tokens", options.n_prompt},
                {"decoded tokens", options.n_tokens},
                {"text", options.text.empty() ? "built in" : options.text}});
  if (std::ranges::max(matrix->depths) > *n_computed_max) {
    work->update({{"computed depth", *n_computed_max}});
  }
  if (options.kv_memory_bytes != 0) {
    work->update({{"KV memory", format_bytes(options.kv_memory_bytes)}});
  }
  std::filesystem::path keys;
  // Keys are fitted with the model's own positions.
  if (!plugin->empty() && options.rope.is_own()) keys = find_key_profile(options.model);
  if (!options.rope.is_own()) work->update({{"positions", to_text(options.rope)}});
  if (!keys.empty()) work->update({{"keys", "fitted"}});

  std::filesystem::path directory = options.directory;
  if (directory.empty()) {
    directory = format_text("bench-{}", std::filesystem::path(options.model).stem().string());
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const Result<std::filesystem::path> text = text_for(options, directory);
  if (!text) return std::unexpected(text.error());
  Result<Journal> journal =
      Journal::open(directory / "runs.jsonl", {.work = *work, .machine = describe_machine()});
  if (!journal) return std::unexpected(journal.error());
  if (const std::size_t n = journal->done().size(); n > 0) {
    std::fprintf(stderr, "%zu measurements are in %s already; continuing from there\n", n,
                 (directory / "runs.jsonl").c_str());
  }

  {
    Progress progress("measuring");
    const Result<void> measured = run_matrix(
        *matrix,
        {.cell = {},
         .model = options.model,
         .plugin = *plugin,
         .key_profile = keys,
         .text = *text,
         .states = directory / "states",
         .kv_memory = kv_memory_text(options.kv_memory_bytes, options.kv_memory_directory),
         .kv_memory_bytes = options.kv_memory_bytes,
         .rope = options.rope,
         .n_threads = n_threads,
         .n_computed_max = *n_computed_max,
         .n_prompt = options.n_prompt,
         .n_tokens = options.n_tokens},
        {"/proc/self/exe", "bench-cell"}, *journal, [&](const MatrixProgress& now) {
          progress.rename(format_text("{} at {}, {} together, repeat {}", now.turn->cell.kv,
                                      depth_text(now.turn->cell.depth),
                                      sequences_text(now.turn->cell), now.turn->repeat + 1));
          progress.show(now.done);
        });
    if (!measured) return std::unexpected(measured.error());
  }

  const SpeedReport report{.header = journal->header(),
                           .matrix = *matrix,
                           .cells = summarise(*matrix, journal->records()),
                           .seconds = seconds_of(journal->records()),
                           .quality = read_quality(directory / "quality.json")};
  if (const Result<void> written = write_reports(directory, report); !written) {
    return std::unexpected(written.error());
  }
  std::printf("%s\n%s: report.html, report.md, speed.csv, runs.jsonl\n",
              terminal_table(report.cells).c_str(), directory.c_str());
  const bool has_all =
      std::ranges::all_of(report.cells, [](const CellSummary& cell) { return cell.n_repeats > 0; });
  return has_all ? 0 : 1;
}

}  // namespace

int run(const Options& options) {
  const Result<int> status = try_run(options);
  if (status) return *status;
  std::fprintf(stderr, "slipstream bench: %s\n", status.error().message.c_str());
  return 1;
}

int run_cell_process() {
  return answer_parent(
      [](const json& task, const std::function<void(double)>& on_progress) -> Result<json> {
        const Result<CellFigures> figures = run_cell(task.get<CellTask>(), on_progress);
        if (!figures) return std::unexpected(figures.error());
        return json(*figures);
      });
}

}  // namespace slipstream::bench
