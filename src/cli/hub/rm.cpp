#include "cli/hub/rm.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/format.h"
#include "base/format_bytes.h"
#include "hub/removal.h"
#include "hub/settings.h"

namespace slipstream::rm {
namespace {

std::string describe(const hub::RemovalPlan& plan, const std::string& name) {
  std::string names;
  for (const std::string& each : plan.names) names += (names.empty() ? "" : ", ") + each;
  if (names.empty()) names = format_text("unfinished downloads of {}", name);
  return names;
}

// Returns whether the model was removed.
Result<bool> try_remove(const Options& options) {
  const Result<hub::ModelName> model = hub::parse_model_name(options.model);
  if (!model) return std::unexpected(model.error());
  const Result<hub::Settings> settings = hub::read_settings();
  if (!settings) return std::unexpected(settings.error());
  const Result<hub::RemovalPlan> plan = hub::plan_removal(settings->cache, *model);
  if (!plan) return std::unexpected(plan.error());
  const std::string what = describe(*plan, model->text());
  const std::string freed = format_bytes(plan->freed_bytes);
  if (!options.is_sure) {
    if (isatty(STDIN_FILENO) != 1) {
      return fail(
          Code::kInvalidArgument,
          format_text("removing {} would free {}, and there is no terminal to ask on: use --yes",
                      what, freed));
    }
    std::fprintf(stderr, "Remove %s and free %s? [y/N] ", what.c_str(), freed.c_str());
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "y" && answer != "Y" && answer != "yes") return false;
  }
  if (Result<void> done = hub::carry_out(*plan, settings->cache, *model); !done) {
    return std::unexpected(std::move(done.error()));
  }
  std::printf("removed %s, %s freed\n", what.c_str(), freed.c_str());
  return true;
}

}  // namespace

int run(const Options& options) {
  const Result<bool> removed = try_remove(options);
  if (removed) return *removed ? 0 : 1;
  std::fprintf(stderr, "slipstream rm: %s\n", removed.error().message.c_str());
  return 1;
}

}  // namespace slipstream::rm
