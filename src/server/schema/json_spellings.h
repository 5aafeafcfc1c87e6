// For tests: the spellings of a value that answers may use, with the keys in every order. The
// order that the schema asks for is one of them.
#pragma once

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/schema/number_range.h"

namespace slipstream {

inline std::vector<std::string> spellings_of(const nlohmann::ordered_json& value) {
  constexpr std::size_t kSpellingsMax = 5000;
  if (value.is_number()) return {number_text(value)};
  if (!value.is_structured()) return {value.dump()};
  // Every order of the members is combined with every spelling of every member.
  std::vector<std::size_t> order(value.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<std::string> all;
  do {
    std::vector<std::string> texts = {value.is_array() ? "[" : "{"};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto member = std::next(value.begin(), static_cast<std::ptrdiff_t>(order[i]));
      std::string start = i == 0 ? "" : ",";
      if (value.is_object()) start += nlohmann::json(member.key()).dump() + ":";
      std::vector<std::string> longer;
      for (const std::string& text : texts) {
        for (const std::string& inside : spellings_of(*member)) {
          longer.push_back(text + start + inside);
        }
      }
      texts = std::move(longer);
      if (texts.size() > kSpellingsMax) texts.resize(kSpellingsMax);
    }
    for (const std::string& text : texts) all.push_back(text + (value.is_array() ? "]" : "}"));
  } while (value.is_object() && all.size() < kSpellingsMax &&
           std::ranges::next_permutation(order).found);
  return all;
}

}  // namespace slipstream
