// A process of its own for tests of saved sequences, and for their speed.
//
// Reads a prompt but for its last token, or restores it from a file; may save it, and clear and
// restore it; then reads the last token and generates. So every run computes the same from the last
// token on, whichever way the cache was filled. Prints tokens as JSON; --speed prints a table.
#include <llama.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <print>
#include <string>
#include <vector>

#include "base/format.h"
#include "engine/model/model.h"
#include "engine/state/packed_state.h"

namespace slipstream {
namespace {

using Bytes = std::vector<std::byte>;

struct Options {
  ModelOptions model;
  std::string prompt_path;
  std::string other_path;
  std::string save_path;
  std::string restore_path;
  std::string logits_path;
  std::vector<Token> forced;
  bool is_plain = false;
  bool is_cleared = false;
  bool is_moved = false;
  int n_generate = 48;
  int n_prompt_max = 1 << 20;
  int n_speed_runs = 0;
};

[[noreturn]] void give_up(const std::string& message) {
  std::println(stderr, "state_probe: {}", message);
  std::exit(1);
}

template <typename T>
T expect(Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) give_up("cannot read " + path);
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(chars));
  return {bytes.begin(), bytes.end()};
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) give_up("cannot write " + path);
}

class Probe {
 public:
  Probe(const Options& options, Model model) : options_(options), model_(std::move(model)) {}

  [[nodiscard]] std::vector<Token> tokens_of(const std::string& path) const {
    const Bytes text = read_file(path);
    std::vector<Token> tokens(text.size() + 2);
    const int n = llama_tokenize(model_.vocab(), reinterpret_cast<const char*>(text.data()),
                                 static_cast<int>(text.size()), tokens.data(),
                                 static_cast<int>(tokens.size()), true, true);
    if (n < 2) give_up("no tokens in " + path);
    tokens.resize(static_cast<std::size_t>(std::min(n, options_.n_prompt_max)));
    return tokens;
  }

  void read(std::span<const Token> tokens, SeqId seq, llama_pos pos) {
    const auto n_batch = static_cast<std::size_t>(options_.model.n_step_tokens_max);
    for (; !tokens.empty(); tokens = tokens.subspan(std::min(n_batch, tokens.size()))) {
      const std::span<const Token> part = tokens.first(std::min(n_batch, tokens.size()));
      llama_batch batch = llama_batch_init(static_cast<int>(part.size()), 0, 1);
      for (const Token token : part) {
        const auto i = static_cast<std::size_t>(batch.n_tokens++);
        batch.token[i] = token;
        batch.pos[i] = pos++;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = seq;
        batch.logits[i] = static_cast<std::int8_t>(i + 1 == part.size());
      }
      const int status = llama_decode(model_.context(), batch);
      llama_batch_free(batch);
      if (status != 0) give_up("libllama does not decode");
    }
  }

  [[nodiscard]] Bytes save() const {
    if (!options_.is_plain) return expect(states_.save(model_.context(), 0));
    Bytes bytes(llama_state_seq_get_size(model_.context(), 0));
    llama_state_seq_get_data(model_.context(), reinterpret_cast<std::uint8_t*>(bytes.data()),
                             bytes.size(), 0);
    return bytes;
  }

  void restore(const Bytes& bytes) const {
    if (!options_.is_plain) {
      const Result<void> restored = states_.restore(model_.context(), 0, bytes);
      if (restored) return;
      give_up(format_text("{}; the sequence ends at {}", restored.error().message,
                          llama_memory_seq_pos_max(llama_get_memory(model_.context()), 0)));
    }
    if (llama_state_seq_set_data(model_.context(),
                                 reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
                                 0) != bytes.size()) {
      give_up("libllama does not restore");
    }
  }

  void clear(bool with_data) const {
    llama_memory_clear(llama_get_memory(model_.context()), with_data);
  }

  // From the last token of the prompt on; the tokens that were forced, or the most probable ones.
  std::vector<Token> generate(Token token, llama_pos pos) {
    std::ofstream logits_file;
    if (!options_.logits_path.empty()) logits_file.open(options_.logits_path, std::ios::binary);
    const auto n_vocab = static_cast<std::size_t>(llama_vocab_n_tokens(model_.vocab()));
    std::vector<Token> generated;
    for (int i = 0; i < options_.n_generate; ++i) {
      read({&token, 1}, 0, pos++);
      const std::span logits(llama_get_logits_ith(model_.context(), -1), n_vocab);
      logits_file.write(reinterpret_cast<const char*>(logits.data()),
                        static_cast<std::streamsize>(logits.size_bytes()));
      token = options_.forced.empty()
                  ? static_cast<Token>(std::ranges::max_element(logits) - logits.begin())
                  : options_.forced.at(static_cast<std::size_t>(i));
      generated.push_back(token);
    }
    return generated;
  }

  // Best of several runs, in milliseconds.
  template <typename Run>
  [[nodiscard]] double best_ms(const Run& run) const {
    double best = 1e9;
    for (int i = 0; i < options_.n_speed_runs; ++i) {
      const auto start = std::chrono::steady_clock::now();
      run();
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      best = std::min(best, took.count());
    }
    return best;
  }

  void measure(std::size_t n_tokens) {
    std::println("{} tokens, {}", n_tokens, options_.model.kv);
    for (const bool is_plain : {true, false}) {
      options_.is_plain = is_plain;
      Bytes bytes;
      const double save_ms = best_ms([&] { bytes = save(); });
      clear(true);  // centres too: the first time codes are taken over
      const double first_ms = best_ms([&] {
        clear(true);
        restore(bytes);
      });
      const double again_ms = best_ms([&] { restore(bytes); });
      std::println(
          "{:8} {:8.2f} MB  save {:8.1f} ms {:6.0f} MB/s  restore into an empty cache {:8.1f} ms, "
          "again {:8.1f} ms",
          is_plain ? "f16 rows" : "packed", static_cast<double>(bytes.size()) / 1e6, save_ms,
          static_cast<double>(bytes.size()) / 1e3 / save_ms, first_ms, again_ms);
    }
  }

  void run() {
    const std::vector<Token> prompt = tokens_of(options_.prompt_path);
    const std::span<const Token> most = std::span(prompt).first(prompt.size() - 1);
    // Another text that has given the cache its centre.
    if (!options_.other_path.empty()) {
      read(tokens_of(options_.other_path), 1, 0);
      llama_memory_seq_rm(llama_get_memory(model_.context()), 1, -1, -1);
    }
    if (options_.restore_path.empty()) {
      read(most, 0, 0);
    } else {
      restore(read_file(options_.restore_path));
    }
    if (options_.n_speed_runs > 0) return measure(most.size());
    if (options_.is_cleared || options_.is_moved) {
      const Bytes bytes = save();
      clear(options_.is_cleared);
      if (options_.is_moved) read(std::span(prompt).first(5), 1, 0);  // takes the first cells
      restore(bytes);
    }
    if (!options_.save_path.empty()) write_file(options_.save_path, save());
    const std::vector<Token> tokens =
        generate(prompt.back(), static_cast<llama_pos>(prompt.size() - 1));
    std::print("[");
    for (std::size_t i = 0; i < tokens.size(); ++i)
      std::print("{}{}", i == 0 ? "" : ",", tokens[i]);
    std::println("]");
  }

 private:
  Options options_;
  Model model_;
  PackedState states_;  // after the model, which loads the plugin
};

int run(int n_arguments, char** arguments) {
  Options options;
  options.model.kv = "turbo4";
  options.model.n_sequences_max = 2;
  options.model.n_outputs_max = 2;  // libllama wants one for each sequence
  options.model.n_threads = 1;
  CLI::App app("saves and restores sequences");
  app.add_option("model", options.model.path)->required();
  app.add_option("--plugin", options.model.plugin);
  app.add_option("--kv", options.model.kv);
  app.add_option("--threads", options.model.n_threads);
  app.add_option("--cells", options.model.n_cells);
  app.add_option("--prompt", options.prompt_path, "a text file")->required();
  app.add_option("--prompt-max", options.n_prompt_max, "at most so many tokens of it");
  app.add_option("--other", options.other_path, "a text that is read and forgotten before");
  app.add_option("--save", options.save_path);
  app.add_option("--restore", options.restore_path, "instead of reading the prompt");
  app.add_flag("--plain", options.is_plain, "libllama's state as it is");
  app.add_flag("--clear", options.is_cleared, "save, clear the cache, restore");
  app.add_flag("--move", options.is_moved, "save, restore at other cells");
  app.add_option("--generate", options.n_generate);
  app.add_option("--force", options.forced, "tokens instead of the most probable")->delimiter(',');
  app.add_option("--logits", options.logits_path, "f32 of every token are written here");
  app.add_option("--speed", options.n_speed_runs, "runs");
  CLI11_PARSE(app, n_arguments, arguments);
  Probe(options, expect(Model::load(options.model))).run();
  return 0;
}

}  // namespace
}  // namespace slipstream

int main(int n_arguments, char** arguments) { return slipstream::run(n_arguments, arguments); }
