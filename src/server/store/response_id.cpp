#include "server/store/response_id.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr std::string_view kResponse = "resp_";
constexpr std::size_t kDigits = 32;
constexpr std::size_t kPlaceDigits = 4;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string random_id(std::string_view prefix) {
  std::random_device random;  // the system's: earlier ids do not reveal later ones
  return format_text("{}_{:08x}{:08x}{:08x}{:08x}", prefix, random(), random(), random(), random());
}

std::string new_response_id() { return random_id("resp"); }

bool is_response_id(std::string_view id) {
  return id.size() == kResponse.size() + kDigits && id.starts_with(kResponse) &&
         is_hex(id.substr(kResponse.size()));
}

std::string item_id(std::string_view prefix, const ItemPlace& place) {
  return format_text("{}_{}{:04x}", prefix, place.response_id.substr(kResponse.size()), place.idx);
}

std::optional<ItemPlace> place_of_item(std::string_view id) {
  const std::size_t end = id.find('_');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view digits = id.substr(end + 1);
  if (digits.size() != kDigits + kPlaceDigits || !is_hex(digits)) return std::nullopt;
  ItemPlace place{.response_id = std::string(kResponse) + std::string(digits.substr(0, kDigits)),
                  .idx = 0};
  std::from_chars(digits.data() + kDigits, digits.data() + digits.size(), place.idx, 16);
  return place;
}

}  // namespace slipstream
