// The rules of one object: named properties in their order, each there or not, then others in any
// order, so many in all. What stands between them is JSON's marks, or others.
//
// Other keys may repeat in an answer: no grammar of a bearable size can prevent it. Each value of
// such a key is valid, so what a reader makes of it is valid too, but how many different keys there
// are is not known: a minimum that needs them is refused.
//
// Threads: pure function. Errors: kUnsupported, see above.
#pragma once

#include <vector>

#include "base/result.h"
#include "server/schema/gbnf_writer.h"
#include "server/schema/json_text.h"
#include "server/schema/shape.h"

namespace slipstream {

// What stands around the members of an object.
struct ObjectMarks {
  GbnfSequence open;
  GbnfSequence first;  // before the first member
  GbnfSequence next;   // before each other
  GbnfSequence close;
  GbnfSequence close_empty;  // where no member was written
};
[[nodiscard]] ObjectMarks json_marks(JsonText& text);

struct ObjectRules {
  struct Property {
    GbnfSequence member;  // key and value
    bool is_required;
  };
  ObjectMarks marks;
  CountRange count;
  std::vector<Property> properties;
  std::vector<Property> others;
  bool is_impossible = false;
};

// Adds the object as one more alternative of the rule.
[[nodiscard]] Result<void> add_object(RuleId rule, const ObjectRules& object, GbnfWriter& writer);

}  // namespace slipstream
