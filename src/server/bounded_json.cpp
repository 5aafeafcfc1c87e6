#include "server/bounded_json.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "server/json.h"

namespace slipstream {
namespace {

using Members = Json::object_t;

constexpr std::size_t kMessageBytesMax = 256;  // the parser quotes any length of what it read

bool has_doubles(const Members::Container& members) {
  for (auto one = members.begin(); one != members.end(); ++one) {
    if (std::find_if(members.begin(), one,
                     [one](const auto& other) { return other.first == one->first; }) != one) {
      return true;
    }
  }
  return false;
}

// Sorts the names instead of hashing them, because a client could choose names that collide.
void keep_last_of_each_name(Members& object) {
  constexpr std::size_t kFew = 16;
  Members::Container& members = object;  // the map's own [] takes a name
  if (members.size() <= kFew && !has_doubles(members)) return;
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto name = [&members](std::size_t i) -> const std::string& { return members[i].first; };
  std::ranges::stable_sort(order, {}, name);
  std::vector<bool> is_dropped(members.size(), false);
  bool drops_any = false;
  for (std::size_t i = 0; i < order.size();) {
    std::size_t last = i;
    while (last + 1 < order.size() && name(order[last + 1]) == name(order[i])) {
      is_dropped[order[++last]] = true;
    }
    if (last > i) {
      members[order[i]].second = std::move(members[order[last]].second);
      drops_any = true;
    }
    i = last + 1;
  }
  if (!drops_any) return;
  Members kept;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!is_dropped[i]) kept.emplace_back(members[i].first, std::move(members[i].second));
  }
  object = std::move(kept);
}

// When a vector of pairs with constant names grows by itself, it copies all values, each with
// everything below it. This moves them.
void make_room_for_one(Members::Container& members) {
  if (members.size() < members.capacity()) return;
  Members::Container larger;
  larger.reserve(std::max<std::size_t>(2, 2 * members.size()));
  for (auto& [name, value] : members) larger.emplace_back(name, std::move(value));
  members.swap(larger);
}

// The memory of a value besides the Json itself, which is part of its array or object. The overhead
// of the heap is an estimate.
std::size_t heap_bytes(const Json& value) {
  constexpr std::size_t kBlock = 16;  // malloc()'s own data per block
  if (value.is_string())
    return sizeof(std::string) + kBlock + value.get_ref<const std::string&>().size();
  if (value.is_structured()) return sizeof(Members) + kBlock;
  return 0;
}

// Builds the value from nlohmann's events, which come in the order of the text.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(const JsonLimits& limits, std::size_t text_bytes)
      : limits_(limits),
        n_bytes_max_(
            std::min(limits.json_bytes_max,
                     limits.json_free_bytes + limits.json_bytes_per_byte_max * text_bytes)) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t /*n*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*n*/) override { return open(Json::array()); }
  bool key(string_t& name) override {
    name_ = std::move(name);
    return true;
  }
  bool end_object() override {
    keep_last_of_each_name(open_.back()->get_ref<Members&>());
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    error_ = {Code::kInvalidArgument, std::string(error.what()).substr(0, kMessageBytesMax)};
    return false;
  }

  [[nodiscard]] const Error& error() const { return error_; }
  Json take() { return std::move(root_); }

 private:
  bool refuse(std::string message) {
    error_ = {Code::kUnsupported, std::move(message)};
    return false;
  }
  bool add(Json value) { return place(std::move(value)) != nullptr; }
  bool open(Json value) {
    if (open_.size() >= limits_.json_nesting_max) {
      return refuse(format_text("it is nested more than {} deep", limits_.json_nesting_max));
    }
    // Only the innermost value grows, so the addresses of the outer ones stay valid.
    open_.push_back(place(std::move(value)));
    return open_.back() != nullptr;  // false stops the parser
  }
  Json* place(Json value) {
    if (++n_values_ > limits_.json_values_max) {
      refuse(format_text("it has more than {} values", limits_.json_values_max));
      return nullptr;
    }
    const bool has_name = !open_.empty() && open_.back()->is_object();
    n_bytes_ +=
        sizeof(Json) + heap_bytes(value) + (has_name ? sizeof(std::string) + name_.size() : 0);
    if (n_bytes_ > n_bytes_max_) {
      refuse(format_text("its {} values would take more than {} MB of memory: send fewer of them",
                         n_values_, n_bytes_max_ >> 20U));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      auto& items = open_.back()->get_ref<Json::array_t&>();
      return &items.emplace_back(std::move(value));
    }
    auto& members = open_.back()->get_ref<Members&>();
    make_room_for_one(members);
    // This is the vector's emplace_back(). The map's own emplace() would search for the name first.
    return &members.emplace_back(std::move(name_), std::move(value)).second;
  }

  const JsonLimits& limits_;
  const std::size_t n_bytes_max_;
  Json root_;
  std::vector<Json*> open_;
  string_t name_;
  std::size_t n_values_ = 0;
  std::size_t n_bytes_ = 0;  // of values, names and heap blocks
  Error error_ = {};
};

}  // namespace

void destroy(Json& json) {
  if (!json.is_structured()) return;
  for (Json& value : json) destroy(value);
  json.clear();
}

std::size_t n_values(const Json& json) {
  std::size_t n = 1;
  if (!json.is_structured()) return n;
  for (const Json& value : json) n += n_values(value);
  return n;
}

Result<Json> parse_bounded(std::string_view text, const JsonLimits& limits) {
  Builder builder(limits, text.size());
  const bool is_read = Json::sax_parse(text, &builder);
  Json json = builder.take();
  if (is_read) return json;
  destroy(json);
  return std::unexpected(builder.error());
}

}  // namespace slipstream
