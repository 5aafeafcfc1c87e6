#include "server/store/input_items.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/format.h"
#include "server/bounded_json.h"
#include "server/http/target.h"
#include "server/json.h"

namespace slipstream {
namespace {

ApiResult<std::size_t> read_limit(std::string_view target) {
  constexpr std::size_t kLimitMax = 100;  // both as in OpenAI's API
  constexpr std::size_t kLimit = 20;
  const std::string text = query_value(target, "limit");
  if (text.empty()) return kLimit;
  std::size_t limit = 0;
  const char* end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, limit);
  if (error != std::errc() || behind != end || limit < 1 || limit > kLimitMax) {
    return refuse("limit", format_text("'limit' must be from 1 to {}", kLimitMax));
  }
  return limit;
}

// Clients may send items without id and type, but need both in a list.
Json as_listed(Json item, const std::string& response_id, std::size_t idx) {
  if (!item.is_object()) return item;
  if (!item.contains("type")) item["type"] = "message";
  if (!item.contains("id")) item["id"] = format_text("{}_in{}", response_id, idx);
  if (const auto content = item.find("content"); content != item.end() && content->is_string()) {
    const bool is_answer = item.contains("role") && item["role"] == "assistant";
    const char* type = is_answer ? "output_text" : "input_text";
    *content = Json::array({{{"type", type}, {"text", std::move(*content)}}});
  }
  return item;
}

}  // namespace

ApiResult<std::string> input_items_page(const std::string& response_id,
                                        const StoredResponse& stored, std::string_view target) {
  const ApiResult<std::size_t> limit = read_limit(target);
  if (!limit) return std::unexpected(limit.error());
  const std::string order = query_value(target, "order");
  if (!order.empty() && order != "asc" && order != "desc") {
    return refuse("order", "'order' must be asc or desc");
  }
  Result<Json> items = parse_bounded(stored.items);
  if (!items || !items->is_array()) {
    return std::unexpected(ApiError{.status = 500, .message = "the items cannot be read"});
  }
  for (std::size_t i = 0; i < items->size(); ++i) {
    (*items)[i] = as_listed(std::move((*items)[i]), response_id, i);
  }
  if (order != "asc") std::ranges::reverse(*items);
  auto from = items->begin();
  if (const std::string after = query_value(target, "after"); !after.empty()) {
    from = std::ranges::find_if(*items, [&after](const Json& item) {
      const Json* id = member(item, "id");
      return id != nullptr && *id == after;
    });
    if (from == items->end()) return refuse("after", "'after' is no item of this response");
    ++from;
  }
  const auto n = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(*limit), items->end() - from);
  const bool has_more = from + n != items->end();
  Json data = Json::array();
  for (auto item = from; item != from + n; ++item) data.push_back(std::move(*item));
  const auto id_of = [](const Json& item) {
    const Json* id = member(item, "id");
    return id == nullptr ? Json() : *id;
  };
  Json first = data.empty() ? Json() : id_of(data.front());
  Json last = data.empty() ? Json() : id_of(data.back());
  return dump({{"object", "list"},
               {"data", std::move(data)},
               {"first_id", std::move(first)},
               {"last_id", std::move(last)},
               {"has_more", has_more}});
}

}  // namespace slipstream
