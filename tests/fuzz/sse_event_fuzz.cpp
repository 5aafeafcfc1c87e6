// Whatever a model writes, an event of a stream is one event: a client that splits at empty lines
// gets it whole, and its JSON says the same text with what is no UTF-8 replaced.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "harness.h"
#include "server/json.h"
#include "server/sse.h"

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  using slipstream::Json;
  const std::string_view bytes(reinterpret_cast<const char*>(data), n_bytes);
  const std::string event = slipstream::event_of(
      slipstream::dump({{"choices", Json::array({{{"delta", {{"content", bytes}}}}})}}));
  constexpr std::string_view kStart = "data: ";
  SLIP_CHECK(event.starts_with(kStart) && event.ends_with("\n\n"), "not an event");
  const std::string_view json =
      std::string_view(event).substr(kStart.size(), event.size() - kStart.size() - 2);
  SLIP_CHECK(json.find_first_of("\r\n") == json.npos, "an event in several lines");
  const Json parsed = Json::parse(json, nullptr, false);
  SLIP_CHECK(!parsed.is_discarded(), "an event that is no JSON");
  const auto text = parsed["choices"][0]["delta"]["content"].get<std::string>();
  std::string repaired;
  const bool is_utf8 =
      slipstream::append_repaired_utf8(repaired, bytes) == bytes.size() && repaired == bytes;
  SLIP_CHECK(!is_utf8 || text == bytes, "valid text is changed");
  return 0;
}
