// Result<T>: how an operation that can fail for reasons outside the program returns.
//
// A bug is not an Error: it is a SLIP_CHECK (check.h). Codes are few and closed, so that a caller
// can decide by them (retry, refuse, map to HTTP) and the message is for people: it says what could
// not be done, to what, and why.
//
// Threads: immutable.
//
//   Result<UniqueFd> fd = open_file(path, O_RDONLY);
//   if (!fd) return std::unexpected(fd.error());
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace slipstream {

enum class Code {
  kInvalidArgument,  // the caller asked for something that no state could satisfy
  kNotFound,         // what was named does not exist
  kPermission,       // it exists and we may not
  kUnsupported,      // this machine, engine or model cannot do it
  kOutOfMemory,      // memory or KV cells do not suffice
  kOverloaded,       // a limit is reached now; trying later may succeed
  kCancelled,        // the caller gave up, or we are shutting down
  kCorrupt,          // data read back is not what was written
  kIo,               // the operating system failed a read or a write
};

// One lower-case word for logs and one sentence for people.
std::string_view name(Code code);
std::string_view sentence(Code code);

struct Error {
  Code code;
  std::string message;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

// The failure that errno describes: "cannot open model.gguf: No such file or directory".
std::unexpected<Error> fail_errno(int error_number, std::string_view what);

}  // namespace slipstream
