#include "retrieval/content/chunker.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

struct Line {
  std::size_t begin;
  std::size_t end;           // behind its line break
  std::uint8_t is_good = 0;  // to begin a chunk with: 0 is bad, kBest where a symbol begins
};

constexpr std::uint8_t kBest = 8;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

std::string_view text_of(std::string_view text, const Line& line) {
  std::string_view found = text.substr(line.begin, line.end - line.begin);
  if (found.ends_with('\n')) found.remove_suffix(1);
  return found;
}

bool is_blank(std::string_view line) { return std::ranges::all_of(line, is_space); }

// Comments and decorators stand above what they belong to.
bool belongs_to_next(std::string_view line) {
  constexpr auto kBeginnings = std::to_array<std::string_view>(
      {"//", "/*", "*", "# ", "#[", "#!", "--", ";", "%", "@", "[[", "template", "<!--"});
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  return std::ranges::any_of(kBeginnings,
                             [line](std::string_view begin) { return line.starts_with(begin); });
}

std::size_t indentation(std::string_view line) {
  std::size_t n = 0;
  for (const char c : line) {
    if (!is_space(c)) break;
    n += c == '\t' ? 4 : 1;
  }
  return n;
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = text.find('\n', at);
    const std::size_t end = found == std::string_view::npos ? text.size() : found + 1;
    lines.push_back({.begin = at, .end = end});
    at = end;
  }
  return lines;
}

// Where chunks may begin by the looks of the text: after a blank line, less indented is better.
void judge_by_looks(std::string_view text, std::vector<Line>& lines) {
  bool after_blank = true;
  for (Line& line : lines) {
    const std::string_view content = text_of(text, line);
    const bool blank = is_blank(content);
    if (!blank) {
      const std::size_t indent = std::min<std::size_t>(indentation(content) / 2, 3);
      line.is_good = static_cast<std::uint8_t>(after_blank ? 6 - indent : 3 - indent);
    }
    after_blank = blank || content.starts_with('\f');
  }
}

// One line of a table is no place to begin.
bool is_piece(const Symbol& symbol) {
  constexpr auto kLines = std::to_array<std::string_view>(
      {"macro", "enumerator", "variable", "constant", "alias", "typedef"});
  return symbol.last_line > symbol.first_line || !std::ranges::contains(kLines, symbol.kind);
}

void judge_by_symbols(std::string_view text, std::span<const Symbol> symbols,
                      std::vector<Line>& lines) {
  constexpr std::size_t kLinesAboveMax = 60;
  for (const Symbol& symbol : symbols) {
    if (symbol.first_line < 1 || static_cast<std::size_t>(symbol.first_line) > lines.size() ||
        !is_piece(symbol)) {
      continue;
    }
    const auto own = static_cast<std::size_t>(symbol.first_line - 1);
    if (lines[own].is_good == kBest) continue;
    std::size_t at = own;
    while (at > 0 && own - at < kLinesAboveMax && lines[at - 1].is_good != kBest &&
           belongs_to_next(text_of(text, lines[at - 1]))) {
      lines[at].is_good = 0;
      --at;
    }
    lines[at].is_good = kBest;
  }
}

// Where the chunk ends that begins at line `first`: before the best line to begin the next with. Of
// equally good ones it takes that which makes the chunk as long as it should be, or nearly so.
std::size_t end_of_chunk(const std::vector<Line>& lines, std::size_t first) {
  const RetrievalLimits& limits = kRetrievalLimits;
  const std::size_t begin = lines[first].begin;
  std::size_t best = 0;
  double best_value = -1;
  for (std::size_t i = first + 1; i <= lines.size(); ++i) {
    const bool is_end = i == lines.size();  // as good as a symbol
    const std::size_t n_bytes = (is_end ? lines.back().end : lines[i].begin) - begin;
    if (n_bytes > limits.chunk_bytes_max && best != 0) break;
    const double share = static_cast<double>(n_bytes) / static_cast<double>(limits.chunk_bytes);
    const double fits = share <= 1 ? share : std::max(0.0, 2 - share);
    // What is whole counts more than a good length: a long function is cut, but not begun at the end
    // of another's chunk.
    const double value =
        fits + (is_end || lines[i].is_good == kBest ? 1.5 : lines[i].is_good / 16.0);
    if (best == 0 || value > best_value) {
      best = i;
      best_value = value;
    }
    if (n_bytes > limits.chunk_bytes_max) break;
  }
  if (lines.back().end - begin <= limits.chunk_bytes) return lines.size();
  return best;
}

void add_name(std::string& names, std::string_view name) {
  constexpr std::size_t kNamesBytesMax = 1000;
  if (name.empty() || names.size() + name.size() > kNamesBytesMax) return;
  if (!names.empty()) names += ' ';
  names += name;
}

// Adds the names of symbols that begin in the chunk, and of the innermost that it begins within.
void name_chunks(std::span<const Symbol> symbols, std::vector<Chunk>& chunks) {
  std::size_t next = 0;
  std::vector<const Symbol*> open;
  for (Chunk& chunk : chunks) {
    std::erase_if(open, [&](const Symbol* symbol) { return symbol->last_line < chunk.first_line; });
    for (const Symbol* symbol : open) add_name(chunk.names, symbol->name);
    for (; next < symbols.size() && symbols[next].first_line <= chunk.last_line; ++next) {
      const Symbol& symbol = symbols[next];
      add_name(chunk.names, symbol.scope);
      add_name(chunk.names, symbol.name);
      if (symbol.last_line > chunk.last_line) open.push_back(&symbol);
    }
  }
}

}  // namespace

std::vector<Chunk> cut_into_chunks(std::string_view text, std::span<const Symbol> symbols) {
  std::vector<Line> lines = lines_of(text);
  judge_by_looks(text, lines);
  judge_by_symbols(text, symbols, lines);
  std::vector<Chunk> chunks;
  for (std::size_t first = 0; first < lines.size();) {
    const std::size_t end = end_of_chunk(lines, first);
    const std::size_t last_byte = lines[end - 1].end;
    const std::string_view content =
        text.substr(lines[first].begin, last_byte - lines[first].begin);
    if (content.find_first_not_of(" \t\r\n\f\v") != std::string_view::npos) {
      chunks.push_back({.first_line = static_cast<int>(first) + 1,
                        .last_line = static_cast<int>(end),
                        .begin = lines[first].begin,
                        .end = last_byte,
                        .names = {}});
    }
    first = end;
  }
  name_chunks(symbols, chunks);
  return chunks;
}

}  // namespace slipstream
