#include "cli/foreign_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/format.h"

namespace slipstream {
namespace {

using std::string_view;

struct ForeignFlag {
  string_view name;
  string_view own;  // empty: MODEL, which has no flag
};

constexpr auto kAliases = std::to_array<ForeignFlag>({
    {"-m", ""},
    {"--model", ""},
    {"-hf", ""},
    {"-hfr", ""},
    {"--hf-repo", ""},
    {"--ctx-size", "--ctx"},
    {"--max-model-len", "--ctx"},
    {"-np", "--parallel"},
    {"--max-num-seqs", "--parallel"},
    {"-a", "--name"},
    {"--alias", "--name"},
    {"--served-model-name", "--name"},
    {"--predict", "--max-tokens"},
    {"--n-predict", "--max-tokens"},
    {"--temperature", "--temp"},
    {"-s", "--seed"},
    {"-sys", "--system"},
    {"--system-prompt", "--system"},
});

// What these turn on, we have without being asked.
constexpr auto kAlwaysOn = std::to_array<string_view>({
    "--jinja",
    "--metrics",
    "--slots",
    "-cb",
    "--cont-batching",
    "-kvu",
    "--kv-unified",
    "--cache-prompt",
    "--mmap",
    "--enable-prefix-caching",
    "--enable-chunked-prefill",
    "--enable-auto-tool-choice",
});

struct Hint {
  std::array<string_view, 4> names;  // the rest may be empty
  string_view instead;
};

constexpr auto kHints = std::to_array<Hint>({
    {{"-ngl", "--gpu-layers", "--n-gpu-layers"}, "no GPU is used here: leave it out"},
    {{"-sm", "--split-mode", "-mg", "--main-gpu"}, "no GPU is used here: leave it out"},
    {{"-tp", "--tensor-parallel-size"}, "no GPU is used here; --rpc deals layers over machines"},
    {{"--gpu-memory-utilization"}, "--memory limits what all models take together"},
    {{"-fa", "--flash-attn"}, "flash attention is always used: leave it out"},
    {{"-ctk", "--cache-type-k", "-ctv", "--cache-type-v"},
     "--kv is for keys and values, such as --kv q8_0 or --kv turbo8v4"},
    {{"--kv-cache-dtype"}, "--kv says how the cache is stored, such as --kv turbo8v4"},
    {{"-b", "--batch-size", "-ub", "--ubatch-size"}, "steps have a fixed size: leave it out"},
    {{"--max-num-batched-tokens"}, "steps have a fixed size: leave it out"},
    {{"--lora", "--lora-scaled", "--enable-lora", "--lora-modules"}, "there are no adapters here"},
    {{"-mmu", "--mmproj-url"}, "--mmproj takes a file: download it first"},
    {{"--no-mmap", "--mlock"}, "weights are mapped or copied as is faster: leave it out"},
    {{"--tool-call-parser", "--reasoning-parser", "--reasoning-format"},
     "the model's chat template decides: leave it out"},
    {{"--chat-template", "--chat-template-file"}, "the model's own chat template is used"},
    {{"--dtype", "-q", "--quantization"}, "weights are as in the GGUF file: leave it out"},
    {{"--api-key-file"}, "--keys takes a file of keys, in JSON"},
    {{"--embedding", "--pooling", "--rerank", "--reranking"},
     "leave it out for embedding models and rerankers; --embeddings TOKENS for other models"},
    {{"--draft", "--draft-max", "--draft-min", "--spec-type"},
     "--speculate auto decides itself, also with --draft-model"},
    {{"--speculative-config"}, "--speculate auto, with --draft-model FILE for a small model"},
    {{"-to", "--timeout"}, "limits on time are fixed (docs/security.md)"},
    {{"--ssl-key-file", "--ssl-cert-file", "--ssl-keyfile", "--ssl-certfile"},
     "there is no TLS here: put a proxy in front"},
    {{"-cmoe", "--cpu-moe", "-ncmoe", "--n-cpu-moe"},
     "--stream-experts leaves experts in the file, if they do not fit into memory"},
    {{"-hft", "--hf-token"}, "the variable HF_TOKEN has the token"},
    {{"--download-dir"}, "the variable HF_HUB_CACHE names the directory"},
    {{"--slot-save-path", "--cache-ram", "-cram"}, "--kv-disk DIR keeps prompts on disk"},
    {{"--allowed-origins"}, "--cors-origin names one; it may be given more than once"},
    {{"--no-webui", "--webui"}, "the web app is always there: leave it out"},
    {{"--top-k", "--top-p", "--min-p", "--repeat-penalty"},
     "each request to a server says it; run and chat take --temp"},
});

bool looks_like_flag(string_view word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '.' && (word[1] < '0' || word[1] > '9');
}

string_view flag_of(string_view word) { return word.substr(0, word.find('=')); }

const CLI::Option* option_of(const CLI::App& command, string_view name) {
  return command.get_option_no_throw(std::string(name));
}

bool takes_value(const CLI::App& command, string_view word) {
  if (word.contains('=')) return false;
  const CLI::Option* option = option_of(command, word);
  return option != nullptr && option->get_items_expected_min() > 0;
}

const ForeignFlag* alias_of(const CLI::App& command, string_view name) {
  if (option_of(command, name) != nullptr) return nullptr;  // it means something else here
  const auto* alias = std::ranges::find(kAliases, name, &ForeignFlag::name);
  if (alias == kAliases.end()) return nullptr;
  const bool is_there = alias->own.empty() || option_of(command, alias->own) != nullptr;
  return is_there ? alias : nullptr;
}

// How many letters differ, where two neighbours that changed places are one difference.
std::size_t distance(string_view a, string_view b) {
  std::vector<std::size_t> before;
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = std::move(last);
    last = std::move(row);
  }
  return last[b.size()];
}

// The command's flag that is spelled most alike; empty if none is.
std::string nearest(const CLI::App& command, string_view name) {
  std::string best;
  std::size_t least = 2 + (name.size() / 6);  // two letters, and more of a long name
  const auto look_at = [&](string_view candidate, string_view meant) {
    const std::size_t n = distance(name, candidate);
    if (n >= least) return;
    least = n;
    best = meant;
  };
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // not in --help
    for (const std::string& own : option->get_lnames()) look_at("--" + own, "--" + own);
  }
  for (const ForeignFlag& alias : kAliases) {
    if (alias_of(command, alias.name) == nullptr || alias.own.empty()) continue;
    look_at(alias.name, alias.own);
  }
  return best;
}

std::string explain_one(const CLI::App& command, string_view name) {
  const auto* hint = std::ranges::find_if(
      kHints, [&](const Hint& one) { return std::ranges::contains(one.names, name); });
  if (hint != kHints.end()) return format_text("{}: {}", name, hint->instead);
  const std::string near = nearest(command, name);
  if (near.empty()) return format_text("{}: there is no such flag", name);
  return format_text("{}: there is no such flag; did you mean {}?", name, near);
}

}  // namespace

std::vector<std::string> in_own_words(const CLI::App& app,
                                      const std::vector<std::string>& arguments) {
  if (arguments.empty()) return {};
  const CLI::App* command = app.get_subcommand_no_throw(arguments.front());
  if (command == nullptr) return arguments;
  std::vector<std::string> words{arguments.front()};
  bool is_value = false;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (is_value || !looks_like_flag(word)) {
      words.push_back(word);
      is_value = false;
      continue;
    }
    if (word == "--") {
      words.insert(words.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                   arguments.end());
      break;
    }
    const string_view name = flag_of(word);
    if (const ForeignFlag* alias = alias_of(*command, name)) {
      const string_view value = string_view(word).substr(name.size());  // "=4096", or nothing
      if (!alias->own.empty()) {
        words.push_back(format_text("{}{}", alias->own, value));
        is_value = value.empty();
      } else if (!value.empty()) {
        words.emplace_back(value.substr(1));
      }
      continue;
    }
    if (std::ranges::contains(kAlwaysOn, name) && option_of(*command, name) == nullptr) continue;
    words.push_back(word);
    is_value = takes_value(*command, word);
  }
  return words;
}

std::string explain_unknown(const CLI::App& command, const std::vector<std::string>& words) {
  std::string lines;
  for (const std::string& word : words) {
    if (!looks_like_flag(word) || word == "--") continue;
    lines += explain_one(command, flag_of(word)) + "\n";
  }
  return lines;
}

}  // namespace slipstream
