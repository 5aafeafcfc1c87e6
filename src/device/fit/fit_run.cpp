#include "device/fit/fit_run.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "device/fit/fit_basis.h"
#include "device/guard.h"
#include "device/layer_ranges.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

// "12,345"
std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

}  // namespace

// Logs nothing, because the program's log may already be gone. If memory lacks, the file stays as
// the last save() left it.
FitRun::~FitRun() {
  (void)is_done(
      [this] {
        const MutexLock lock(mutex_);
        if (has_ended_ || count_keys() == n_keys_saved_) return;
        [[maybe_unused]] const Result<void> written = write_profile(path_, fitted());
      },
      log_nothing);
}

KeyMoments* FitRun::layer(const ggml_tensor* attention, int layer) {
  const std::optional<LayerPrint> print = print_of(attention, layer);
  if (!print) {
    refuse(layer, "it has no weight to know it by");
    return nullptr;
  }
  const ggml_tensor* keys = attention->src[1];
  if (!is_fittable(4, static_cast<int>(keys->ne[0]))) {
    refuse(layer, format_text("its heads, of {} numbers, are too small", keys->ne[0]));
    return nullptr;
  }
  const MutexLock lock(mutex_);
  const auto [it, is_new] = layers_.try_emplace(layer);
  Layer& seen = it->second;
  if (is_new) {
    seen.print = *print;
    seen.moments = std::make_unique<KeyMoments>(keys->ne[2], static_cast<int>(keys->ne[0]));
  }
  const bool is_same = seen.print == *print && seen.moments != nullptr &&
                       seen.moments->n_heads() == keys->ne[2] &&
                       seen.moments->head_dim() == keys->ne[0];
  return is_same && seen.refusal.empty() ? seen.moments.get() : nullptr;
}

void FitRun::refuse(int layer, const std::string& why) {
  const MutexLock lock(mutex_);
  layers_[layer].refusal = why;
}

std::int64_t FitRun::count_keys() const {
  std::int64_t n_keys = 0;
  for (const auto& [layer, seen] : layers_) {
    if (seen.moments != nullptr) n_keys = std::max(n_keys, seen.moments->head(0).n_keys);
  }
  return n_keys;
}

KeyProfile FitRun::fitted() const {
  KeyProfile profile;
  for (const auto& [layer, seen] : layers_) {
    if (!seen.refusal.empty()) continue;
    LayerProfile fitted{
        .layer = layer, .head_dim = seen.moments->head_dim(), .print = seen.print, .heads = {}};
    for (std::int64_t head = 0; head < seen.moments->n_heads(); ++head) {
      std::optional<HeadBasis> basis = fit_basis(seen.moments->head(head));
      if (basis) fitted.heads.push_back(std::move(*basis));
    }
    if (std::cmp_equal(fitted.heads.size(), seen.moments->n_heads())) {
      profile.push_back(std::move(fitted));
    }
  }
  return profile;
}

KeyProfile FitRun::profile() const {
  const MutexLock lock(mutex_);
  return fitted();
}

Result<std::size_t> FitRun::save() {
  const MutexLock lock(mutex_);
  const std::int64_t n_keys = count_keys();
  if (layers_.empty()) {
    log_line(GGML_LOG_LEVEL_WARN, "no keys were seen to be fitted: flash attention must be on");
  }
  if (n_keys == n_keys_saved_) {
    if (n_keys == 0) log_refusals({});
    return n_layers_saved_;
  }
  const KeyProfile profile = fitted();
  log_refusals(profile);
  if (Result<void> written = write_profile(path_, profile); !written) {
    return std::unexpected(std::move(written.error()));
  }
  n_keys_saved_ = n_keys;
  n_layers_saved_ = profile.size();
  std::error_code unknown;
  log_line(GGML_LOG_LEVEL_INFO,
           format_text("keys of {} layers fitted from {} tokens: {}, {:.1f} MB", profile.size(),
                       with_commas(n_keys), path_,
                       static_cast<double>(std::filesystem::file_size(path_, unknown)) / 1e6));
  return n_layers_saved_;
}

// Says of each layer that is not in the profile why that is so.
void FitRun::log_refusals(const KeyProfile& profile) const {
  std::map<std::string, std::set<int>> refused;
  for (const auto& [layer, seen] : layers_) {
    if (!seen.refusal.empty()) {
      refused[seen.refusal].insert(layer);
    } else if (std::ranges::find(profile, layer, &LayerProfile::layer) == profile.end()) {
      refused["too few keys were seen, or they are all alike"].insert(layer);
    }
  }
  for (const auto& [why, layers] : refused) {
    log_line(GGML_LOG_LEVEL_WARN,
             format_text("keys of layer {} are not fitted: {}", format_layers(layers), why));
  }
}

Result<std::size_t> FitRun::end() {
  Result<std::size_t> saved = save();
  const MutexLock lock(mutex_);
  has_ended_ = true;
  return saved;
}

}  // namespace slipstream::turbo
