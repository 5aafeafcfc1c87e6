// The page that a browser gets if the web app was not built.
#include <array>
#include <string_view>

#include "server/routes/web_app.h"

namespace slipstream {
namespace {

constexpr std::string_view kText =
    "slipstream serve is running: its API is at /v1 (OpenAI's), its figures at /metrics.\n"
    "\n"
    "This program was built without the web app. To have it here, install nodejs and npm and "
    "build\n"
    "with the option: cmake --preset release -DSLIPSTREAM_WEB=ON\n";

constexpr auto kBytes = [] {
  std::array<unsigned char, kText.size()> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(kText[i]);
  return bytes;
}();

constexpr std::array kFiles = {WebFile{.path = "/",
                                       .content_type = "text/plain; charset=utf-8",
                                       .etag = "\"absent\"",
                                       .body = kBytes,
                                       .is_named_by_hash = false}};

}  // namespace

std::span<const WebFile> web_files() { return kFiles; }

}  // namespace slipstream
