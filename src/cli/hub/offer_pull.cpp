#include "cli/hub/offer_pull.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>

#include "base/format.h"
#include "base/format_bytes.h"
#include "cli/hub/pull.h"
#include "hub/installed.h"
#include "hub/model_name.h"
#include "hub/settings.h"

namespace slipstream {
namespace {

bool is_yes(const std::string& answer) {
  return answer.empty() || answer == "y" || answer == "Y" || answer == "yes";
}

// The end of input is no answer, and so a no.
bool ask_to_pull(const hub::Offer& offer, const hub::Settings& settings) {
  std::fprintf(stderr, "%s is not installed. Pull %s from %s? [Y/n] ", offer.name.c_str(),
               format_bytes(offer.n_bytes).c_str(), settings.endpoint.c_str());
  std::string answer;
  return std::getline(std::cin, answer) && is_yes(answer);
}

Result<void> offer_pull(const hub::ModelName& model, const hub::Settings& settings,
                        const Error& not_installed, bool is_sure) {
  const std::string name = model.text();
  if (is_sure) {
    std::fprintf(stderr, "%s is not installed: pulling it\n", name.c_str());
    return pull::install({.model = name}).transform([](const hub::Pulled&) {});
  }
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
    return fail(Code::kNotFound,
                format_text("there is no file {}, and {}, or --yes to do that first", name,
                            not_installed.message));
  }
  const Result<hub::Offer> offer = hub::look_up(settings, model);
  if (!offer) return std::unexpected(offer.error());
  if (!ask_to_pull(*offer, settings)) {
    return fail(Code::kNotFound, format_text("{} is not installed", offer->name));
  }
  return pull::install({.model = offer->name}).transform([](const hub::Pulled&) {});
}

// The model that this names, if it may be one of the hub.
std::optional<hub::ModelName> hub_model(const std::string& name) {
  std::error_code error;
  if (std::filesystem::exists(name, error) || name.ends_with(".gguf")) return std::nullopt;
  const Result<hub::ModelName> model = hub::parse_model_name(name);
  return model ? std::optional(*model) : std::nullopt;
}

}  // namespace

Result<void> install_missing(const std::vector<std::string>& names, bool is_sure) {
  for (const std::string& name : names) {
    const std::optional<hub::ModelName> model = hub_model(name);
    if (!model) continue;
    const Result<hub::Settings> settings = hub::read_settings();
    if (!settings) return std::unexpected(settings.error());
    const Result<hub::InstalledModel> installed = hub::find_installed(settings->cache, *model);
    if (installed) continue;
    if (installed.error().code != Code::kNotFound) return std::unexpected(installed.error());
    if (Result<void> pulled = offer_pull(*model, *settings, installed.error(), is_sure); !pulled) {
      return pulled;
    }
  }
  return {};
}

}  // namespace slipstream
