#include "hub/listing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace slipstream::hub {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 50;
constexpr std::size_t kPathPartBytesMax = 255;  // the limit of Linux
constexpr std::size_t kPathBytesMax = 1024;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

// Quotes and cuts the text, because it may contain anything.
std::string shown(std::string_view text) {
  return Json(text.substr(0, 100)).dump(-1, ' ', true, Json::error_handler_t::replace);
}

Result<RemoteFile> parse_file(const Json& sibling) {
  if (!sibling.is_object())
    return fail(Code::kCorrupt, "the hub's listing has a file without a name");
  RemoteFile file{.path = text_of(sibling, "rfilename"), .n_bytes = 0, .hash = {}};
  if (!is_safe_path(file.path)) {
    return fail(
        Code::kCorrupt,
        format_text(
            "the hub lists a file {}, which would lie outside of its folder: nothing is downloaded",
            shown(file.path)));
  }
  const auto size = sibling.find("size");
  if (size != sibling.end() && size->is_number_unsigned())
    file.n_bytes = size->get<std::uint64_t>();
  const auto lfs = sibling.find("lfs");
  if (lfs != sibling.end() && lfs->is_object() && lfs->contains("sha256")) {
    file.hash = {.kind = ContentHash::Kind::kSha256, .hex = text_of(*lfs, "sha256")};
  } else if (sibling.contains("blobId")) {
    file.hash = {.kind = ContentHash::Kind::kGitBlob, .hex = text_of(sibling, "blobId")};
  }
  const bool is_right_length =
      file.hash.hex.size() == (file.hash.kind == ContentHash::Kind::kSha256 ? 64U : 40U);
  const bool has_hash = is_right_length && is_hex_name(file.hash.hex);
  if ((!file.hash.hex.empty() && !has_hash) || file.n_bytes > kFileBytesMax) {
    return fail(
        Code::kCorrupt,
        format_text("the hub's listing has an impossible hash or size for {}", shown(file.path)));
  }
  return file;
}

}  // namespace

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kPathBytesMax) return false;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (part.empty() || part == "." || part == ".." || part.size() > kPathPartBytesMax)
      return false;
    start = end + 1;
  }
  return std::ranges::none_of(
      path, [](char c) { return c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_hex_name(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<RepoListing> parse_listing(std::string_view json) {
  const Json answer = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const Json none;
  const Json& siblings =
      answer.is_object() && answer.contains("siblings") ? answer["siblings"] : none;
  if (!siblings.is_array()) {
    return fail(Code::kCorrupt,
                "the hub's answer is not a listing of a model: is HF_ENDPOINT right?");
  }
  RepoListing listing{.commit = text_of(answer, "sha"), .files = {}};
  if (!is_hex_name(listing.commit)) {
    return fail(Code::kCorrupt,
                format_text("the hub's listing has an invalid commit: {}", shown(listing.commit)));
  }
  for (const Json& sibling : siblings) {
    Result<RemoteFile> file = parse_file(sibling);
    if (!file) return std::unexpected(std::move(file.error()));
    listing.files.push_back(std::move(*file));
  }
  return listing;
}

}  // namespace slipstream::hub
