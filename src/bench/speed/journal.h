// Journal: runs.jsonl, the measured turns of a benchmark, one line each, in the order of
// measurement. The first line says what was measured and where. An interrupted run continues where
// its journal ends, if "work" in that line is the same.
//
//   {"work": {"model": ..., "fingerprint": ..., "threads": 1, ...}, "machine": {...}}
//   {"cell": {"kv": "turbo4", "depth": 8192, "sequences": 8}, "repeat": 0, "ended": "...",
//    "seconds": 21.5, "load_average": 0.1, "figures": {...}}
//
// A turn that failed has "error": "why not" instead of figures.
//
// Threads: thread-compatible.
// Errors:  kIo; kInvalidArgument if the file holds other work.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/speed/cell.h"
#include "bench/speed/matrix.h"

namespace slipstream::bench {

struct TurnRecord {
  Turn turn;
  std::optional<CellFigures> figures;
  std::string error;   // if there are no figures
  double seconds = 0;  // for the whole turn: loading, filling or restoring its depth, measuring
};

struct RunHeader {
  nlohmann::json work;     // what is measured; if it differs, it is another run
  nlohmann::json machine;  // where; that of the first run is kept
};

class Journal {
 public:
  [[nodiscard]] static Result<Journal> open(const std::filesystem::path& path,
                                            const RunHeader& header);

  [[nodiscard]] const RunHeader& header() const { return header_; }
  // The last record of each turn.
  [[nodiscard]] const std::vector<TurnRecord>& records() const { return records_; }
  // Excludes turns that failed or were starved: they are tried again.
  [[nodiscard]] std::set<Turn> done() const;

  [[nodiscard]] Result<void> add(TurnRecord record);

 private:
  Journal(RunHeader header, std::vector<TurnRecord> records, std::ofstream file)
      : header_(std::move(header)), records_(std::move(records)), file_(std::move(file)) {}

  RunHeader header_;
  std::vector<TurnRecord> records_;
  std::ofstream file_;
};

}  // namespace slipstream::bench
