#include "device/fit/profile.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

struct ProfileInUse {
  Mutex mutex;
  // Shared with the caches that were bound to it: they outlive a change of profile.
  std::shared_ptr<const KeyProfile> profile SLIP_GUARDED_BY(mutex);
  std::string path SLIP_GUARDED_BY(mutex);
  bool has_warned SLIP_GUARDED_BY(mutex) = false;
};

ProfileInUse& in_use() {
  static ProfileInUse instance;
  return instance;
}

void put_in_use(std::shared_ptr<const KeyProfile> profile, std::string path) {
  ProfileInUse& slot = in_use();
  const MutexLock lock(slot.mutex);
  slot.profile = std::move(profile);
  slot.path = std::move(path);
  slot.has_warned = false;
}

// Why the layer's keys are not those that were fitted; empty if they are.
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

void use_profile(KeyProfile profile) {
  put_in_use(std::make_shared<const KeyProfile>(std::move(profile)), "the profile");
}

Result<void> use_profile(const std::string& path) {
  put_in_use(nullptr, "");
  if (path.empty()) return {};
  Result<KeyProfile> profile = read_profile(path);
  if (!profile) return std::unexpected(std::move(profile.error()));
  put_in_use(std::make_shared<const KeyProfile>(std::move(*profile)), path);
  return {};
}

std::shared_ptr<const KeyBases> bases_of(const ggml_tensor* attention, int layer) {
  ProfileInUse& slot = in_use();
  const MutexLock lock(slot.mutex);
  if (slot.profile == nullptr) return nullptr;
  const auto fitted = std::ranges::find(*slot.profile, layer, &LayerProfile::layer);
  if (fitted == slot.profile->end()) return nullptr;
  if (const std::string why = difference(*fitted, attention); !why.empty()) {
    if (!std::exchange(slot.has_warned, true)) {
      log_line(GGML_LOG_LEVEL_WARN,
               format_text("{} was made for another model, and is not used: in layer {} of this "
                           "one, {}; `slipstream calibrate MODEL` makes one",
                           slot.path, layer, why));
    }
    return nullptr;
  }
  return {slot.profile, &fitted->heads};
}

}  // namespace slipstream::turbo
