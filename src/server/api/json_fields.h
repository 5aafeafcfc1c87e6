// JsonFields: reads the fields of a JSON object that a client sent. A null field counts as absent,
// and unknown fields are accepted. A field of the wrong type or out of range is an error that names
// the field.
//
// The first error is kept and later reads go on. So a reader reads all fields and checks once:
//
//   JsonFields fields(*body);
//   request.max_tokens = fields.integer("max_tokens", 1, INT_MAX);
//   if (fields.error()) return std::unexpected(*fields.error());
//
// Threads: thread-compatible. Errors: parse_json(): 400.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/json.h"
#include "server/json_limits.h"

namespace slipstream {

[[nodiscard]] ApiResult<Json> parse_json(std::string_view text,
                                         const JsonLimits& limits = kJsonLimits);

class JsonFields {
 public:
  // path: where the object is in the body, for error messages; empty: it is the body itself.
  explicit JsonFields(const Json& object, std::string path = {});

  [[nodiscard]] std::optional<bool> boolean(std::string_view name);
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t min,
                                                    std::int64_t max);
  [[nodiscard]] std::optional<double> number(std::string_view name, double min, double max);
  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  // The field is a text or a list of texts.
  [[nodiscard]] std::vector<std::string> texts(std::string_view name);
  [[nodiscard]] const Json* object(std::string_view name);
  [[nodiscard]] const Json* array(std::string_view name);
  // A field of any type; null if absent.
  [[nodiscard]] const Json* any(std::string_view name) const;

  void refuse(std::string_view name, std::string message);
  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] const std::optional<ApiError>& error() const { return error_; }

 private:
  const Json* typed(std::string_view name, bool (Json::*is_type)() const noexcept,
                    std::string_view expected);

  const Json& object_;
  const std::string path_;
  std::optional<ApiError> error_;
};

}  // namespace slipstream
