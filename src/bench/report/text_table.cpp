#include "bench/report/text_table.h"

#include <algorithm>
#include <utility>

namespace slipstream::bench {

void TextTable::add(Row row) {
  row.resize(rows_.front().size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

std::string TextTable::line(const Row& row, std::string_view between) const {
  const std::vector<std::size_t> width = widths();
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string padding(width[i] - row[i].size(), ' ');
    if (i > 0) text += between;
    text += i == 0 ? row[i] + padding : padding + row[i];
  }
  return text;
}

std::string TextTable::plain() const {
  std::string text;
  for (const Row& row : rows_) text += line(row, "  ") + "\n";
  return text;
}

std::string TextTable::markdown() const {
  std::string text = "| " + line(rows_.front(), " | ") + " |\n|---|";
  for (std::size_t i = 1; i < rows_.front().size(); ++i) text += "---:|";
  text += "\n";
  for (std::size_t i = 1; i < rows_.size(); ++i) text += "| " + line(rows_[i], " | ") + " |\n";
  return text;
}

}  // namespace slipstream::bench
