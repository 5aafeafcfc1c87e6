// What an answer of the hub means: good, worth another try, or an error that says what to do.
//
// Threads: immutable.
// Errors:  kPermission (401, 403), kNotFound (404), kOverloaded (429, 5xx, no connection, once the
//          retries are used up), kCorrupt (bytes that were not asked for), kIo (the rest).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/http_get.h"

namespace slipstream::hub {

struct Verdict {
  std::optional<Error> error;  // nullopt if the answer is good
  bool is_worth_retrying = false;
  std::chrono::milliseconds wait_min{0};  // requested by the server
};

// The model for the messages, and the page where a person can read about it.
struct Subject {
  std::string repo_id;
  std::string page;  // https://huggingface.co/org/repo
  bool has_token = false;
};
[[nodiscard]] Verdict judge(const HttpAnswer& answer, const Subject& subject);

// nullopt if these are bytes of the requested range, from a file of n_bytes.
[[nodiscard]] std::optional<Error> check_range(const HttpAnswer& answer,
                                               const HttpRequest::Range& asked,
                                               std::uint64_t n_bytes);

// The wait before retry 1, 2, ...: half a second, doubled each time, at most 30 s.
[[nodiscard]] std::chrono::milliseconds backoff(int n_failures);

}  // namespace slipstream::hub
