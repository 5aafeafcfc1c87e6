// FakeCells: a KV cache for tests. It records for each cell the token, the position and the
// sequences that hold it, and throws where libllama would silently go wrong.
//
// Threads: thread-compatible. Errors: std::logic_error.
#pragma once

#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/prefixes/cells.h"

namespace slipstream {

class FakeCells : public Cells {
 public:
  void copy(SeqId from, SeqId to, int first, int end) override {
    if (first >= end) throw std::logic_error("copies nothing");
    for (int position = first; position < end; ++position) {
      hold(to, position, cell(from, position));
    }
  }

  bool remove(SeqId seq, int first, int end) override {
    const auto begin = held_.lower_bound({seq, first});
    const auto until = held_.lower_bound({seq, end});
    for (auto it = begin; it != until; ++it) {
      auto& holders = cells_.at(it->second).holders;
      holders.erase(seq);
      if (holders.empty()) cells_.erase(it->second);
    }
    held_.erase(begin, until);
    return true;
  }

  // Simulates a step of the model: the sequence gets a new cell.
  void compute(SeqId seq, int position, Token token) {
    cells_[++n_computed_] = {.token = token, .holders = {}};
    hold(seq, position, n_computed_);
  }

  [[nodiscard]] int cell(SeqId seq, int position) const {
    const auto found = held_.find({seq, position});
    if (found == held_.end()) throw std::logic_error("a position without a cell");
    return found->second;
  }

  // The tokens from position 0 on. Throws if the sequence has gaps.
  [[nodiscard]] std::vector<Token> tokens(SeqId seq) const {
    std::vector<Token> tokens;
    for (auto it = held_.lower_bound({seq, 0}); it != held_.end() && it->first.first == seq; ++it) {
      if (it->first.second != static_cast<int>(tokens.size())) throw std::logic_error("a gap");
      tokens.push_back(cells_.at(it->second).token);
    }
    return tokens;
  }

  // Cells held by any sequence, and cells held only by sequences from first_seq on.
  [[nodiscard]] int n_cells() const { return static_cast<int>(cells_.size()); }
  [[nodiscard]] int n_cells_only_from(SeqId first_seq) const {
    int n = 0;
    for (const auto& [id, cell] : cells_) n += *cell.holders.begin() >= first_seq ? 1 : 0;
    return n;
  }

 private:
  struct Cell {
    Token token;
    std::set<SeqId> holders;
  };

  void hold(SeqId seq, int position, int cell) {
    if (!held_.emplace(std::pair(seq, position), cell).second) {
      throw std::logic_error("two cells at one position of a sequence");
    }
    cells_.at(cell).holders.insert(seq);
  }

  std::map<std::pair<SeqId, int>, int> held_;  // sequence and position to cell
  std::map<int, Cell> cells_;
  int n_computed_ = 0;
};

}  // namespace slipstream
