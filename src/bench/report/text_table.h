// TextTable: rows under a heading, for a terminal or as Markdown. The first column is left-aligned,
// numbers are right-aligned.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream::bench {

class TextTable {
 public:
  using Row = std::vector<std::string>;

  explicit TextTable(Row head) : rows_{std::move(head)} {}
  // A row shorter than the heading is filled up.
  void add(Row row);

  [[nodiscard]] std::string plain() const;
  [[nodiscard]] std::string markdown() const;

 private:
  [[nodiscard]] std::string line(const Row& row, std::string_view between) const;
  [[nodiscard]] std::vector<std::size_t> widths() const;

  std::vector<Row> rows_;
};

}  // namespace slipstream::bench
