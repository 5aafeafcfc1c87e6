#include "server/schema/object_rules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/format.h"

namespace slipstream {
namespace {

// members(i, n): what may follow after the first i properties, with n members written.
//
//   members(i, n) ::= "," member-i members(i+1, n+1) | members(i+1, n)   if optional
//   members(last, n) ::= "," other-member members(last, n+1) | "}"
//
// n is counted only as far as it matters: to 1 for the comma, to the minimum, or to the maximum.
class MemberRules {
 public:
  MemberRules(const ObjectRules& object, GbnfWriter& writer) : object_(object), writer_(writer) {
    n_counted_ = std::max<std::size_t>({1, object.count.n_min, object.count.n_max.value_or(0)});
  }

  void run(RuleId rule) {
    GbnfSequence start = object_.marks.open;
    start.push_back(gbnf_rule(members({0, 0})));
    writer_.add(rule, std::move(start));
    while (!todo_.empty() && !writer_.is_full()) {
      const auto [place, members_rule] = todo_.back();
      todo_.pop_back();
      if (place.n_passed < object_.properties.size()) {
        const ObjectRules::Property& property = object_.properties[place.n_passed];
        const std::size_t next = place.n_passed + 1;
        add_member(members_rule, place, property, next);
        if (!property.is_required) {
          writer_.add(members_rule, {gbnf_rule(members({next, place.n_written}))});
        }
        continue;
      }
      for (const ObjectRules::Property& other : object_.others) {
        add_member(members_rule, place, other, place.n_passed);
      }
      if (place.n_written < object_.count.n_min) continue;
      const ObjectMarks& marks = object_.marks;
      writer_.add(members_rule, place.n_written == 0 ? marks.close_empty : marks.close);
    }
  }

 private:
  struct Place {
    std::size_t n_passed;
    std::size_t n_written;
    auto operator<=>(const Place&) const = default;
  };

  RuleId members(Place place) {
    const auto [known, is_new] = rules_.try_emplace(place, 0);
    if (is_new) {
      known->second = writer_.add_rule("members");
      todo_.emplace_back(place, known->second);
    }
    return known->second;
  }

  void add_member(RuleId rule, Place place, const ObjectRules::Property& property,
                  std::size_t n_passed) {
    if (object_.count.n_max && place.n_written >= *object_.count.n_max) return;
    GbnfSequence sequence = place.n_written == 0 ? object_.marks.first : object_.marks.next;
    sequence.insert(sequence.end(), property.member.begin(), property.member.end());
    const std::size_t n_written = std::min(place.n_written + 1, n_counted_);
    sequence.push_back(gbnf_rule(members({n_passed, n_written})));
    writer_.add(rule, std::move(sequence));
  }

  const ObjectRules& object_;
  GbnfWriter& writer_;
  std::size_t n_counted_;
  std::map<Place, RuleId> rules_;
  std::vector<std::pair<Place, RuleId>> todo_;
};

}  // namespace

ObjectMarks json_marks(JsonText& text) {
  return {.open = {gbnf_literal("{")},
          .first = {},
          .next = {text.comma()},
          .close = {gbnf_literal("}")},
          .close_empty = {gbnf_literal("}")}};
}

Result<void> add_object(RuleId rule, const ObjectRules& object, GbnfWriter& writer) {
  const auto n_required = static_cast<std::size_t>(
      std::ranges::count_if(object.properties, &ObjectRules::Property::is_required));
  ObjectRules counted = object;
  if (counted.count.n_min <= n_required) counted.count.n_min = 0;
  if (!object.others.empty() && counted.count.n_min > 1) {
    return fail(Code::kUnsupported,
                format_text("minProperties of {} with {} required ones needs additionalProperties "
                            "to be false: keys might repeat",
                            object.count.n_min, n_required));
  }
  if (object.others.empty() && counted.count.n_min > object.properties.size()) return {};
  if (object.others.empty() && counted.count.n_max >= object.properties.size()) {
    counted.count.n_max.reset();
  }
  MemberRules(counted, writer).run(rule);
  return {};
}

}  // namespace slipstream
