#include "hub/cache_layout.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream::hub {
namespace {

constexpr std::string_view kFolderPrefix = "models--";

// A temporary name that two processes do not share, unlike a fixed one.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  return path.parent_path() / format_text(".{}.{}", path.filename().string(), ::getpid());
}

Result<void> make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail_errno(error.value(), format_text("cannot make {}", path.string()));
  return {};
}

Result<void> rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  const int error = errno;
  ::unlink(from.c_str());
  return fail_errno(error, format_text("cannot make {}", to.string()));
}

}  // namespace

std::string folder_name(const ModelName& model) {
  return format_text("{}{}--{}", kFolderPrefix, model.org, model.repo);
}

std::optional<ModelName> model_of_folder(std::string_view folder_name) {
  if (!folder_name.starts_with(kFolderPrefix)) return std::nullopt;
  const std::string_view id = folder_name.substr(kFolderPrefix.size());
  const std::size_t dashes = id.find("--");
  if (dashes == std::string_view::npos) return std::nullopt;
  Result<ModelName> model =
      parse_model_name(format_text("{}/{}", id.substr(0, dashes), id.substr(dashes + 2)));
  if (!model) return std::nullopt;
  return std::move(*model);
}

RepoCache::RepoCache(std::filesystem::path cache, const ModelName& model)
    : cache_(std::move(cache)), folder_(cache_ / folder_name(model)) {}

std::filesystem::path RepoCache::lock(std::string_view hash) const {
  return cache_ / ".locks" / folder_.filename() / format_text("{}.lock", hash);
}

Result<void> RepoCache::make_folders() const {
  for (const std::filesystem::path& path :
       {blobs(), snapshots(), folder_ / "refs", lock("x").parent_path()}) {
    if (Result<void> made = make_folder(path); !made) return made;
  }
  return {};
}

Result<void> RepoCache::link(std::string_view commit, std::string_view path,
                             const ContentHash& hash) const {
  const std::filesystem::path place = snapshot(commit, path);
  if (Result<void> made = make_folder(place.parent_path()); !made) return made;
  std::string target = "../../";
  for (std::ptrdiff_t i = std::ranges::count(path, '/'); i > 0; --i) target += "../";
  target += "blobs/" + hash.hex;
  const std::filesystem::path temporary = temporary_beside(place);
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0) {
    return fail_errno(errno, format_text("cannot make a link {}", place.string()));
  }
  return rename_file(temporary, place);
}

std::string RepoCache::main_commit() const {
  const Result<std::string> text = read_small_file((folder_ / "refs" / "main").string());
  if (!text) return "";
  const std::string commit = text->substr(0, text->find_first_of(" \r\n"));
  return is_hex_name(commit) ? commit : "";
}

Result<void> RepoCache::set_main_commit(std::string_view commit) const {
  const std::filesystem::path place = folder_ / "refs" / "main";
  const std::filesystem::path temporary = temporary_beside(place);
  const Result<UniqueFd> fd = open_file(temporary.string(), O_WRONLY | O_CREAT | O_TRUNC);
  if (!fd) return std::unexpected(fd.error());
  if (Result<void> written = write_exactly(fd->get(), std::as_bytes(std::span(commit))); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  return rename_file(temporary, place);
}

}  // namespace slipstream::hub
