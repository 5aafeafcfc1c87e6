// find_symbols(): where a name is defined.
//
// First what has the name as it was written, then in other case, then names that begin with it. A
// name can say of what it is part, as code does: "Parser::next", "parser.next" or "parser/next".
//
// Threads: as the Database.
// Errors:  as the Database; kInvalidArgument for a name that is empty or too long.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "retrieval/store/projects.h"

namespace slipstream {

struct SymbolRequest {
  std::string name;
  std::string path_prefix = {};  // only files below it, relative to the root; empty: all
  int n_results_max = 20;
};

struct FoundSymbol {
  enum class Match : std::uint8_t { kExact, kOtherCase, kPrefix };

  std::string root;  // of the project
  std::string path;  // relative to it
  std::string name;
  std::string kind;   // as ctags calls it
  std::string scope;  // of what it is a part; empty: of nothing
  int first_line = 0;
  int last_line = 0;  // 0: not known
  Match match = Match::kExact;
};

// The best first.
[[nodiscard]] Result<std::vector<FoundSymbol>> find_symbols(Database& database,
                                                            std::span<const Project> projects,
                                                            const SymbolRequest& request);

}  // namespace slipstream
