// list_files(): the files of a project: what git would show where the folder is a repository, all of
// it elsewhere.
//
// Links are not followed: they could lead out of the project, or in circles. Folders of secrets,
// caches that say so (CACHEDIR.TAG), and what package managers install are left out.
//
// Threads: thread-safe.
// Errors:  those of reading the root; kOverloaded for too many files; kCancelled. A folder below
//          the root that cannot be read is counted.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"

namespace slipstream {

// What tells whether a file has changed since it was read.
struct FileStamp {
  std::int64_t n_bytes = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;  // of the inode: a program can set the other back
  std::int64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};
[[nodiscard]] FileStamp stamp_of(const struct stat& status);

struct ListedFile {
  std::string path;  // relative to the root
  FileStamp stamp;
};

struct FileList {
  std::vector<ListedFile> files;
  std::vector<std::string> folders;  // all that were read, relative to the root; "" is the root
  int n_secret = 0;                  // files and folders left out by their names
  int n_unreadable = 0;              // folders
  int n_unnameable = 0;              // files whose names are not UTF-8 or too long
};

[[nodiscard]] Result<FileList> list_files(const std::filesystem::path& root,
                                          const std::stop_token& stop);

}  // namespace slipstream
