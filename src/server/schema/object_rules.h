// The grammar rules of one object: the named properties in their order, each present or not, then
// other properties in any order, with limits on how many there are in all. The marks between them
// are those of JSON or of another format.
//
// Other keys may repeat in an answer, because no grammar of reasonable size can prevent it. Each
// value of such a key is valid, so whatever a reader keeps is valid too. But the number of
// different keys is then unknown, so a minimum that depends on these keys is refused.
//
// Threads: pure function.
// Errors:  kUnsupported, see above.
#pragma once

#include <vector>

#include "base/result.h"
#include "server/schema/gbnf_writer.h"
#include "server/schema/json_text.h"
#include "server/schema/shape.h"

namespace slipstream {

// The marks around the members of an object.
struct ObjectMarks {
  GbnfSequence open;
  GbnfSequence first;  // before the first member
  GbnfSequence next;   // before each further member
  GbnfSequence close;
  GbnfSequence close_empty;  // if there are no members
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
