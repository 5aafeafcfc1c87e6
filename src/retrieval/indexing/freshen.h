// freshen(): brings an index up to date before it is searched, by whoever can write it.
//
// If another process keeps the index up to date, that one is asked. Otherwise this one does it.
//
// Threads: thread-safe.
// Errors:  those of the index and of reading its projects.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "retrieval/store/schema.h"

namespace slipstream {

// Returns false if another process was asked and did not do it in time.
[[nodiscard]] Result<bool> freshen(const std::string& index_path,
                                   std::chrono::milliseconds time_max);

// Asks the process that writes the index, and waits. False: the time was up.
[[nodiscard]] Result<bool> ask_writer(Database& database, std::chrono::milliseconds time_max);

}  // namespace slipstream
