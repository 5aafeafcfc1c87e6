#include "server/routes/web_app.h"

#include <algorithm>
#include <boost/beast/http/field.hpp>
#include <string>

namespace slipstream {

namespace http = boost::beast::http;

namespace {

// The page shows what a model writes. If someone finds a way to inject markup with it, this policy
// lets no injected script run and no request go to another host. Even inline styles are forbidden.
constexpr std::string_view kPolicy =
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

}  // namespace

const WebFile* find_web_file(std::string_view path) {
  const std::span<const WebFile> files = web_files();
  const auto file = std::ranges::find(files, path, &WebFile::path);
  return file == files.end() ? nullptr : &*file;
}

HttpReply web_reply(const WebFile& file, const HttpRequest& request) {
  HttpReply reply{
      .content_type = std::string(file.content_type),
      .headers = {{"ETag", std::string(file.etag)},
                  // Browsers request the page itself every time, so that an update shows at once.
                  {"Cache-Control",
                   file.is_named_by_hash ? "public, max-age=31536000, immutable" : "no-cache"},
                  {"Content-Security-Policy", std::string(kPolicy)},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Referrer-Policy", "no-referrer"},
                  {"Cross-Origin-Opener-Policy", "same-origin"}}};
  if (request[http::field::if_none_match] == file.etag) {
    reply.status = 304;
  } else {
    reply.body.assign(file.body.begin(), file.body.end());
  }
  return reply;
}

}  // namespace slipstream
