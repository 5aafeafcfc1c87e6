#include "cli/hub/show.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/memory_info.h"
#include "cli/hub/find_model.h"
#include "cli/kv_choice.h"
#include "cli/kv_profile.h"
#include "cli/plugin_path.h"
#include "engine/forecast/kv_choice.h"
#include "engine/model/model.h"

namespace slipstream::show {
namespace {

constexpr const char* kTemplateKey = "tokenizer.chat_template";
constexpr std::size_t kTemplateLinesShown = 5;
constexpr std::size_t kTemplateColumnsShown = 80;

void print(std::string_view topic, const std::string& value) {
  std::printf("%s\n", format_text("{:<14}{}", topic, value).c_str());
}

// A file may contain anything, and a terminal obeys control characters.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return text;
}

std::string first_columns(const std::string& line) {
  if (line.size() <= kTemplateColumnsShown) return line;
  std::size_t end = kTemplateColumnsShown;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;  // UTF-8
  return line.substr(0, end) + " ...";
}

// "7.62 B (7615616512)"
std::string format_parameters(const GgufModel& model) {
  double n = 0;
  for (const GgufTensor& tensor : model.tensors()) {
    double n_elements = 1;
    for (const std::int64_t extent : tensor.ne) n_elements *= static_cast<double>(extent);
    n += n_elements;
  }
  const bool is_large = n >= 1e9;
  return format_text("{:.2f} {} ({:.0f})", is_large ? n / 1e9 : n / 1e6, is_large ? "B" : "M", n);
}

// "q8_0 98 %, f32 2 %": the types of the weights by their share of the bytes, largest first.
std::string format_types(const GgufModel& model) {
  std::map<std::string, std::uint64_t> bytes_of;
  std::uint64_t n_bytes = 0;
  for (const GgufTensor& tensor : model.tensors()) {
    bytes_of[ggml_type_name(tensor.type)] += tensor.n_bytes;
    n_bytes += tensor.n_bytes;
  }
  std::vector<std::pair<std::uint64_t, std::string>> shares;
  for (const auto& [type, bytes] : bytes_of) shares.emplace_back(bytes, type);
  std::ranges::sort(shares, std::ranges::greater());
  std::string text;
  for (const auto& [bytes, type] : shares) {
    text += format_text("{}{} {:.0f} %", text.empty() ? "" : ", ", type,
                        100.0 * static_cast<double>(bytes) / static_cast<double>(n_bytes));
  }
  return text;
}

std::string format_files(const GgufModel& model) {
  std::uint64_t n_bytes = 0;
  for (const std::filesystem::path& file : model.files()) {
    std::error_code error;
    const std::uint64_t file_bytes = std::filesystem::file_size(file, error);
    if (!error) n_bytes += file_bytes;
  }
  return format_text(
      "{}{}, {}", model.files().front().string(),
      model.files().size() == 1 ? "" : format_text(" and {} more", model.files().size() - 1),
      format_bytes(n_bytes));
}

void print_template(const GgufModel& model) {
  const std::string source = model.text(kTemplateKey).value_or("");
  if (source.empty()) {
    print("template", "none: completions only, no chats");
    return;
  }
  const auto n_lines = static_cast<std::size_t>(std::ranges::count(source, '\n')) + 1;
  print("template",
        format_text("{} bytes in {} lines; --template prints it", source.size(), n_lines));
  std::size_t start = 0;
  for (std::size_t i = 0; i < std::min(n_lines, kTemplateLinesShown); ++i) {
    const std::size_t end = std::min(source.find('\n', start), source.size());
    print("", "| " + printable(first_columns(source.substr(start, end - start))));
    start = end + 1;
  }
  if (n_lines > kTemplateLinesShown) print("", "| ...");
}

// The largest context with each scheme, and the memory that it takes.
Result<void> print_fit(const std::filesystem::path& path) {
  load_backends();
  const Result<ModelProfile> profile = read_profile(path);
  if (!profile) return std::unexpected(profile.error());
  const Result<std::uint64_t> available = available_memory();
  if (!available) return std::unexpected(available.error());
  const bool has_plugin = find_turbo_plugin().has_value();
  print("memory",
        format_text("{} are available; the largest context that fits:", format_bytes(*available)));
  bool fits = false;
  for (const char* name : {"turbo8v4", "turbo4", "turbo3", "f16", "q8_0"}) {
    const Result<KvScheme> scheme = parse_kv_scheme(name);
    if (!scheme) return std::unexpected(scheme.error());
    if (scheme->is_turbo() && !has_plugin) continue;
    if (!check_cache(profile->geometry, *scheme)) continue;  // libllama refuses it
    ContextShape shape;
    const Result<std::int64_t> n_ctx = largest_context(*profile, *scheme, *available, shape);
    if (!n_ctx) return std::unexpected(n_ctx.error());
    if (*n_ctx == 0) {
      print("", format_text("--kv {:<9} none", name));
      continue;
    }
    fits = true;
    shape.n_ctx = *n_ctx;
    const Result<MemoryForecast> needs = forecast(*profile, *scheme, shape);
    if (!needs) return std::unexpected(needs.error());
    print("", format_text("--kv {:<9} {:>7} tokens{}, {} in all, KV {}", name, *n_ctx,
                          *n_ctx >= profile->geometry.n_ctx_train ? " (all)" : "",
                          format_bytes(needed_bytes(*needs)), format_bytes(needs->kv_bytes)));
  }
  if (const Result<KvPlan> plan =
          plan_kv(path, {}, {}, {.available_bytes = *available}, {.prompts = "off"})) {
    print("", format_text("without --ctx: {} tokens ({}), --kv {}", plan->n_context,
                          plan->why_context, plan->scheme));
  }
  if (!fits && profile->weights.experts > 0) {
    print("", "its experts can be streamed: --stream-experts, see slipstream doctor MODEL");
  } else if (!fits) {
    print("", "it does not fit: choose a smaller quant or a smaller model");
  }
  return {};
}

// What calibrate measured, best first. The list of what fits only counts bytes.
void print_profile(const std::filesystem::path& path) {
  const std::optional<calibrate::Profile> profile = find_kv_profile(path, {});
  if (!profile) {
    print("calibrated", "no: slipstream calibrate measures which --kv this model tolerates");
    return;
  }
  const calibrate::Evidence& evidence = profile->evidence;
  print("calibrated", format_text("the smallest it tolerates is --kv {}, {:.0f} bytes per token",
                                  evidence.chosen, evidence.bytes_per_token));
  const calibrate::KeyFitting& keys = evidence.probe.key_fitting;
  if (keys.n_layers > 0) {
    print("", format_text("keys of {} layers are fitted, from {} tokens ({})", keys.n_layers,
                          keys.n_tokens, profile->keys.string()));
  } else {
    print("", "its keys could not be fitted");
  }
  if (evidence.attend && !evidence.attend->chosen.empty()) {
    print("", format_text("for a context of up to {} tokens --kv auto takes --kv {}",
                          evidence.attend->depth_max, evidence.attend->chosen));
  } else if (evidence.attend) {
    print("", "a query has to read all tokens, as far as was measured");
  }
  print("", "mean KL divergence from f16; --kv auto takes the first turbo scheme that fits:");
  for (const calibrate::SchemeEvidence& scheme : measured_schemes(evidence)) {
    print("", format_text("--kv {:<9} {:.5f}, the same top token in {:.1f} %", scheme.kv, scheme.kl,
                          100 * scheme.same_top));
  }
}

Result<void> try_show(const Options& options) {
  const Result<std::filesystem::path> path = find_model(options.model);
  if (!path) return std::unexpected(path.error());
  const Result<GgufModel> model = GgufModel::open(*path);
  if (!model) return std::unexpected(model.error());
  if (options.shows_template_only) {
    const std::optional<std::string> source = model->text(kTemplateKey);
    if (!source) {
      return fail(Code::kNotFound, format_text("{} has no chat template", path->string()));
    }
    std::printf("%s\n", source->c_str());
    return {};
  }
  print("model", printable(model->text("general.name").value_or(path->stem().string())));
  print("file", format_files(*model));
  print("architecture", format_text("{}, {} layers, {} wide", printable(model->architecture()),
                                    model->integer("%s.block_count").value_or(0),
                                    model->integer("%s.embedding_length").value_or(0)));
  if (const std::int64_t n_experts = model->integer("%s.expert_count").value_or(0); n_experts > 0) {
    print("experts", format_text("{}, of which a token uses {}", n_experts,
                                 model->integer("%s.expert_used_count").value_or(0)));
  }
  print("parameters", format_parameters(*model));
  print("weights", format_types(*model));
  print("context", format_text("{} tokens", model->integer("%s.context_length").value_or(0)));
  print_template(*model);
  if (Result<void> printed = print_fit(*path); !printed) {
    // The rest is still printed if the forecast does not know the architecture.
    print("memory", "no forecast: " + printed.error().message);
  }
  print_profile(*path);
  return {};
}

}  // namespace

int run(const Options& options) {
  const Result<void> shown = try_show(options);
  if (shown) return 0;
  std::fprintf(stderr, "slipstream show: %s\n", shown.error().message.c_str());
  return 1;
}

}  // namespace slipstream::show
