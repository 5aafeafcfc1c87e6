// How the converter reports errors: each error names the place in the client's schema, as a JSON
// pointer in the form of a URI fragment ("#/properties/age/minimum").
//
// Threads: pure functions.
// Errors:  these functions make them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace slipstream {

// "schema, #/properties/age/minimum: MESSAGE". A long pointer is cut: it may be as long
// as the schema.
[[nodiscard]] std::unexpected<Error> refuse(Code code, std::string_view pointer,
                                            std::string_view message);

// The same error with the place of its cause added, unless it has a place already.
[[nodiscard]] std::unexpected<Error> refuse(std::string_view pointer, const Error& error);

// Appends one step to a JSON pointer (RFC 6901).
[[nodiscard]] std::string pointer_to(std::string_view pointer, std::string_view step);

}  // namespace slipstream
