// `slipstream chat [MODEL]`: a conversation in the terminal, with a model of this machine or with
// any server that speaks OpenAI's API (docs/chat.md).
#pragma once

#include <optional>
#include <string>

#include "cli/serve/serve.h"

namespace CLI {
class App;
}

namespace slipstream::chat {

struct Options {
  serve::Options local;  // how its model is loaded
  std::string server;    // the address of one instead
  std::string api_key;
  std::string model_name;  // of the server's models; empty: its first
  std::string system;
  std::optional<double> temperature;  // else the server's
  std::optional<int> n_tokens_max;
};

class Command {
 public:
  explicit Command(CLI::App& app);
  // The exit status; nothing if it was not asked for.
  [[nodiscard]] std::optional<int> run() const;

 private:
  Options options_;
  CLI::App* chat_;
};

// 0: done; 1: no answer could be had; 2: neither a model nor a server was named.
int chat(const Options& options);

}  // namespace slipstream::chat
