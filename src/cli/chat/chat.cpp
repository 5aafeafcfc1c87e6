#include "cli/chat/chat.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "cli/chat/conversation.h"
#include "cli/chat/interrupts.h"
#include "cli/chat/local_server.h"
#include "cli/hub/offer_pull.h"

namespace slipstream::chat {
namespace {

constexpr int kNothingNamed = 2;

Result<int> talk(const Options& options, const std::string& url, const std::string& api_key) {
  ChatClient client(url, api_key);
  const Result<ServerModel> model = client.find_model(options.model_name);
  if (!model) return std::unexpected(model.error());
  Session session(model->name);
  session.set_system(options.system);
  if (options.temperature) {
    const auto set = session.set("temperature", format_text("{}", *options.temperature));
    if (!set) return std::unexpected(set.error());
  }
  if (options.n_tokens_max) {
    const auto set = session.set("max_tokens", format_text("{}", *options.n_tokens_max));
    if (!set) return std::unexpected(set.error());
  }
  Conversation conversation(client, *model, session);
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {
    conversation.run();
    return 0;
  }
  std::string question{std::istreambuf_iterator(std::cin), std::istreambuf_iterator<char>()};
  while (question.ends_with('\n')) question.pop_back();
  if (question.empty()) {
    return fail(Code::kInvalidArgument, "standard input is empty: write a question into it");
  }
  return conversation.answer_once(std::move(question)) ? 0 : 1;
}

Result<int> try_chat(const Options& options) {
  if (options.server.empty()) {  // before Ctrl-C means something else than the end
    const Result<void> installed = install_missing({options.local.model}, options.local.is_sure);
    if (!installed) return std::unexpected(installed.error());
  }
  const Interrupts interrupts;
  if (!options.server.empty()) return talk(options, options.server, options.api_key);
  log::set_level(log::Level::kWarn);  // the server's log would disturb the conversation
  const Result<LocalServer> server = LocalServer::start(options.local, Interrupts::happened);
  if (!server) return std::unexpected(server.error());
  return talk(options, server->url(), server->api_key());
}

}  // namespace

int chat(const Options& options) {
  if (options.server.empty() && options.local.model.empty()) {
    std::fputs("slipstream chat: name a GGUF file, an installed model, or a server with --server\n",
               stderr);
    return kNothingNamed;
  }
  const Result<int> status = try_chat(options);
  if (status) return *status;
  std::fprintf(stderr, "slipstream chat: %s\n", status.error().message.c_str());
  return 1;
}

}  // namespace slipstream::chat
