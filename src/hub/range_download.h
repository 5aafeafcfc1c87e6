// Fetches the missing parts of a file over several connections at once.
//
// A connection takes a run of missing chunks at a time and requests it as one range, so that there
// are few requests. Each chunk is marked when it is complete. A transfer that breaks off resumes at
// the byte where it stopped. The first error that cannot be retried ends all connections. Complete
// chunks stay on disk.
//
// Threads: call from one thread; on_progress is called on it.
// Errors:  those of http_verdict.h and partial_file.h; kCancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "hub/http_verdict.h"
#include "hub/partial_file.h"

namespace slipstream::hub {

struct DownloadOptions {
  int n_connections = 4;
  // How many tries may fail in a row, without a byte in between, before a connection gives up.
  int n_retries = 5;
  // Ends the download within a second. Complete chunks stay on disk.
  std::stop_token stop = {};
};

// The error for kCancelled.
[[nodiscard]] Error stopped_download();

[[nodiscard]] Result<void> download_ranges(
    const HttpRequest& request, const Subject& subject, PartialFile& file,
    const DownloadOptions& options,
    const std::function<void(std::uint64_t done_bytes)>& on_progress);

}  // namespace slipstream::hub
