#include "cli/serve/first_run.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cli/hub/offer_pull.h"

namespace slipstream::serve {
namespace {

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

void take_unnamed_model(Options& options) {
  if (!options.model.empty()) return;
  const auto unnamed = std::ranges::find_if(
      options.models, [](const std::string& text) { return !text.contains('='); });
  if (unnamed == options.models.end()) return;
  options.model = std::move(*unnamed);
  options.models.erase(unnamed);
}

// The models as find_model() will be asked for them.
std::vector<std::string> names_of(const Options& options) {
  std::vector<std::string> names;
  if (!options.model.empty()) names.push_back(options.model);
  for (const std::string& text : options.models) {
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) names.push_back(text.substr(equals + 1));
  }
  return names;
}

}  // namespace

Result<Options> with_models(Options options, bool may_install) {
  take_unnamed_model(options);
  if (has_no_model(options) && options.rpc.empty() && is_loopback(options.host)) {
    options.uses_hub = true;
  }
  if (may_install) {
    const Result<void> installed = install_missing(names_of(options), options.is_sure);
    if (!installed) return std::unexpected(installed.error());
  }
  return options;
}

bool has_no_model(const Options& options) {
  return options.model.empty() && options.models.empty();
}

}  // namespace slipstream::serve
