#include "hub/http_verdict.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"

namespace slipstream::hub {
namespace {

// If a server asks for a longer wait, the user is told instead.
constexpr std::chrono::seconds kWaitMax(600);

Error access_error(const HttpAnswer& answer, const Subject& subject) {
  if (answer.error_code == "GatedRepo") {
    return {Code::kPermission,
            format_text("{} is gated: accept its licence at {}, then set HF_TOKEN to a token of "
                        "that account{}",
                        subject.repo_id, subject.page,
                        subject.has_token ? " (the token that is set was not enough)" : "")};
  }
  if (subject.has_token) {
    return {Code::kPermission,
            format_text("the hub refuses {} to the token that is set ({}): accept its licence at "
                        "{} if it has one, and check HF_TOKEN",
                        subject.repo_id, answer.status, subject.page)};
  }
  return {Code::kPermission,
          format_text("{} does not exist or is not public ({}): check the name; if it is private "
                      "or gated, accept its licence at {} and set HF_TOKEN",
                      subject.repo_id, answer.status, subject.page)};
}

std::optional<std::uint64_t> read_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Whether a text such as "bytes 5-9/10" begins with the requested byte, ends within the range, and
// has the right file size.
bool is_right_range(std::string_view text, const HttpRequest::Range& asked, std::uint64_t n_bytes) {
  if (!skip(text, "bytes ")) return false;
  const std::optional<std::uint64_t> first = read_number(text);
  if (!first || !skip(text, "-")) return false;
  const std::optional<std::uint64_t> last = read_number(text);
  if (!last || !skip(text, "/")) return false;
  const std::optional<std::uint64_t> total = read_number(text);
  return total && text.empty() && *first == asked.begin && *last >= *first && *last < asked.end &&
         *total == n_bytes;
}

}  // namespace

Verdict judge(const HttpAnswer& answer, const Subject& subject) {
  const std::string host = host_of(answer.url);
  if (!answer.failure.empty()) {
    if (answer.is_unreachable) {
      return {.error = Error{Code::kOverloaded,
                             format_text("cannot reach {}: {}; check the network (models that are "
                                         "installed work without it: slipstream list)",
                                         host, answer.failure)},
              .is_worth_retrying = true};
    }
    return {.error = Error{answer.is_temporary ? Code::kOverloaded : Code::kIo,
                           format_text("the transfer from {} failed: {}", host, answer.failure)},
            .is_worth_retrying = answer.is_temporary};
  }
  const long status = answer.status;
  if (status == 200 || status == 206) return {.error = std::nullopt};
  if (status == 401 || status == 403) return {.error = access_error(answer, subject)};
  if (status == 404 || status == 410) {
    return {.error = Error{Code::kNotFound, format_text("the hub has no {}: check the name at {}",
                                                        subject.repo_id, subject.page)}};
  }
  if (status == 408 || status == 429 || status >= 500) {
    const std::chrono::seconds wait = answer.retry_after.value_or(std::chrono::seconds(0));
    if (wait > kWaitMax) {
      return {.error = Error{Code::kOverloaded,
                             format_text("{} is busy ({}): run the same command again in {} s",
                                         host, status, wait.count())}};
    }
    return {.error = Error{Code::kOverloaded,
                           format_text("{} is busy or out of order ({}): run the same command "
                                       "again later, it resumes where it stopped",
                                       host, status)},
            .is_worth_retrying = true,
            .wait_min = wait};
  }
  return {.error = Error{Code::kIo,
                         format_text("{} answered a download with status {}: is HF_ENDPOINT right?",
                                     host, status)}};
}

std::optional<Error> check_range(const HttpAnswer& answer, const HttpRequest::Range& asked,
                                 std::uint64_t n_bytes) {
  const std::string host = host_of(answer.url);
  if (answer.status == 206) {
    if (is_right_range(answer.content_range, asked, n_bytes)) return std::nullopt;
    return Error{Code::kCorrupt,
                 format_text("{} sent '{}' when asked for bytes {}-{} of {}: it was discarded; a "
                             "proxy in between may be broken",
                             host, answer.content_range, asked.begin, asked.end - 1, n_bytes)};
  }
  // Without ranges, the whole file is right only if all of it was requested.
  const bool is_whole = asked.begin == 0 && asked.end == n_bytes;
  if (is_whole && answer.content_bytes.value_or(n_bytes) == n_bytes) return std::nullopt;
  return Error{Code::kCorrupt, format_text("{} sends the whole file when asked for bytes {}-{} of "
                                           "{}: it was discarded; a proxy in between may be broken",
                                           host, asked.begin, asked.end - 1, n_bytes)};
}

std::chrono::milliseconds backoff(int n_failures) {
  constexpr std::chrono::milliseconds kFirst(500);
  constexpr std::chrono::milliseconds kMax(30'000);
  return std::min(kMax, kFirst * (1 << std::clamp(n_failures - 1, 0, 10)));
}

}  // namespace slipstream::hub
