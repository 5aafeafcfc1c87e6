#include "server/store/stored_past.h"

#include <optional>
#include <utility>

#include "server/bounded_json.h"
#include "server/store/response_id.h"

namespace slipstream {
namespace {

// Limits how many bytes one request may make the server read.
constexpr std::size_t kBytesReadMax = std::size_t{64} << 20;

Json output_of(const std::string& response) {
  Result<Json> json = parse_bounded(response);
  if (!json || !json->is_object()) return {};
  return take(*json, "output");
}

}  // namespace

Json StoredPast::conversation(std::string_view response_id) {
  // A client's text of any length is not copied as an id.
  if (!is_response_id(response_id)) return {};
  const Result<StoredResponse> stored = store_.get(std::string(response_id), salt_);
  if (!stored) return {};
  Result<Json> items = parse_bounded(stored->items);
  Json output = output_of(stored->response);
  if (!items || !items->is_array() || !output.is_array()) return {};
  for (Json& item : output) items->push_back(std::move(item));
  return std::move(*items);
}

Json StoredPast::item(std::string_view item_id) {
  const std::optional<ItemPlace> place = place_of_item(item_id);
  if (!place) return {};
  if (place->response_id != last_id_) {
    if (n_bytes_read_ > kBytesReadMax) return {};
    const Result<StoredResponse> stored = store_.get(place->response_id, salt_);
    if (!stored) return {};
    n_bytes_read_ += stored->response.size() + stored->items.size();
    last_output_ = output_of(stored->response);
    last_id_ = place->response_id;
  }
  if (!last_output_.is_array() || place->idx >= last_output_.size()) return {};
  const Json& found = last_output_[place->idx];
  const Json* id = member(found, "id");
  return id != nullptr && *id == item_id ? found : Json();
}

}  // namespace slipstream
