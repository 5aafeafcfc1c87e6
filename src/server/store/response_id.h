// Ids of responses: "resp_" and 32 hexadecimal digits. The id of an item has the digits of its
// response and its index in the output, so that an item is found without an index of all items.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace slipstream {

// The id is random, so that nobody can guess another client's id.
[[nodiscard]] std::string new_response_id();
// Must be checked before an id is used as a file name.
[[nodiscard]] bool is_response_id(std::string_view id);

struct ItemPlace {
  std::string response_id;
  std::size_t idx;  // index in the response's output
};
// "msg_0123...0002" for the prefix "msg".
[[nodiscard]] std::string item_id(std::string_view prefix, const ItemPlace& place);
// Returns nullopt if this server did not make the id.
[[nodiscard]] std::optional<ItemPlace> place_of_item(std::string_view id);

// A unique id such as "call_0123...".
[[nodiscard]] std::string random_id(std::string_view prefix);

}  // namespace slipstream
