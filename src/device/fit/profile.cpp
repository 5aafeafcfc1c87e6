#include "device/fit/profile.h"

#include <algorithm>
#include <utility>

#include "device/log.h"

namespace slipstream::turbo {
namespace {

// The reason why the layer's keys are not those that were fitted; empty if they are.
std::string difference(const LayerProfile& fitted, const ggml_tensor* attention) {
  const ggml_tensor* keys = attention->src[1];
  if (keys->ne[0] != fitted.head_dim || std::cmp_not_equal(keys->ne[2], fitted.heads.size())) {
    return format_text("it has {} KV heads of {} where the profile has {} of {}", keys->ne[2],
                       keys->ne[0], fitted.heads.size(), fitted.head_dim);
  }
  const std::optional<LayerPrint> print = print_of(attention, fitted.layer);
  if (!print) return "no weight to know it by was found";
  if (*print != fitted.print) {
    return format_text("its weights are {} and the profile's {}", short_text(*print),
                       short_text(fitted.print));
  }
  return "";
}

}  // namespace

Result<std::shared_ptr<const FittedKeys>> FittedKeys::read(const std::string& path) {
  Result<KeyProfile> profile = read_profile(path);
  if (!profile) return std::unexpected(std::move(profile.error()));
  return std::make_shared<const FittedKeys>(std::move(*profile), path);
}

const KeyBases* FittedKeys::bases_of(const ggml_tensor* attention, int layer) const {
  const auto fitted = std::ranges::find(profile_, layer, &LayerProfile::layer);
  if (fitted == profile_.end()) return nullptr;
  if (const std::string why = difference(*fitted, attention); !why.empty()) {
    if (!has_warned_.exchange(true)) {
      log_line(GGML_LOG_LEVEL_WARN,
               format_text("{} was made for another model, and is not used: in layer {} of this "
                           "one, {}; `slipstream calibrate MODEL` makes one",
                           name_, layer, why));
    }
    return nullptr;
  }
  return &fitted->heads;
}

}  // namespace slipstream::turbo
