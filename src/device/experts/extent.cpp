#include "device/experts/extent.h"

#include <fcntl.h>
#include <gguf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream::turbo {
namespace {

// The number of bytes at each end of a tensor that are compared with the file.
constexpr std::size_t kComparedBytes = 4096;

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<void> check_length(const Extent& extent, std::size_t n_bytes, const std::string& name) {
  std::error_code error;
  const std::uint64_t n_file_bytes = std::filesystem::file_size(extent.path, error);
  if (error) {
    return fail(Code::kNotFound,
                format_text("cannot ask the size of {}: {}", extent.path, error.message()));
  }
  if (n_bytes > n_file_bytes || extent.offset > n_file_bytes - n_bytes) {
    return fail(Code::kCorrupt,
                format_text("{} ends at byte {}, and tensor {} should end at {}: the file is "
                            "incomplete",
                            extent.path, n_file_bytes, name, extent.offset + n_bytes));
  }
  return {};
}

// A line of /proc/self/maps: "7f00-7f80 r--s 00001000 fe:00 1234   /path/with spaces".
std::optional<Extent> extent_in_line(const std::string& line, std::uint64_t address) {
  std::istringstream words(line);
  std::string range;
  std::string rights;
  std::string offset_text;
  std::string device;
  std::string inode;
  words >> range >> rights >> offset_text >> device >> inode >> std::ws;
  std::string path;
  std::getline(words, path);
  const std::size_t dash = range.find('-');
  if (dash == std::string::npos || !path.starts_with('/')) return std::nullopt;
  const auto start = parse_hex(std::string_view(range).substr(0, dash));
  const auto end = parse_hex(std::string_view(range).substr(dash + 1));
  const auto offset = parse_hex(offset_text);
  if (!start || !end || !offset || address < *start || address >= *end) return std::nullopt;
  return Extent{.path = path, .offset = *offset + (address - *start), .is_mapped = true};
}

std::optional<Extent> find_mapped(std::span<const std::byte> bytes) {
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  for (std::string line; std::getline(maps, line);) {
    if (std::optional<Extent> extent = extent_in_line(line, address)) return extent;
  }
  return std::nullopt;
}

struct GgufDeleter {
  void operator()(gguf_context* context) const { gguf_free(context); }
};

// The offset of the tensor in a GGUF file; nullopt if it is not in it, or if it is no GGUF file.
std::optional<std::uint64_t> offset_in_gguf(const std::string& path, int fd,
                                            const std::string& tensor_name) {
  std::array<std::byte, 4> magic{};
  if (!read_exactly(fd, magic, 0) || std::memcmp(magic.data(), "GGUF", magic.size()) != 0) {
    return std::nullopt;
  }
  const std::unique_ptr<gguf_context, GgufDeleter> header(
      gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
  if (!header) return std::nullopt;
  const std::int64_t tensor = gguf_find_tensor(header.get(), tensor_name.c_str());
  if (tensor < 0) return std::nullopt;
  return gguf_get_data_offset(header.get()) + gguf_get_tensor_offset(header.get(), tensor);
}

bool file_has(int fd, std::span<const std::byte> bytes, std::uint64_t offset) {
  const std::size_t n_compared = std::min(bytes.size(), kComparedBytes);
  std::vector<std::byte> from_file(n_compared);
  for (const std::size_t start : {std::size_t{0}, bytes.size() - n_compared}) {
    if (!read_exactly(fd, from_file, offset + start)) return false;
    if (!std::ranges::equal(from_file, bytes.subspan(start, n_compared))) return false;
  }
  return true;
}

std::optional<Extent> find_open(std::span<const std::byte> bytes, const std::string& tensor_name) {
  std::set<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), error);
    if (!error && std::filesystem::is_regular_file(target, error)) paths.insert(target.string());
  }
  for (const std::string& path : paths) {
    const Result<UniqueFd> file = open_file(path, O_RDONLY);
    if (!file) continue;
    const std::optional<std::uint64_t> offset = offset_in_gguf(path, file->get(), tensor_name);
    if (offset && file_has(file->get(), bytes, *offset)) {
      return Extent{.path = path, .offset = *offset, .is_mapped = false};
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Extent> find_extent(std::span<const std::byte> bytes, const std::string& tensor_name) {
  std::optional<Extent> extent = find_mapped(bytes);
  if (!extent) extent = find_open(bytes, tensor_name);
  if (!extent) {
    return fail(Code::kNotFound,
                format_text("tensor {} comes from no file that this program has mapped or open: "
                            "its experts cannot be streamed",
                            tensor_name));
  }
  if (Result<void> fits = check_length(*extent, bytes.size(), tensor_name); !fits) {
    return std::unexpected(std::move(fits.error()));
  }
  return std::move(*extent);
}

void release_mapped_pages(std::span<const std::byte> bytes, const Extent& extent) {
  if (!extent.is_mapped) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t in_page = reinterpret_cast<std::uintptr_t>(bytes.data()) % page;
  const std::size_t skipped = (page - in_page) % page;
  if (bytes.size() < skipped + page) return;
  auto* start = const_cast<std::byte*>(bytes.data() + skipped);
  // Both calls are only advice. If refused, the system takes the memory back when it needs some.
  ::madvise(start, (bytes.size() - skipped) / page * page, MADV_DONTNEED);
  if (const Result<UniqueFd> file = open_file(extent.path, O_RDONLY)) {
    ::posix_fadvise(file->get(), static_cast<off_t>(extent.offset),
                    static_cast<off_t>(bytes.size()), POSIX_FADV_DONTNEED);
  }
}

}  // namespace slipstream::turbo
