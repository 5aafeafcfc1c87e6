#include "cli/hub/find_model.h"

#include "base/format.h"
#include "hub/installed.h"
#include "hub/model_name.h"
#include "hub/settings.h"

namespace slipstream {

Result<std::filesystem::path> find_model(const std::string& name) {
  std::error_code error;
  if (std::filesystem::exists(name, error) || name.ends_with(".gguf")) return name;
  const Result<hub::ModelName> model = hub::parse_model_name(name);
  if (!model) return name;
  const Result<hub::Settings> settings = hub::read_settings();
  if (!settings) return std::unexpected(settings.error());
  Result<hub::InstalledModel> installed = hub::find_installed(settings->cache, *model);
  if (!installed) {
    return fail(Code::kNotFound, format_text("there is no file {}, and {}", name,
                                             std::move(installed.error().message)));
  }
  return std::move(installed->files.front());
}

}  // namespace slipstream
