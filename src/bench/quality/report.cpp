#include "bench/quality/report.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "bench/quality/arm_json.h"
#include "bench/quality/drift.h"
#include "bench/quality/needles.h"
#include "bench/quality/work/work_report.h"
#include "engine/model/kv_scheme.h"

namespace slipstream::quality {
namespace {

// Members keep their names; nlohmann's macros (arm_json.h) support only its sorted JSON.
Json json_of(const auto& value) { return nlohmann::json(value); }

// The number of `items` for which `is` is true.
template <class Items, class Is>
auto count(const Items& items, Is is) {
  return std::ranges::count_if(items, is);
}

// The number of answers equal to f16's. Both answered the same questions in the same order.
template <class Items>
std::size_t n_same(const Items& items, const Items& base) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < std::min(items.size(), base.size()); ++i) {
    if (items[i].answer == base[i].answer) ++n;
  }
  return n;
}

Json divergence_of(const ArmResult& found, bool is_base) {
  if (found.divergence.empty()) return {};
  Json depths = Json::array();
  for (const DepthFigures& figures : found.divergence) {
    depths.push_back(json_of(figures));
    if (is_base) depths.back()["divergence"] = nullptr;
    if (figures.decoded.n_tokens == 0) depths.back()["decoded"] = nullptr;
  }
  return depths;
}

Json needles_of(const std::vector<NeedleAnswer>& answers, const std::vector<NeedleAnswer>& base) {
  if (answers.empty()) return {};
  Json grid = Json::array();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const NeedleAnswer& answer = answers[i];
    auto cell = std::ranges::find_if(grid, [&](const Json& one) {
      return one["kind"] == answer.kind && one["depth"] == answer.depth &&
             one["position"] == answer.position;
    });
    if (cell == grid.end()) {
      grid.push_back({{"kind", answer.kind},
                      {"depth", answer.depth},
                      {"position", answer.position},
                      {"n", 0},
                      {"n_right", 0},
                      {"n_same", 0}});
      cell = grid.end() - 1;
    }
    const auto add = [&](const char* key, bool is) {
      (*cell)[key] = (*cell)[key].get<int>() + (is ? 1 : 0);
    };
    add("n", true);
    add("n_right", answer.right);
    add("n_same", i < base.size() && base[i].answer == answer.answer);
  }
  return {{"n", answers.size()},
          {"n_right", count(answers, &NeedleAnswer::right)},
          {"n_same", n_same(answers, base)},
          {"grid", std::move(grid)},
          {"answers", json_of(answers)}};
}

Json tool_calls_of(const std::vector<ToolCallOutcome>& calls,
                   const std::vector<ToolCallOutcome>& base) {
  if (calls.empty()) return {};
  return {{"n", calls.size()},
          {"n_calls", count(calls, &ToolCallOutcome::is_call)},
          {"n_valid", count(calls, &ToolCallOutcome::valid)},
          {"n_as_expected", count(calls, &ToolCallOutcome::as_expected)},
          {"n_same", n_same(calls, base)},
          {"answers", json_of(calls)}};
}

Json schemas_of(const std::vector<SchemaOutcome>& schemas) {
  if (schemas.empty()) return {};
  return {{"n", schemas.size()},
          {"n_valid", count(schemas, &SchemaOutcome::valid)},
          {"answers", json_of(schemas)}};
}

Json drift_of(const ArmResult& found, const ArmResult& base, int n_tokens) {
  if (found.continuations.empty()) return {};
  std::vector<int> places;
  for (std::size_t i = 0; i < found.continuations.size(); ++i) {
    places.push_back(first_difference(base.continuations.at(i), found.continuations[i]));
  }
  return {{"n_tokens", n_tokens}, {"first_differences", places}, {"median", median(places)}};
}

Json scheme_of(const SchemeResult& scheme, const ArmResult& base, const ArmOptions& options) {
  const bool is_base = scheme.kv == "f16";
  const Result<KvScheme> kv = parse_kv_scheme(scheme.kv);
  const ArmResult& found = scheme.found;
  Json json = {{"kv", scheme.kv},
               {"bits_per_value", kv ? Json(kv->bits_per_element()) : Json()},
               {"error", scheme.error.empty() ? Json() : Json(scheme.error)},
               {"verdict", scheme.judgement ? Json(name(scheme.judgement->verdict)) : Json()},
               {"reason", scheme.judgement ? Json(scheme.judgement->reason) : Json()},
               {"seconds", found.seconds},
               {"notes", found.notes}};
  json["divergence"] = divergence_of(found, is_base);
  json["needles"] = needles_of(found.needles, base.needles);
  json["tool_calls"] = tool_calls_of(found.tool_calls, base.tool_calls);
  json["schemas"] = schemas_of(found.schemas);
  json["work"] = work_of(found.work, base.work);
  json["drift"] = drift_of(found, base, options.n_drift_tokens);
  return json;
}

Json to_json(const Thresholds& limit) {
  return {{"kl_mean", limit.kl_mean}, {"same_top", limit.same_top}};
}

Result<void> write_file(const std::filesystem::path& path, const std::string& text) {
  const Result<UniqueFd> file = open_file(path.string(), O_WRONLY | O_CREAT | O_TRUNC);
  if (!file) return std::unexpected(file.error());
  return write_exactly(file->get(), std::as_bytes(std::span(text)));
}

}  // namespace

Json make_report(std::span<const SchemeResult> schemes, const ArmOptions& options,
                 const Surroundings& surroundings) {
  const ArmResult& base = schemes.front().found;
  Json all = Json::array();
  for (const SchemeResult& scheme : schemes) all.push_back(scheme_of(scheme, base, options));
  return {
      {"format", "slipstream-quality"},
      {"version", 1},
      {"created", surroundings.created},
      {"slipstream", surroundings.slipstream},
      {"llama_cpp", surroundings.llama_cpp},
      {"ggml", surroundings.ggml},
      {"cpu", surroundings.cpu},
      {"n_cpus", surroundings.n_cpus},
      {"model",
       {{"file", std::filesystem::path(options.model).filename().string()},
        {"bytes", surroundings.model_bytes},
        {"fingerprint", surroundings.model_fingerprint}}},
      {"options",
       {{"depths", base.depths},
        {"n_chunks", options.n_chunks},
        {"text", options.text.empty() ? "built in"
                                      : std::filesystem::path(options.text).filename().string()},
        {"keys", options.key_profile.empty() ? "rotated" : "fitted"},
        {"tasks", options.tasks},
        {"n_decoded", options.n_decoded},
        {"n_needle_texts", options.n_needle_texts},
        {"needle_kinds", options.needle_kinds},
        {"n_tool_calls", options.n_tool_calls},
        {"n_drift_prompts", options.n_drift_prompts},
        {"n_drift_tokens", options.n_drift_tokens},
        {"n_work_tasks", options.n_work_tasks},
        {"n_threads", options.n_threads}}},
      {"thresholds", {{"fine_up_to", to_json(kFineUpTo)}, {"broken_from", to_json(kBrokenFrom)}}},
      {"schemes", std::move(all)}};
}

Result<void> write_report(const Json& report, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail_errno(error.value(), format_text("cannot make {}", folder.string()));
  const std::array<std::pair<const char*, std::string>, 3> files = {
      {{"quality.json", report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"},
       {"quality.csv", report_as_csv(report)},
       {"quality.md", report_as_markdown(report)}}};
  for (const auto& [file, text] : files) {
    if (Result<void> written = write_file(folder / file, text); !written) return written;
  }
  for (const bench::Picture& picture : report_pictures(report)) {
    Result<void> written = write_file(folder / picture.file, picture.svg);
    if (!written) return written;
  }
  return {};
}

}  // namespace slipstream::quality
