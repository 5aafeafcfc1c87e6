// The web app: files that are part of the program and that a browser gets at /.
//
// They are not secret and need no API key, because the page asks the user for the key. Everything
// that the page requests later is an ordinary route. A build without SLIPSTREAM_WEB has only one
// page, which says how to get the app (web_app_absent.cpp).
//
// Threads: immutable. Errors: none.
#pragma once

#include <span>
#include <string_view>

#include "server/http/http_exchange.h"

namespace slipstream {

struct WebFile {
  std::string_view path;  // the path in the request
  std::string_view content_type;
  std::string_view etag;  // including its quotes
  std::span<const unsigned char> body;
  bool is_named_by_hash;  // the content of this path never changes
};

[[nodiscard]] std::span<const WebFile> web_files();  // made by cmake/build_web_app.cmake

[[nodiscard]] const WebFile* find_web_file(std::string_view path);  // null: none

// The status is 304 if the browser already has the file.
[[nodiscard]] HttpReply web_reply(const WebFile& file, const HttpRequest& request);

}  // namespace slipstream
