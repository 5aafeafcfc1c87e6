// How the converter refuses: every error names the place in the client's schema, as a JSON pointer
// in the form of a URI fragment ("#/properties/age/minimum").
//
// Threads: pure functions. Errors: they make them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace slipstream {

// "schema, #/properties/age/minimum: MESSAGE". A pointer may be as long as the schema: it is cut.
[[nodiscard]] std::unexpected<Error> refuse(Code code, std::string_view pointer,
                                            std::string_view message);

// The same error with the place of what caused it, unless it has one already.
[[nodiscard]] std::unexpected<Error> refuse(std::string_view pointer, const Error& error);

// One more step of a JSON pointer (RFC 6901).
[[nodiscard]] std::string pointer_to(std::string_view pointer, std::string_view step);

}  // namespace slipstream
