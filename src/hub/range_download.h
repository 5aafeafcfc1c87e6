// Fetches what is missing of a file, over several connections at once.
//
// A connection takes a run of missing chunks at a time and asks for it as one range, so that there
// are few requests; each chunk is marked as it is complete. A transfer that breaks off is taken up
// again at the byte where it stopped. The first error that no other try mends ends all connections;
// what is complete stays on disk.
//
// Threads: call from one thread; on_progress is called on it.
// Errors:  as of http_verdict.h and partial_file.h; kCancelled.
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
  // That may fail one after the other, without a byte in between, before a connection gives up.
  int n_retries = 5;
  // Ends it within a second; what is complete stays on disk.
  std::stop_token stop = {};
};

// What kCancelled says.
[[nodiscard]] Error stopped_download();

[[nodiscard]] Result<void> download_ranges(
    const HttpRequest& request, const Subject& subject, PartialFile& file,
    const DownloadOptions& options,
    const std::function<void(std::uint64_t done_bytes)>& on_progress);

}  // namespace slipstream::hub
