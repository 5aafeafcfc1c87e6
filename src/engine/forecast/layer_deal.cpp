#include "engine/forecast/layer_deal.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "base/format_bytes.h"

namespace slipstream {
namespace {

struct Deal {
  std::vector<int> n_layers;
  std::size_t n_dealt = 0;
  bool fits = true;  // what is not layers
};

Deal deal_with_share(std::span<const std::uint64_t> layers, std::span<const LayerTaker> machines,
                     double share) {
  Deal deal;
  for (const LayerTaker& machine : machines) {
    const double room = share * static_cast<double>(machine.available_bytes);
    double taken = static_cast<double>(machine.fixed_bytes);
    if (machine.is_needed && taken > room) deal.fits = false;
    int n = 0;
    while (deal.n_dealt < layers.size() &&
           taken + static_cast<double>(layers[deal.n_dealt]) <= room) {
      taken += static_cast<double>(layers[deal.n_dealt++]);
      ++n;
    }
    deal.n_layers.push_back(n);
  }
  return deal;
}

std::unexpected<Error> no_room(std::span<const std::uint64_t> layers,
                               std::span<const LayerTaker> machines, const Deal& deal) {
  std::string rooms;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    rooms += format_text("; {} has {}, of which {} go to what is not layers: room for {}",
                         machines[i].name, format_bytes(machines[i].available_bytes),
                         format_bytes(machines[i].fixed_bytes), deal.n_layers[i]);
  }
  const std::uint64_t all = std::reduce(layers.begin(), layers.end(), std::uint64_t{0});
  return fail(Code::kOutOfMemory,
              format_text("{} layers take {} with their KV cache, and {} of them find no room{}. A "
                          "smaller --ctx helps, a --kv of fewer bits, or another host",
                          layers.size(), format_bytes(all), layers.size() - deal.n_dealt, rooms));
}

}  // namespace

Result<std::vector<int>> deal_layers(std::span<const std::uint64_t> layers,
                                     std::span<const LayerTaker> machines) {
  double enough = 1;
  Deal deal = deal_with_share(layers, machines, enough);
  if (deal.n_dealt < layers.size() || !deal.fits) return no_room(layers, machines, deal);
  double too_little = 0;
  constexpr int kHalvings = 40;  // far finer than a layer
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (enough + too_little) / 2;
    Deal tried = deal_with_share(layers, machines, middle);
    if (tried.n_dealt == layers.size() && tried.fits) {
      enough = middle;
      deal = std::move(tried);
    } else {
      too_little = middle;
    }
  }
  return std::move(deal.n_layers);
}

}  // namespace slipstream
