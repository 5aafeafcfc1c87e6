// Tasks and figures as JSON, for the processes of a benchmark and for runs.jsonl.
//
// Threads: thread-safe. Errors: the from_... functions throw nlohmann's exceptions.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/speed/cell.h"

namespace slipstream::bench {

void to_json(nlohmann::json& json, const Cell& cell);
void from_json(const nlohmann::json& json, Cell& cell);
void to_json(nlohmann::json& json, const CellTask& task);
void from_json(const nlohmann::json& json, CellTask& task);
void to_json(nlohmann::json& json, const CellFigures& figures);
void from_json(const nlohmann::json& json, CellFigures& figures);

}  // namespace slipstream::bench
