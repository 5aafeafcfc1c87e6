// slipstream: the command line. Parses flags, calls the command and returns its exit status: 0 for
// success, 1 if the command failed, 2 if the command line was wrong.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/server_load.h"
#include "cli/bench/speculation.h"
#include "cli/build_info.h"
#include "cli/calibrate/calibrate.h"
#include "cli/chat/chat.h"
#include "cli/doctor/doctor.h"
#include "cli/eval/eval.h"
#include "cli/foreign_flags.h"
#include "cli/hub/list.h"
#include "cli/hub/pull.h"
#include "cli/hub/rm.h"
#include "cli/hub/show.h"
#include "cli/index/index.h"
#include "cli/mcp/mcp.h"
#include "cli/model_flags.h"
#include "cli/run/run.h"
#include "cli/search/search.h"
#include "cli/serve/serve.h"
#include "contract/environment.h"

namespace {

using slipstream::add_disk_options;
using slipstream::add_model_argument;
using slipstream::add_model_options;
using slipstream::add_projector_option;
using slipstream::add_rope_options;
using slipstream::add_rpc_option;
using slipstream::add_speculation_options;
using slipstream::add_weight_options;
using slipstream::add_yes_flag;

constexpr int kUsageError = 2;

constexpr const char* kFooter =
    "Examples:\n"
    "  slipstream doctor               is this machine ready, and what would make it faster?\n"
    "  slipstream doctor --dir /data   the same, for models kept in /data\n"
    "  slipstream doctor MODEL.gguf    does it fit, and if not, what would streaming its experts "
    "do?\n"
    "  slipstream run MODEL.gguf -p \"Once upon a time\"\n"
    "  slipstream run MODEL.gguf -f book.txt --kv turbo4 --ctx 32768 -n 500\n"
    "  slipstream chat MODEL.gguf      a conversation in this terminal\n"
    "  slipstream serve                the web app on http://127.0.0.1:8080, which offers models "
    "to "
    "pull\n"
    "  slipstream serve MODEL.gguf     OpenAI's API on http://127.0.0.1:8080/v1\n"
    "  slipstream bench MODEL.gguf     how fast is each KV scheme here, against stock llama.cpp?\n"
    "  slipstream pull org/repo:Q4_K_M a model of huggingface.co; from then on org/repo:Q4_K_M is "
    "a MODEL\n"
    "  slipstream eval MODEL.gguf --kv turbo4,q4_0   how close to f16?\n"
    "  slipstream calibrate MODEL.gguf the smallest KV scheme it tolerates, for --kv auto\n"
    "  slipstream index add ~/src/linux\n"
    "  slipstream search where does the scheduler pick the next task\n";

CLI::App* add_run(CLI::App& app, slipstream::run::Options& options) {
  CLI::App* run = app.add_subcommand(
      "run", "Continue a prompt with a model, without a server; the text goes to standard output");
  add_model_argument(*run, options.model)->required();
  add_yes_flag(*run, options.is_sure);
  CLI::Option* prompt = run->add_option("-p,--prompt", options.prompt, "What to continue");
  CLI::Option* file = run->add_option("-f,--file", options.prompt_file,
                                      "The same, from a file; - is standard input");
  prompt->excludes(file);
  add_model_options(*run, options.kv, options.n_context, options.n_threads);
  run->add_option("-n,--max-tokens", options.n_tokens_max, "Tokens to generate at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  run->add_option("--temp", options.temperature,
                  "Temperature; 0 always takes the most probable token")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  run->add_option("--seed", options.seed, "A seed, to get the same text again");
  add_rope_options(*run, options.rope);
  add_weight_options(*run, options.weights);
  add_speculation_options(*run, options.speculate, options.draft);
  add_disk_options(*run, options.kv_disk, options.kv_disk_bytes);
  add_rpc_option(*run, options.rpc);
  return run;
}

CLI::App* add_pull(CLI::App& app, slipstream::pull::Options& options) {
  CLI::App* pull = app.add_subcommand(
      "pull", "Download a model from huggingface.co (or HF_ENDPOINT), verify and install it");
  pull->add_option("model", options.model,
                   "org/repo, or org/repo:quant; without a quant Q4_K_M, else Q8_0, else the first")
      ->required()
      ->type_name("ORG/REPO[:QUANT]");
  pull->add_option("--connections", options.n_connections, "Parts to download at the same time")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  pull->add_option("--retries", options.n_retries,
                   "How often to retry a part that makes no progress")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  return pull;
}

CLI::App* add_list(CLI::App& app, slipstream::list::Options& options) {
  CLI::App* list = app.add_subcommand("list", "Show the models that are installed");
  list->add_flag("--paths", options.shows_paths, "Show where each one is instead of its files");
  return list;
}

CLI::App* add_rm(CLI::App& app, slipstream::rm::Options& options) {
  CLI::App* rm = app.add_subcommand("rm", "Remove an installed model");
  rm->add_option("model", options.model, "org/repo:quant, or org/repo for all of its quants")
      ->required()
      ->type_name("ORG/REPO[:QUANT]");
  rm->add_flag("-y,--yes", options.is_sure, "Do not ask");
  return rm;
}

CLI::App* add_show(CLI::App& app, slipstream::show::Options& options) {
  CLI::App* show = app.add_subcommand(
      "show", "Describe a model, and say which contexts fit into memory with which KV scheme");
  add_model_argument(*show, options.model)->required();
  show->add_flag("--template", options.shows_template_only,
                 "Print its chat template and nothing else");
  return show;
}

CLI::App* add_serve(CLI::App& app, slipstream::serve::Options& options) {
  CLI::App* serve = app.add_subcommand("serve", "Serve an OpenAI-compatible API");
  serve
      ->add_option("MODEL", options.model,
                   "A GGUF file, or org/repo:quant of one that is installed, or can be pulled: "
                   "loaded at once, and stays; without any model, the web app offers some to pull, "
                   "as with --hub")
      ->type_name("MODEL");
  add_yes_flag(*serve, options.is_sure);
  serve->add_option("--name", options.name, "What clients call MODEL (default: the file's name)");
  serve
      ->add_option("--model", options.models,
                   "Another model, loaded when a client asks for it; may be given more than once")
      ->type_name("NAME=PATH");
  serve
      ->add_option("--pin", options.pinned,
                   "The name of a --model that is loaded at once and stays")
      ->type_name("NAME");
  serve->add_flag("--hub", options.uses_hub,
                  "Clients may use every model that is installed, and search the hub and pull from "
                  "it, as the web app does");
  serve
      ->add_option("--memory", options.memory_bytes_max,
                   "Memory for all models together, such as 12GiB; idle ones are unloaded to make "
                   "room (default: what is available at the start)")
      ->transform(CLI::AsSizeValue(false));
  serve
      ->add_option("--idle-timeout", options.idle_seconds_max,
                   "Seconds after which a --model that nobody uses is unloaded (0: when room is "
                   "needed)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  serve
      ->add_option("--host", options.host,
                   "The address to listen on; 0.0.0.0 lets other machines in")
      ->capture_default_str();
  serve->add_option("--port", options.port, "The port; 0 takes a free one")->capture_default_str();
  add_model_options(*serve, options.kv, options.n_context, options.n_threads);
  serve->add_option("--parallel", options.n_parallel, "Requests that are computed at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  serve
      ->add_option("--queue", options.n_queue,
                   "Requests that wait or are computed; one more is refused with 429")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  serve
      ->add_option(
          "--threads-http", options.n_http_threads,
          "Threads that read requests: JSON, templates, schemas, tokens; up to --queue requests "
          "wait for them, one more is refused with 503 (0: half as many as cores, at least 2)")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  serve
      ->add_option("--embeddings", options.n_embedding_tokens_max,
                   "Serve /v1/embeddings too, for texts of up to this many tokens; needs memory "
                   "for them beside the KV cache (default: none; embedding models and rerankers "
                   "read 2048, or what they were trained on)")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("TOKENS");
  serve
      ->add_option("--api-key", options.api_keys,
                   "A key that clients need; may be given more than once")
      ->envname("SLIPSTREAM_API_KEY");
  serve
      ->add_option("--keys", options.keys_file,
                   "A file of keys, each with a name, a priority, and limits on requests at a time "
                   "and tokens per minute; read again on SIGHUP")
      ->type_name("FILE");
  serve
      ->add_option(
          "--allow-host", options.hosts,
          "A host name that requests may use for this server; * for all (default: localhost; the "
          "machine's name and addresses, if others can reach it; all, if they need a key)")
      ->type_name("NAME");
  serve
      ->add_option("--cors-origin", options.origins,
                   "An origin whose pages may use this server, such as https://chat.example.org; * "
                   "for all (default: none)")
      ->type_name("ORIGIN");
  add_rope_options(*serve, options.rope);
  add_weight_options(*serve, options.weights);
  add_speculation_options(*serve, options.speculate, options.draft);
  add_projector_option(*serve, options.projector);
  add_disk_options(*serve, options.kv_disk, options.kv_disk_bytes);
  add_rpc_option(*serve, options.rpc);
  CLI::Option* responses =
      serve
          ->add_option("--responses-dir", options.responses_dir,
                       "Keep the answers of /v1/responses in this directory, for clients that go "
                       "on from one (default: the last 64 MiB of them, in memory)")
          ->type_name("DIR");
  serve
      ->add_option("--responses-size", options.responses_bytes,
                   "The limit of --responses-dir, such as 1GiB; the oldest is removed first")
      ->transform(CLI::AsSizeValue(false))
      ->needs(responses)
      ->default_str("256MiB");
  CLI::Option* overflow =
      serve
          ->add_option("--context-overflow", options.context_overflow,
                       "What happens to a chat that is longer than the context: refuse it, or "
                       "rescue it: its oldest turns leave, and what they said that a message asks "
                       "for comes back as text before it")
          ->check(CLI::IsMember({"refuse", "rescue"}))
          ->capture_default_str();
  serve
      ->add_option("--context-rescue-budget", options.n_recalled_max,
                   "With rescue: tokens that may come back for one message; 0: none (default: a "
                   "sixteenth of the context, in a small one 256 or an eighth)")
      ->check(CLI::Range(0, 1 << 20))
      ->needs(overflow)
      ->type_name("TOKENS");
  serve->add_flag(
      "--mcp", options.offers_mcp,
      "Offer the folders of the index at /mcp: whoever may ask can search and read them");
  serve
      ->add_option(
          "--mcp-project", options.mcp_folders,
          "With --mcp: only this folder, which is added to the index if it is not there; may be "
          "given more than once (default: all folders of the index)")
      ->type_name("FOLDER");
  serve->add_flag("--mcp-allow-add", options.mcp_clients_may_add,
                  "With --mcp: clients may add folders of this machine to the index");
  serve
      ->add_option("--retrieve", options.retrieve,
                   "Search this folder of the index for each message of a chat, and put what is "
                   "found before it; 'all' for all folders (default: for chats that ask for it)")
      ->type_name("FOLDER");
  serve
      ->add_option("--retrieve-budget", options.n_retrieved_tokens_max,
                   "Tokens that may be put before one message, at most a quarter of the context")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  slipstream::index::add_index_option(*serve, options.index);
  CLI::Option* attachments =
      serve
          ->add_option("--attachments", options.attachments_dir,
                       "Let clients attach files to their chats: texts of these are kept in this "
                       "directory, and found by that chat only (default: they cannot)")
          ->type_name("DIR");
  serve
      ->add_option("--attachments-size", options.attachments_bytes,
                   "The limit of --attachments, such as 4GiB; what does not fit is refused, and of "
                   "several keys each may have a quarter")
      ->transform(CLI::AsSizeValue(false))
      ->needs(attachments)
      ->default_str("1GiB");
  serve
      ->add_option("--attachments-days", options.attachments_days,
                   "Days without use after which the files of a chat are removed")
      ->check(CLI::Range(1, 36500))
      ->needs(attachments)
      ->capture_default_str();
  serve
      ->add_option("--drain-timeout", options.drain_seconds_max,
                   "Seconds that requests in progress have to end after SIGTERM")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  serve
      ->add_flag("--supervise", options.supervises,
                 "Serve in a child process and restart it when it crashes; clients wait meanwhile")
      ->envname("SLIPSTREAM_SUPERVISE");
  return serve;
}

CLI::App* add_bench(CLI::App& app, slipstream::bench::Options& options,
                    slipstream::bench::ServerLoadOptions& load) {
  CLI::App* bench =
      app.add_subcommand("bench",
                         "Measure the speed of KV schemes by depth and concurrency, against stock "
                         "llama.cpp in the same run; continues where it was interrupted");
  CLI::Option* model = add_model_argument(*bench, options.model);
  bench
      ->add_option("--kv", options.kv,
                   "The schemes, or auto; stock's f16 is always measured, with and without flash "
                   "attention and repacked weights, for comparison")
      ->delimiter(',')
      ->capture_default_str();
  bench
      ->add_option("--prompts", options.prompts,
                   "on: measure every scheme a second time, with our own kernels for prompts")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  bench
      ->add_option("--depth", options.depths,
                   "Tokens that are in the cache before timing begins, such as 0,1k,8k,32k")
      ->delimiter(',')
      ->capture_default_str();
  bench->add_option("--concurrency", options.n_sequences, "Sequences that decode together")
      ->delimiter(',')
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  bench->add_flag("--shared-prefix", options.has_shared,
                  "Measure several sequences a second time, sharing one prefix of that depth");
  CLI::Option* speculate =
      bench->add_flag("--speculate", options.is_of_speculation,
                      "Measure instead what drafts give to answers that repeat their prompt with "
                      "edits, and what they cost others (default: --kv auto, -n 256)");
  slipstream::add_draft_options(*bench, options.draft);
  bench
      ->add_option(
          "--draft-acceptance", options.draft_acceptance,
          "How often --draft-model is right with --speculate: what it says is replaced, since "
          "the answers are fixed")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  bench
      ->add_option("--computed-depth", options.computed_depth,
                   "Fill a deeper cache of one prefix by repeating the state of this many tokens")
      ->capture_default_str();
  bench
      ->add_option("--repeats", options.n_repeats,
                   "Repeats of every cell, in turns; the median counts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  bench->add_option("-t,--threads", options.n_threads, "Threads (0: one per core)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  bench->add_option("--prompt", options.n_prompt, "Tokens of the prompt that is timed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  bench->add_option("-n,--tokens", options.n_tokens, "Tokens that each sequence decodes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  bench->add_option("--text", options.text, "A text to take the tokens from (default: built in)")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  bench->add_option("--out", options.directory, "Where reports go (default: bench-MODEL)")
      ->type_name("DIR");
  slipstream::add_kv_memory_options(*bench, options.kv_memory_bytes, options.kv_memory_directory);
  add_rope_options(*bench, options.rope);
  CLI::Option* server =
      bench
          ->add_option("--server", load.url,
                       "Measure this server instead, any with OpenAI's API: latencies with "
                       "--concurrency clients, such as http://127.0.0.1:8080")
          ->type_name("URL")
          ->excludes(model)
          ->excludes(speculate);
  bench->add_option("--model-name", load.model, "Which of the server's models (default: its first)")
      ->needs(server);
  bench->add_option("--api-key", load.api_key, "For the server")
      ->envname("SLIPSTREAM_API_KEY")
      ->needs(server);
  bench
      ->add_option("--requests", load.n_requests,
                   "Requests at each concurrency (default: four per client, at least 16)")
      ->check(CLI::PositiveNumber)
      ->needs(server);
  bench
      ->add_option("--goodput", load.limits,
                   "Count answers within these limits, in milliseconds: ttft=500,tpot=50,e2e=10000")
      ->needs(server);
  return bench;
}

// A step says nothing of drafts, and a table of every scheme takes long.
void use_defaults_of_speculation(const CLI::App& bench, slipstream::bench::Options& options) {
  constexpr int kTokens = 256;
  if (bench.count("--kv") == 0) options.kv = {"auto"};
  if (bench.count("--tokens") == 0) options.n_tokens = kTokens;
}

int run_bench(const slipstream::bench::Options& options,
              slipstream::bench::ServerLoadOptions& load) {
  if (load.url.empty() && options.model.empty()) {
    std::fputs("slipstream bench: name a GGUF file, or a server with --server\n", stderr);
    return kUsageError;
  }
  if (options.is_of_speculation) return slipstream::bench::run_speculation(options);
  if (!options.draft.model.empty()) {
    std::fputs("slipstream bench: --draft-model is measured with --speculate\n", stderr);
    return kUsageError;
  }
  if (load.url.empty()) return slipstream::bench::run(options);
  load.n_clients = options.n_sequences;
  load.n_prompt = options.n_prompt;
  load.n_tokens = options.n_tokens;
  load.text = options.text;
  load.directory = options.directory;
  return slipstream::bench::run(load);
}

// These variables configure stock programs; here --kv, --stream-experts and --prompts decide. If they stayed
// set, a cache called f16 would be compressed, and results for stock would be slipstream's.
void forget_choices_for_stock() {
  for (const char* name : {slipstream::turbo::kSchemeVariable, slipstream::turbo::kExpertsVariable,
                           slipstream::turbo::kPromptsVariable})
    (void)unsetenv(name);
}

// What a flag is called here says more than that it was not expected.
int refuse_words(const CLI::App& app, const CLI::ExtrasError& error) {
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App* command) { return command->parsed(); });
  const CLI::App& command = commands.empty() ? app : *commands.front();
  const std::string lines = slipstream::explain_unknown(command, app.remaining(true));
  if (lines.empty()) {
    (void)app.exit(error);
    return kUsageError;
  }
  std::fprintf(stderr, "%sRun with --help for more information.\n", lines.c_str());
  return kUsageError;
}

int run(int argc, char** argv) {
  forget_choices_for_stock();
  CLI::App app("Long contexts and big models on the machine you own, behind stock llama.cpp.",
               "slipstream");
  app.footer(kFooter);
  app.get_formatter()->enable_footer_formatting(false);  // keeps the columns of the examples
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", slipstream::build_info);

  slipstream::doctor::Options doctor_options;
  CLI::App* doctor = app.add_subcommand(
      "doctor", "Check what this machine has for running models, and say how to improve it");
  doctor
      ->add_option("model", doctor_options.model,
                   "A GGUF file, or org/repo:quant: what it needs here, and how fast it can be "
                   "from this disk")
      ->type_name("MODEL");
  doctor->add_option("--dir", doctor_options.model_dir, "Where the models are, or will be")
      ->type_name("DIR")
      ->capture_default_str();

  slipstream::run::Options run_options;
  const CLI::App* run_command = add_run(app, run_options);
  slipstream::serve::Options serve_options;
  const CLI::App* serve_command = add_serve(app, serve_options);
  slipstream::bench::Options bench_options;
  slipstream::bench::ServerLoadOptions load_options;
  const CLI::App* bench_command = add_bench(app, bench_options, load_options);
  const CLI::App* bench_cell =
      app.add_subcommand("bench-cell", "One cell, for bench itself")->group("");  // not in --help
  slipstream::pull::Options pull_options;
  const CLI::App* pull_command = add_pull(app, pull_options);
  slipstream::list::Options list_options;
  const CLI::App* list_command = add_list(app, list_options);
  slipstream::show::Options show_options;
  const CLI::App* show_command = add_show(app, show_options);
  slipstream::rm::Options rm_options;
  const CLI::App* rm_command = add_rm(app, rm_options);
  const slipstream::eval::Command eval(app);
  const slipstream::chat::Command chat(app);
  const slipstream::calibrate::Command calibrate(app);
  const slipstream::index::Command index(app);
  const slipstream::search::Command search(app);
  const slipstream::mcp::Command mcp(app);

  std::vector<std::string> words =
      slipstream::in_own_words(app, std::vector<std::string>(argv + 1, argv + argc));
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ExtrasError& error) {
    return refuse_words(app, error);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;  // --help and --version also end here
  }
  if (doctor->parsed()) return slipstream::doctor::run(doctor_options);
  if (run_command->parsed()) return slipstream::run::run(run_options);
  if (serve_command->parsed()) return slipstream::serve::serve(serve_options, argv);
  if (bench_command->parsed()) {
    if (bench_options.is_of_speculation) use_defaults_of_speculation(*bench_command, bench_options);
    return run_bench(bench_options, load_options);
  }
  if (bench_cell->parsed()) return slipstream::bench::run_cell_process();
  if (pull_command->parsed()) return slipstream::pull::run(pull_options);
  if (list_command->parsed()) return slipstream::list::run(list_options);
  if (show_command->parsed()) return slipstream::show::run(show_options);
  if (rm_command->parsed()) return slipstream::rm::run(rm_options);
  if (const auto status = eval.run()) return *status;
  if (const auto status = chat.run()) return *status;
  if (const auto status = calibrate.run()) return *status;
  if (const auto status = index.run()) return *status;
  if (const auto status = search.run()) return *status;
  if (const auto status = mcp.run()) return *status;
  std::fputs(app.help().c_str(), stderr);
  return kUsageError;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    // Slipstream does not throw. This is the last line of defence against a library that does.
    std::fprintf(stderr, "slipstream: %s\n", error.what());
    return 1;
  }
}
