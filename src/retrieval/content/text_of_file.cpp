#include "retrieval/content/text_of_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/unique_fd.h"
#include "base/utf8.h"
#include "retrieval/content/converter.h"
#include "retrieval/content/html_text.h"
#include "retrieval/files/secrets.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

std::string lower_case_name(std::string_view path) {
  std::string name(path.substr(path.rfind('/') + 1));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// Written by programs, for programs.
bool is_lock_file(const std::string& name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock",
       "cargo.lock", "poetry.lock", "pipfile.lock", "uv.lock", "composer.lock", "gemfile.lock",
       "go.sum", "flake.lock", "packages.lock.json", "gradle.lockfile", "mix.lock",
       "pubspec.lock"});
  return std::ranges::contains(kNames, name);
}

bool is_html(const std::string& name) {
  return name.ends_with(".html") || name.ends_with(".htm") || name.ends_with(".xhtml");
}

// No part of the path may be a link: between listing and reading somebody could have put one there.
Result<UniqueFd> open_below(int folder, const std::string& path) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a pipe of this name must not be waited for
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how))));
  if (!fd && errno == ENOSYS) {  // before Linux 5.6
    fd = UniqueFd(::openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  }
  if (fd) return fd;
  if (errno == ENOTDIR || errno == ELOOP)
    return fail(Code::kNotFound, format_text("{} is gone", path));
  return fail_errno(errno, format_text("cannot open {}", path));
}

bool has_nul(std::string_view bytes) {
  constexpr std::size_t kProbeBytes = 8192;
  return bytes.substr(0, kProbeBytes).contains('\0');
}

std::string from_utf16(std::string_view bytes, bool is_big_endian) {
  std::string text;
  char32_t high = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto first = static_cast<unsigned char>(bytes[i]);
    const auto second = static_cast<unsigned char>(bytes[i + 1]);
    const auto unit =
        static_cast<char32_t>(is_big_endian ? first << 8U | second : second << 8U | first);
    if (unit >= 0xD800 && unit < 0xDC00) {
      high = unit;
    } else if (unit >= 0xDC00 && unit < 0xE000) {
      if (high != 0) append_utf8(text, 0x10000 + ((high - 0xD800) << 10U) + (unit - 0xDC00));
      high = 0;
    } else {
      append_utf8(text, unit);
      high = 0;
    }
  }
  return text;
}

std::string from_windows_1252(std::string_view bytes) {
  // Of 0x80 to 0x9F; the others are those of Unicode.
  constexpr auto kUpper = std::to_array<char32_t>(
      {0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
       0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD, 0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
       0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178});
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    append_utf8(text, byte >= 0x80 && byte < 0xA0 ? kUpper[byte - 0x80] : byte);
  }
  return text;
}

Result<std::string> decoded(std::string bytes) {
  if (bytes.starts_with("\xFF\xFE")) return from_utf16(std::string_view(bytes).substr(2), false);
  if (bytes.starts_with("\xFE\xFF")) return from_utf16(std::string_view(bytes).substr(2), true);
  if (has_nul(bytes)) return fail(Code::kUnsupported, "binary");
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.erase(0, 3);
  if (is_utf8(bytes)) return bytes;
  // Text in an old encoding has few such bytes, compressed data has many.
  const auto n_control = std::ranges::count_if(bytes, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f' &&
           byte != 0x1B && byte != '\b' && byte != '\v';
  });
  if (static_cast<std::size_t>(n_control) > bytes.size() / 100) {
    return fail(Code::kUnsupported, "binary");
  }
  return from_windows_1252(bytes);
}

// Whether most of it is in lines that nobody wrote.
bool is_data(std::string_view text) {
  std::size_t n_long = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end - at > kRetrievalLimits.line_bytes_max) n_long += end - at;
    at = end + 1;
  }
  // A short text of one paragraph a line is no data.
  return n_long > text.size() / 2 && n_long > 16 * kRetrievalLimits.line_bytes_max;
}

Result<std::string> read_all(int fd, std::size_t n_bytes) {
  std::string bytes(n_bytes, '\0');
  std::size_t n_read = 0;
  while (n_read < n_bytes) {
    const ssize_t n =
        ::pread(fd, bytes.data() + n_read, n_bytes - n_read, static_cast<off_t>(n_read));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "cannot read it");
    if (n == 0) break;  // it has become shorter
    n_read += static_cast<std::size_t>(n);
  }
  bytes.resize(n_read);
  return bytes;
}

std::unexpected<Error> too_large(std::size_t n_bytes_max) {
  return fail(Code::kUnsupported, format_text("larger than {}", format_bytes(n_bytes_max)));
}

}  // namespace

Result<FileText> text_of_bytes(std::string bytes, std::string_view path) {
  const std::string name = lower_case_name(path);
  if (is_lock_file(name)) return fail(Code::kUnsupported, "lock file");
  FileText file;
  if (const Converter* converter = find_converter(name)) {
    Result<std::string> converted = convert(*converter, bytes);
    if (!converted) return std::unexpected(converted.error());
    bytes = std::move(*converted);
    file.is_converted = true;
  }
  if (bytes.size() > kRetrievalLimits.file_bytes_max) {
    return too_large(kRetrievalLimits.file_bytes_max);
  }
  Result<std::string> text = decoded(std::move(bytes));
  if (!text) return std::unexpected(text.error());
  if (holds_private_key(*text)) return fail(Code::kUnsupported, "private key");
  if (is_data(*text)) return fail(Code::kUnsupported, "data in long lines");
  if (!is_html(name)) {
    file.text = std::move(*text);
    return file;
  }
  file.text = html_text(*text);
  file.source = std::move(*text);
  return file;
}

Result<FileText> read_text(int folder, const std::string& path) {
  const Result<UniqueFd> fd = open_below(folder, path);
  if (!fd) return std::unexpected(fd.error());
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0)
    return fail_errno(errno, format_text("cannot read {}", path));
  if (!S_ISREG(status.st_mode)) return fail(Code::kNotFound, format_text("{} is no file", path));
  const bool is_document = find_converter(lower_case_name(path)) != nullptr;
  const std::size_t n_bytes_max =
      is_document ? kRetrievalLimits.document_bytes_max : kRetrievalLimits.file_bytes_max;
  if (static_cast<std::size_t>(status.st_size) > n_bytes_max) return too_large(n_bytes_max);
  Result<std::string> bytes = read_all(fd->get(), static_cast<std::size_t>(status.st_size));
  if (!bytes) return std::unexpected(bytes.error());
  Result<FileText> file = text_of_bytes(std::move(*bytes), path);
  if (file) file->stamp = stamp_of(status);
  return file;
}

}  // namespace slipstream
