#include "base/result.h"

#include <cerrno>
#include <system_error>

#include "base/check.h"
#include "base/format.h"

namespace slipstream {
namespace {

struct CodeText {
  std::string_view name;
  std::string_view sentence;
};

CodeText text(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return {"invalid_argument", "The request cannot be satisfied."};
    case Code::kNotFound: return {"not_found", "It does not exist."};
    case Code::kPermission: return {"permission", "Access is not allowed."};
    case Code::kUnsupported: return {"unsupported", "This machine or model cannot do it."};
    case Code::kOutOfMemory: return {"out_of_memory", "There is not enough memory."};
    case Code::kOverloaded: return {"overloaded", "A limit is reached; try again later."};
    case Code::kCancelled: return {"cancelled", "It was cancelled."};
    case Code::kCorrupt: return {"corrupt", "The data is damaged."};
    case Code::kIo: return {"io", "Reading or writing failed."};
  }
  SLIP_CHECK(false, "a Code outside the enumeration");
}

Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR: return Code::kNotFound;
    case EACCES:
    case EPERM: return Code::kPermission;
    case ENOMEM: return Code::kOutOfMemory;
    case EMFILE:
    case ENFILE:
    case EAGAIN: return Code::kOverloaded;
    case EINVAL:
    case EISDIR: return Code::kInvalidArgument;
    case ENOSYS:
    case EOPNOTSUPP: return Code::kUnsupported;
    default: return Code::kIo;
  }
}

}  // namespace

std::string_view name(Code code) { return text(code).name; }
std::string_view sentence(Code code) { return text(code).sentence; }

std::unexpected<Error> fail_errno(int error_number, std::string_view what) {
  return fail(code_of_errno(error_number),
              format_text("{}: {}", what, std::generic_category().message(error_number)));
}

}  // namespace slipstream
