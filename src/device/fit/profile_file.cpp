#include "device/fit/profile_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <boost/hash2/sha2.hpp>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream::turbo {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::string_view kMagic = "SLIPKEYS";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHashBytes = 32;
// No model has more, and with these limits sizes are far from overflow.
constexpr std::uint32_t kLayersMax = 4096;
constexpr std::uint32_t kHeadsMax = 1024;
constexpr std::size_t kFileBytesMax = std::size_t{4} << 30U;

using FileHash = std::array<std::byte, kHashBytes>;

FileHash hash_of(std::span<const std::byte> bytes) {
  boost::hash2::sha2_256 hash;
  hash.update(bytes.data(), bytes.size());
  const auto digest = hash.result();
  FileHash out;
  std::memcpy(out.data(), digest.data(), out.size());
  return out;
}

std::unexpected<Error> no_profile(std::string_view why) {
  return fail(Code::kCorrupt, format_text("not a key profile: {}", why));
}

void append(std::vector<std::byte>& bytes, const void* data, std::size_t n) {
  const auto* first = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), first, first + n);
}

void append(std::vector<std::byte>& bytes, std::size_t number) {
  const auto value = static_cast<std::uint32_t>(number);
  append(bytes, &value, sizeof(value));
}

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  [[nodiscard]] std::size_t n_left() const { return rest_.size(); }

  bool take(void* into, std::size_t n) {
    if (n > rest_.size()) return false;
    std::memcpy(into, rest_.data(), n);
    rest_ = rest_.subspan(n);
    return true;
  }
  bool take(std::uint32_t& number) { return take(&number, sizeof(number)); }
  bool take_finite(std::vector<float>& numbers, std::size_t n) {
    numbers.resize(n);
    return take(numbers.data(), n * sizeof(float)) &&
           std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
  }

 private:
  std::span<const std::byte> rest_;
};

Result<LayerProfile> take_layer(ByteReader& reader) {
  LayerProfile profile;
  std::uint32_t layer = 0;
  std::uint32_t n_heads = 0;
  std::uint32_t head_dim = 0;
  if (!reader.take(layer) || !reader.take(n_heads) || !reader.take(head_dim) ||
      !reader.take(profile.print.data(), profile.print.size())) {
    return no_profile("it ends in the middle of a layer");
  }
  if (layer >= kLayersMax || n_heads == 0 || n_heads > kHeadsMax || head_dim == 0 ||
      std::cmp_greater(head_dim, kHeadDimMax)) {
    return no_profile("a layer has sizes that no model has");
  }
  const std::size_t n = head_dim;
  if (reader.n_left() / sizeof(float) / n_heads < n * (n + 2)) {
    return no_profile("it ends in the middle of a layer");
  }
  profile.layer = static_cast<int>(layer);
  profile.head_dim = static_cast<int>(head_dim);
  profile.heads.resize(n_heads);
  for (HeadBasis& head : profile.heads) {
    if (!reader.take_finite(head.mean, n) || !reader.take_finite(head.directions, n * n) ||
        !reader.take_finite(head.variances, n)) {
      return no_profile("a number is not finite");
    }
    if (!std::ranges::all_of(head.variances, [](float variance) { return variance > 0; })) {
      return no_profile("a variance is not positive");
    }
  }
  return profile;
}

}  // namespace

std::vector<std::byte> encode_profile(const KeyProfile& profile) {
  std::vector<std::byte> bytes;
  append(bytes, kMagic.data(), kMagic.size());
  append(bytes, std::size_t{kVersion});
  append(bytes, profile.size());
  for (const LayerProfile& layer : profile) {
    append(bytes, static_cast<std::size_t>(layer.layer));
    append(bytes, layer.heads.size());
    append(bytes, static_cast<std::size_t>(layer.head_dim));
    append(bytes, layer.print.data(), layer.print.size());
    for (const HeadBasis& head : layer.heads) {
      for (const std::vector<float>* numbers : {&head.mean, &head.directions, &head.variances}) {
        append(bytes, numbers->data(), numbers->size() * sizeof(float));
      }
    }
  }
  const FileHash hash = hash_of(bytes);
  append(bytes, hash.data(), hash.size());
  return bytes;
}

Result<KeyProfile> decode_profile(std::span<const std::byte> bytes) {
  if (bytes.size() < kMagic.size() + 2 * sizeof(std::uint32_t) + kHashBytes ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return no_profile("its first bytes are others");
  }
  ByteReader reader(bytes.first(bytes.size() - kHashBytes).subspan(kMagic.size()));
  std::uint32_t version = 0;
  std::uint32_t n_layers = 0;
  (void)reader.take(version);
  (void)reader.take(n_layers);
  if (version != kVersion) {
    return fail(Code::kUnsupported,
                format_text("a key profile of version {}, and this program reads version {}",
                            version, kVersion));
  }
  if (!std::ranges::equal(hash_of(bytes.first(bytes.size() - kHashBytes)),
                          bytes.last(kHashBytes))) {
    return no_profile("its checksum is another: the file is damaged");
  }
  if (n_layers > kLayersMax) return no_profile("it has more layers than any model");
  KeyProfile profile;
  for (std::uint32_t i = 0; i < n_layers; ++i) {
    Result<LayerProfile> layer = take_layer(reader);
    if (!layer) return std::unexpected(std::move(layer.error()));
    profile.push_back(std::move(*layer));
  }
  if (reader.n_left() != 0) return no_profile("it is longer than its layers");
  return profile;
}

Result<void> write_profile(const std::string& path, const KeyProfile& profile) {
  // The new file replaces what is there. It must never replace a device, such as /dev/null.
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return fail(Code::kInvalidArgument,
                format_text("{} is no regular file: name another for the profile", path));
  }
  // Another process may write the same profile, so each has its own name for an incomplete file.
  const std::string temporary = format_text("{}.{}.part", path, ::getpid());
  const auto write = [&]() -> Result<void> {
    Result<UniqueFd> fd = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!fd) return std::unexpected(fd.error());
    if (Result<void> done = write_exactly(fd->get(), encode_profile(profile)); !done) return done;
    // Otherwise the new name could survive a crash and the bytes not: the old profile would be lost.
    if (::fsync(fd->get()) != 0) return fail_errno(errno, format_text("cannot sync {}", temporary));
    if (::close(fd->release()) != 0) {  // network file systems report a full disk here
      return fail_errno(errno, format_text("cannot write {}", temporary));
    }
    return {};
  };
  Result<void> written = write();
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0) {
    written = fail_errno(errno, format_text("cannot write {}", path));
  }
  if (!written) (void)::unlink(temporary.c_str());
  return written;
}

Result<KeyProfile> read_profile(const std::string& path) {
  const auto read = [&]() -> Result<KeyProfile> {
    const Result<UniqueFd> fd = open_file(path, O_RDONLY);
    if (!fd) return std::unexpected(fd.error());
    struct stat status{};
    if (::fstat(fd->get(), &status) != 0) return fail_errno(errno, "cannot read " + path);
    const auto n_bytes = static_cast<std::size_t>(status.st_size);
    if (!S_ISREG(status.st_mode) || n_bytes > kFileBytesMax) {
      return fail(Code::kCorrupt, path + " is no key profile: not a file of such a size");
    }
    std::vector<std::byte> bytes(n_bytes);
    if (Result<void> filled = read_exactly(fd->get(), bytes, 0); !filled) {
      return std::unexpected(std::move(filled.error()));
    }
    Result<KeyProfile> profile = decode_profile(bytes);
    if (!profile) {
      return fail(profile.error().code, format_text("{} is {}", path, profile.error().message));
    }
    return profile;
  };
  Result<KeyProfile> profile = read();
  if (!profile) {
    profile.error().message += "; `slipstream calibrate MODEL` makes one";
  }
  return profile;
}

}  // namespace slipstream::turbo
