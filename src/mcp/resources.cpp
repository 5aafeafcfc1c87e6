#include "mcp/resources.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "base/format_bytes.h"
#include "mcp/mcp_limits.h"
#include "retrieval/search/indexed_file.h"

namespace slipstream {
namespace {

constexpr std::string_view kScheme = "file://";
constexpr std::size_t kUriBytesMax = 16384;

RpcError rpc_error_of(const Error& error) {
  return {.code = kRpcInternalError, .message = error.message};
}

RpcError bad_cursor() {
  return {.code = kRpcInvalidParams, .message = "'cursor' must be one that resources/list gave"};
}

bool stands_for_itself(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~/").contains(c);
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The last file of a page: where the next one begins.
struct Cursor {
  ProjectId project = 0;
  std::string path = {};
};

RpcResult<Cursor> read_cursor(const Json* cursor) {
  if (cursor == nullptr) return Cursor{};
  if (!cursor->is_string()) return std::unexpected(bad_cursor());
  const std::string_view text = cursor->get_ref<const std::string&>();
  Cursor read;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), read.project);
  if (problem != std::errc() || end == text.data() + text.size() || *end != '/' ||
      text.size() > kUriBytesMax) {
    return std::unexpected(bad_cursor());
  }
  read.path = std::string(end + 1, text.data() + text.size());
  return read;
}

Json resource_of(const Project& project, const IndexedFile& file) {
  const std::size_t slash = file.path.rfind('/');
  return {{"uri", file_uri(project.root + "/" + file.path)},
          {"name", file.path},
          {"title", slash == std::string::npos ? file.path : file.path.substr(slash + 1)},
          {"mimeType", "text/plain"},
          {"size", file.n_bytes}};
}

}  // namespace

std::string file_uri(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri(kScheme);
  for (const char c : path) {
    if (stands_for_itself(c)) {
      uri += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      uri += '%';
      uri += kHex[byte >> 4U];
      uri += kHex[byte & 0xFU];
    }
  }
  return uri;
}

std::optional<std::string> path_of_uri(std::string_view uri) {
  if (!uri.starts_with(kScheme) || uri.size() > kUriBytesMax) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  if (uri.starts_with("localhost/")) uri.remove_prefix(std::string_view("localhost").size());
  if (!uri.starts_with('/') || uri.find_first_of("?#") != std::string_view::npos)
    return std::nullopt;
  std::string path;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    if (uri[i] != '%') {
      path += uri[i];
      continue;
    }
    if (i + 2 >= uri.size()) return std::nullopt;
    const int high = hex_value(uri[i + 1]);
    const int low = hex_value(uri[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    path += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return path;
}

RpcResult<Json> list_resources(CorpusView& corpus, const Json* cursor) {
  const RpcResult<Cursor> begin = read_cursor(cursor);
  if (!begin) return std::unexpected(begin.error());
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(rpc_error_of(reader.error()));
  Result<std::vector<Project>> projects = reader->projects();
  if (!projects) return std::unexpected(rpc_error_of(projects.error()));
  // A project that is added meanwhile comes last.
  std::ranges::sort(*projects, {}, &Project::id);
  Json resources = Json::array();
  Json result = {{"resources", Json::array()}};
  for (const Project& project : *projects) {
    if (project.id < begin->project) continue;
    const std::string_view after =
        project.id == begin->project ? std::string_view(begin->path) : "";
    const int n_left = kMcpLimits.resources_of_page_max - static_cast<int>(resources.size());
    const auto files = list_indexed_files(reader->database(), project, after, n_left);
    if (!files) return std::unexpected(rpc_error_of(files.error()));
    for (const IndexedFile& file : *files) resources.push_back(resource_of(project, file));
    if (std::ssize(*files) == n_left) {
      result["nextCursor"] = format_text("{}/{}", project.id, files->back().path);
      break;
    }
  }
  result["resources"] = std::move(resources);
  return result;
}

RpcResult<Json> list_resource_templates(CorpusView& corpus) {
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(rpc_error_of(reader.error()));
  const Result<std::vector<Project>> projects = reader->projects();
  if (!projects) return std::unexpected(rpc_error_of(projects.error()));
  Json templates = Json::array();
  for (const Project& project : *projects) {
    templates.push_back({{"uriTemplate", file_uri(project.root) + "/{+path}"},
                         {"name", project.root},
                         {"description", "A file of this folder, as text"},
                         {"mimeType", "text/plain"}});
  }
  return Json{{"resourceTemplates", std::move(templates)}};
}

RpcResult<Json> read_resource(CorpusView& corpus, const std::string& uri, int not_found) {
  const auto none = [&](std::string_view why) {
    return std::unexpected(RpcError{.code = not_found,
                                    .message = format_text("Resource not found: {}", why),
                                    .data = {{"uri", rpc_quoted(uri)}}});
  };
  const std::optional<std::string> path = path_of_uri(uri);
  if (!path) return none("it must be a file:// URI of a file that resources/list has");
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(rpc_error_of(reader.error()));
  const Result<std::vector<Project>> projects = reader->projects();
  if (!projects) return std::unexpected(rpc_error_of(projects.error()));
  for (const Project& project : *projects) {
    if (!path->starts_with(project.root + "/")) continue;
    const auto file =
        find_indexed_file(reader->database(), project, path->substr(project.root.size() + 1));
    if (!file) return none(file.error().message);
    if (static_cast<std::size_t>(std::max<std::int64_t>(0, file->n_bytes)) >
        kMcpLimits.resource_bytes_max) {
      return none(format_text("it is longer than {}: read it in parts, with the tool read_lines",
                              format_bytes(kMcpLimits.resource_bytes_max)));
    }
    const Result<std::string> text = read_indexed_file(reader->database(), project, *file);
    if (!text) return none(text.error().message);
    Json contents = Json::array({{{"uri", uri}, {"mimeType", "text/plain"}, {"text", *text}}});
    return Json{{"contents", std::move(contents)}};
  }
  return none("it is in no project of the index");
}

}  // namespace slipstream
