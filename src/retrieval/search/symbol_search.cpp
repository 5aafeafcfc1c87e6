#include "retrieval/search/symbol_search.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/format.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

// Of one project: a name such as "main" or "init" is defined thousands of times in a large one.
constexpr int kSymbolsMax = 2000;
// After every name that begins with a text, in the order of bytes: U+10FFFF.
constexpr std::string_view kLastCharacter = "\xF4\x8F\xBF\xBF";

struct SymbolName {
  std::string scope;  // empty: any
  std::string name;
};

SymbolName read_name(std::string_view text) {
  constexpr auto kSeparators = std::to_array<std::string_view>({"::", "->", ".", "#", "/"});
  while (text.ends_with(' ') || text.ends_with('(') || text.ends_with(')')) text.remove_suffix(1);
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::size_t name_begin = 0;
  std::size_t scope_end = 0;
  for (const std::string_view separator : kSeparators) {
    const std::size_t at = text.rfind(separator);
    if (at == std::string_view::npos || at + separator.size() <= name_begin) continue;
    name_begin = at + separator.size();
    scope_end = at;
  }
  if (name_begin == text.size()) return {.scope = {}, .name = std::string(text)};
  return {.scope = std::string(text.substr(0, scope_end)),
          .name = std::string(text.substr(name_begin))};
}

bool is_letter(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Whether a symbol of this scope is meant: that of "a::Parser" is "Parser", that of "MyParser" is not.
bool is_in_scope(std::string_view scope, std::string_view wanted) {
  if (wanted.empty()) return true;
  if (!scope.ends_with(wanted)) return false;
  return scope.size() == wanted.size() || !is_letter(scope[scope.size() - wanted.size() - 1]);
}

struct Lookup {
  const char* where;  // of the symbol's name, with two parameters
  std::string first;
  std::string second;
};

Result<void> add_symbols(Database& database, const Project& project, const Lookup& lookup,
                         const SymbolName& wanted, const std::string& path_prefix,
                         std::vector<FoundSymbol>& found) {
  Result<Statement> select = database.prepare(format_text(
      "SELECT file.path, symbol.name, symbol.kind, symbol.scope, symbol.first_line, "
      "symbol.last_line "
      "FROM symbol JOIN file ON file.content = symbol.content "
      "WHERE symbol.project = ?1 AND {} AND substr(file.path, 1, length(?4)) = ?4 LIMIT ?5",
      lookup.where));
  if (!select) return std::unexpected(select.error());
  const Statement& row = *select;
  select->bind(project.id, lookup.first, lookup.second, path_prefix, kSymbolsMax);
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return {};
    if (!is_in_scope(row.text(3), wanted.scope)) continue;
    const std::string_view name = row.text(1);
    using Match = FoundSymbol::Match;
    const Match match = name == wanted.name                 ? Match::kExact
                        : name.size() == wanted.name.size() ? Match::kOtherCase
                                                            : Match::kPrefix;
    found.push_back({.root = project.root,
                     .path = std::string(row.text(0)),
                     .name = std::string(name),
                     .kind = std::string(row.text(2)),
                     .scope = std::string(row.text(3)),
                     .first_line = static_cast<int>(row.integer(4)),
                     .last_line = static_cast<int>(row.integer(5)),
                     .match = match});
  }
}

}  // namespace

Result<std::vector<FoundSymbol>> find_symbols(Database& database, std::span<const Project> projects,
                                              const SymbolRequest& request) {
  const SymbolName wanted = read_name(request.name);
  if (wanted.name.empty() || wanted.name.size() > kRetrievalLimits.symbol_bytes_max) {
    return fail(Code::kInvalidArgument,
                format_text("a name has 1 to {} bytes", kRetrievalLimits.symbol_bytes_max));
  }
  std::vector<FoundSymbol> found;
  const auto look = [&](const Lookup& lookup) -> Result<void> {
    for (const Project& project : projects) {
      if (Result<void> added =
              add_symbols(database, project, lookup, wanted, request.path_prefix, found);
          !added) {
        return added;
      }
    }
    return {};
  };
  const auto n_max = static_cast<std::size_t>(
      std::clamp(request.n_results_max, 0, static_cast<int>(kRetrievalLimits.results_max)));
  Result<void> looked = look(
      {.where = "symbol.name = ?2 COLLATE NOCASE AND ?3 = ''", .first = wanted.name, .second = {}});
  if (looked && found.size() < n_max) {
    looked = look({.where = "symbol.name > ?2 COLLATE NOCASE AND symbol.name < ?3 COLLATE NOCASE",
                   .first = wanted.name,
                   .second = wanted.name + std::string(kLastCharacter)});
  }
  if (!looked) return std::unexpected(looked.error());
  std::ranges::stable_sort(found, {}, [](const FoundSymbol& symbol) {
    return std::tuple(symbol.match, symbol.name.size(), symbol.path.size(),
                      std::string_view(symbol.path), symbol.first_line);
  });
  if (found.size() > n_max) found.resize(n_max);
  return found;
}

}  // namespace slipstream
