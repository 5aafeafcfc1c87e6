// The web app: files that a browser gets at /, part of the program.
//
// They are no secret and are given to who has no API key: the page asks for the key. Everything it
// asks for later is a route like any other. A build without SLIPSTREAM_WEB has one page that says
// how to get the app (web_app_absent.cpp).
//
// Threads: immutable. Errors: none.
#pragma once

#include <span>
#include <string_view>

#include "server/http/http_exchange.h"

namespace slipstream {

struct WebFile {
  std::string_view path;  // as a browser asks for it
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  std::span<const unsigned char> body;
  bool is_named_by_hash;  // what has this path never changes
};

[[nodiscard]] std::span<const WebFile> web_files();  // made by cmake/build_web_app.cmake

[[nodiscard]] const WebFile* find_web_file(std::string_view path);  // null: none

// 304 where the browser has it already.
[[nodiscard]] HttpReply web_reply(const WebFile& file, const HttpRequest& request);

}  // namespace slipstream
