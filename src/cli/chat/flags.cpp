#include <CLI/CLI.hpp>

#include "cli/chat/chat.h"
#include "cli/model_flags.h"

namespace slipstream::chat {

Command::Command(CLI::App& app) {
  chat_ = app.add_subcommand(
      "chat", "Talk with a model in the terminal; without a terminal, answer one prompt");
  CLI::Option* model = add_model_argument(*chat_, options_.local.model);
  add_yes_flag(*chat_, options_.local.is_sure);
  add_model_options(*chat_, options_.local.kv, options_.local.n_context, options_.local.n_threads);
  CLI::Option* server =
      chat_
          ->add_option(
              "--server", options_.server,
              "Talk with this server instead, any with OpenAI's API, such as http://127.0.0.1:8080")
          ->type_name("URL")
          ->excludes(model);
  chat_
      ->add_option("--model-name", options_.model_name,
                   "Which of the server's models (default: its first)")
      ->needs(server);
  chat_->add_option("--api-key", options_.api_key, "For the server")->envname("OPENAI_API_KEY");
  chat_->add_option("--system", options_.system, "The system prompt");
  chat_
      ->add_option("--temp", options_.temperature,
                   "Temperature; 0 always takes the most probable token")
      ->check(CLI::NonNegativeNumber);
  chat_->add_option("-n,--max-tokens", options_.n_tokens_max, "Tokens of an answer at most")
      ->check(CLI::PositiveNumber);
  add_rope_options(*chat_, options_.local.rope);
  add_weight_options(*chat_, options_.local.weights);
  add_disk_options(*chat_, options_.local.kv_disk, options_.local.kv_disk_bytes);
}

std::optional<int> Command::run() const {
  if (chat_->parsed()) return chat(options_);
  return std::nullopt;
}

}  // namespace slipstream::chat
