#include "server/api/image_parts.h"

#include <optional>
#include <utility>

#include "base/format.h"
#include "server/base64.h"

namespace slipstream {
namespace {

constexpr std::string_view kDataUri = "data:image/";
constexpr std::string_view kBase64 = ";base64,";

const std::string* text_of_member(const Json& object, std::string_view name) {
  const Json* text = member(object, name);
  return text == nullptr ? nullptr : text->get_ptr<const std::string*>();
}

bool is_of_type(const Json& object, std::string_view name) {
  const std::string* type = text_of_member(object, "type");
  return type != nullptr && *type == name;
}

}  // namespace

bool is_image_part(const Json& part) { return is_of_type(part, "image_url"); }

Json image_part(std::string url, const std::string& path) {
  return {{"type", "image_url"}, {"image_url", {{"url", std::move(url)}}}, {"path", path}};
}

ApiResult<Json> image_part_of_block(Json& block, const std::string& path) {
  const Json* source = member(block, "source");
  if (source == nullptr || !source->is_object()) {
    return refuse(path, format_text("'{}.source' is required", path));
  }
  if (const std::string* url = text_of_member(*source, "url");
      url != nullptr && is_of_type(*source, "url")) {
    return image_part(*url, path);
  }
  const std::string* media_type = text_of_member(*source, "media_type");
  const std::string* data = text_of_member(*source, "data");
  if (!is_of_type(*source, "base64") || media_type == nullptr || data == nullptr) {
    return refuse(path, format_text("'{}.source' must be {{\"type\": \"base64\", \"media_type\": "
                                    "\"image/png\", \"data\": ...}}",
                                    path));
  }
  return image_part(format_text("data:{}{}{}", *media_type, kBase64, *data), path);
}

ApiResult<Json> image_part_of_input(Json& part, const std::string& path) {
  const std::string* url = text_of_member(part, "image_url");
  if (url == nullptr) {
    return refuse(path, format_text("'{}.image_url' must be a data URI with the image: files are "
                                    "not stored here",
                                    path));
  }
  return image_part(*url, path);
}

ApiResult<std::vector<std::byte>> read_image_url(std::string_view url, const std::string& path) {
  if (url.starts_with("http://") || url.starts_with("https://")) {
    return refuse(path, format_text("'{}' is an address: this server fetches nothing, because it "
                                    "could reach what you cannot. Send the image itself, as "
                                    "data:image/png;base64,...",
                                    path));
  }
  constexpr std::size_t kTypeMax = 64;
  const std::size_t comma = url.substr(0, kTypeMax).find(',');
  const bool is_data = url.starts_with(kDataUri) && comma != std::string_view::npos &&
                       url.substr(0, comma + 1).ends_with(kBase64);
  std::optional<std::vector<std::byte>> file;
  if (is_data) file = from_base64(url.substr(comma + 1));
  if (!file || file->empty()) {
    return refuse(path, format_text("'{}' must be an image as data:image/png;base64,...", path));
  }
  return std::move(*file);
}

}  // namespace slipstream
