// Ids of stored responses: "resp_" and 32 hexadecimal digits. Ids of a response's items have the
// digits of the response and their place in it, so that an item is found without a list of all.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace slipstream {

// Nobody can guess the next one.
[[nodiscard]] std::string new_response_id();
// Asked before an id becomes the name of a file.
[[nodiscard]] bool is_response_id(std::string_view id);

struct ItemPlace {
  std::string response_id;
  std::size_t idx;  // among the items of its output
};
// "msg_..." with the prefix "msg".
[[nodiscard]] std::string item_id(std::string_view prefix, const ItemPlace& place);
// None: it is no id of ours.
[[nodiscard]] std::optional<ItemPlace> place_of_item(std::string_view id);

// "call_..." and so on: no two alike.
[[nodiscard]] std::string random_id(std::string_view prefix);

}  // namespace slipstream
