#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <string_view>

#include "cli/index/index.h"
#include "retrieval/store/schema.h"

namespace slipstream::index {
namespace {

enum class Folders : std::uint8_t { kNone, kSome, kNeeded, kModel };

struct Action {
  std::string_view name;
  Folders folders;
  int (*run)(const Options& options);
};

constexpr std::array<Action, 6> kActions = {{{"add", Folders::kNeeded, add},
                                             {"list", Folders::kNone, list},
                                             {"status", Folders::kSome, status},
                                             {"watch", Folders::kNone, watch},
                                             {"embed", Folders::kModel, embed},
                                             {"rm", Folders::kNeeded, rm}}};

std::vector<std::string> action_names() {
  std::vector<std::string> names;
  for (const Action& action : kActions) names.emplace_back(action.name);
  return names;
}

}  // namespace

void add_index_option(CLI::App& command, std::string& path) {
  command
      .add_option("--index", path,
                  "The index (default: slipstream/index.db in XDG_DATA_HOME or ~/.local/share)")
      ->envname("SLIPSTREAM_INDEX")
      ->type_name("FILE");
}

std::string index_path(const std::string& named) {
  return named.empty() ? default_index_path().string() : named;
}

Command::Command(CLI::App& app) {
  index_ = app.add_subcommand(
      "index", "Keep an index of folders, so that source code and documents can be searched");
  index_
      ->add_option(
          "action", options_.action,
          "add: read folders, or bring them up to date; list: show the folders; status: what "
          "the index has of them, and what it refused; watch: keep it up to date until "
          "stopped; embed: find texts by their meaning too, with a vector of every piece; rm: "
          "forget folders, whose files stay")
      ->required()
      ->type_name("ACTION")
      ->check(CLI::IsMember(action_names()));
  index_
      ->add_option("folder", options_.folders,
                   "For add and rm; for status, only these; for embed, a GGUF file or an installed "
                   "model (default: the one that the index has)")
      ->type_name("DIR");
  add_index_option(*index_, options_.path);
  index_
      ->add_option("-t,--threads", options_.n_threads, "Threads that read files (0: one per core)")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  index_->add_flag("-y,--yes", options_.is_sure, "rm: do not ask");
  index_->add_flag("--off", options_.is_off,
                   "embed: remove all vectors, and find texts by their words only");
}

std::optional<int> Command::run() const {
  if (!index_->parsed()) return std::nullopt;
  const auto* action = std::ranges::find(kActions, options_.action, &Action::name);
  const bool has_folders = !options_.folders.empty();
  if (action->folders == Folders::kNeeded && !has_folders) {
    std::fprintf(stderr, "slipstream index %s: name a folder\n", options_.action.c_str());
    return 2;
  }
  if (action->folders == Folders::kNone && has_folders) {
    std::fprintf(stderr, "slipstream index %s: it takes no folder, and %s was named\n",
                 options_.action.c_str(), options_.folders.front().c_str());
    return 2;
  }
  if (action->folders == Folders::kModel && options_.folders.size() > 1) {
    std::fputs("slipstream index embed: name one model\n", stderr);
    return 2;
  }
  return action->run(options_);
}

}  // namespace slipstream::index
