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
  serve::Options local;  // how the local model is loaded
  std::string server;    // address of a server to use instead
  std::string api_key;
  std::string model_name;  // one of the server's models; empty: its first
  std::string system;
  std::optional<double> temperature;  // otherwise the server's
  std::optional<int> n_tokens_max;
};

class Command {
 public:
  explicit Command(CLI::App& app);
  // The exit status; nullopt if the command was not given.
  [[nodiscard]] std::optional<int> run() const;

 private:
  Options options_;
  CLI::App* chat_;
};

// Returns 0 if done; 1 if no answer was received; 2 if neither a model nor a server was named.
int chat(const Options& options);

}  // namespace slipstream::chat
