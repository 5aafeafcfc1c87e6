// CodePointSet: a set of Unicode scalar values (code points without surrogates). It is stored as
// disjoint ranges in ascending order with gaps between them, so that equal sets are equal lists.
//
// Threads: immutable. Errors: none.
#pragma once

#include <compare>
#include <vector>

namespace slipstream {

struct CodePointRange {
  char32_t first;
  char32_t last;
  auto operator<=>(const CodePointRange&) const = default;
};

class CodePointSet {
 public:
  CodePointSet() = default;
  // Takes any ranges with first <= last. Surrogates are dropped: JSON text never contains them.
  explicit CodePointSet(std::vector<CodePointRange> ranges);
  [[nodiscard]] static CodePointSet all();

  [[nodiscard]] const std::vector<CodePointRange>& ranges() const { return ranges_; }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] CodePointSet complement() const;
  [[nodiscard]] CodePointSet intersection(const CodePointSet& other) const;

  auto operator<=>(const CodePointSet&) const = default;

 private:
  std::vector<CodePointRange> ranges_;
};

}  // namespace slipstream
