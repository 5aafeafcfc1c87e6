#include "bench/quality/work/extraction.h"

#include <random>

#include "base/format.h"
#include "server/schema/naive_validator.h"

namespace slipstream::quality {
namespace {

using Object = nlohmann::ordered_json;

constexpr std::array<std::string_view, 8> kCustomers = {"Anna",  "Peter",  "Maria", "Thomas",
                                                        "Julia", "Martin", "Laura", "David"};
constexpr std::array<std::string_view, 8> kCities = {"Paris",  "London", "Berlin", "Rome",
                                                     "Madrid", "Vienna", "Dublin", "Oslo"};
constexpr std::array<std::string_view, 8> kGoods = {"lamps",  "chairs", "books", "plates",
                                                    "shirts", "clocks", "pens",  "cups"};
constexpr std::size_t kOrdersMax = 3;
constexpr int kObjectTokensMax = 80;

// The fields of an order, as many as wanted.
Object fields_of(const Object& order, std::size_t n_fields) {
  Object object = Object::object();
  for (const auto& [key, value] : order.items()) {
    if (object.size() < n_fields) object[key] = value;
  }
  return object;
}

Object schema_of(const Object& object) {
  Object properties = Object::object();
  Object required = Object::array();
  for (const auto& [key, value] : object.items()) {
    properties[key] = {{"type", value.is_string() ? "string" : "integer"}};
    required.push_back(key);
  }
  return {{"type", "object"}, {"properties", properties}, {"required", required}};
}

class OrderMaker {
 public:
  WorkTask make(std::size_t idx, const Hay& hay) {
    const std::size_t n_orders = 1 + idx / 2 % kOrdersMax;
    std::string note;
    std::vector<Object> orders;
    const Firsts firsts = {random_(), random_(), random_()};
    for (std::size_t i = 0; i < n_orders; ++i) {
      orders.push_back(draw_order(firsts, i));
      note += (i == 0 ? "" : " ") + sentence_of(orders.back());
    }
    const Object right = fields_of(orders[random_() % n_orders], 3 + idx % 3);
    const Object schema = schema_of(right);
    const std::string customer = right["name"];
    const std::string stated = within_text(note, idx, hay);
    return {.message = format_text("{}Write the order of {} as a JSON object of this schema: {}\n"
                                   "Answer with the JSON object only.",
                                   stated, customer, schema.dump()),
            .beginning = format_text("{}The order of {} as a JSON object of the schema {}:\n",
                                     stated, customer, schema.dump()),
            .stops = {"\n\n"},
            .right = right.dump(),
            .n_tokens_max = kObjectTokensMax,
            .judge = [schema, right](const std::string& answer) {
              return judge_object(answer, schema, right);
            }};
  }

 private:
  // Where the words of a note's first order are. Those of the others follow, so that no two orders
  // of a note have one in common.
  using Firsts = std::array<std::size_t, 3>;

  Object draw_order(const Firsts& firsts, std::size_t place) {
    const auto word = [&](const auto& words, std::size_t first) {
      return std::string(words[(first + place) % words.size()]);
    };
    return {{"name", word(kCustomers, firsts[0])},
            {"city", word(kCities, firsts[1])},
            {"item", word(kGoods, firsts[2])},
            {"count", 2 + random_() % 8},
            {"price", 10 + random_() % 90}};
  }

  static std::string sentence_of(const Object& order) {
    return format_text("{} from {} ordered {} {} for {} euros.", order["name"].get<std::string>(),
                       order["city"].get<std::string>(), order["count"].get<int>(),
                       order["item"].get<std::string>(), order["price"].get<int>());
  }

  std::mt19937 random_{17};  // used without distributions, which differ between libraries
};

// The first object that the text contains; discarded if there is none.
Object first_object(const std::string& text) {
  constexpr std::size_t kEndsMax = 16;  // braces that are tried as its end
  const std::size_t begin = text.find('{');
  std::size_t end = begin;
  for (std::size_t i = 0; i < kEndsMax && end != std::string::npos; ++i) {
    end = text.find('}', end);
    if (end == std::string::npos) break;
    ++end;
    Object object = Object::parse(text.substr(begin, end - begin), nullptr, false);
    if (!object.is_discarded()) return object;
  }
  return Object(Object::value_t::discarded);
}

}  // namespace

std::vector<WorkTask> make_extraction(int n_tasks, const Hay& hay) {
  OrderMaker maker;
  std::vector<WorkTask> tasks;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n_tasks); ++i) {
    tasks.push_back(maker.make(i, hay));
  }
  return tasks;
}

Mark judge_object(const std::string& answer, const Object& schema, const Object& right) {
  const Object found = first_object(answer);
  if (found.is_discarded() || !NaiveValidator(schema).accepts(found)) return {};
  // As unordered JSON, because the order of members does not matter.
  return {.valid = true, .right = nlohmann::json(found) == nlohmann::json(right)};
}

}  // namespace slipstream::quality
