#include "hub/file_hash.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream::hub {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string to_hex(std::span<const unsigned char> bytes) {
  std::string hex;
  for (const unsigned char byte : bytes) hex += format_text("{:02x}", byte);
  return hex;
}

}  // namespace

Result<std::string> hash_file(const std::filesystem::path& path, ContentHash::Kind kind,
                              const std::function<bool(std::uint64_t)>& on_bytes) {
  const Result<UniqueFd> fd = open_file(path.string(), O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0) {
    return fail_errno(errno, format_text("cannot access {}", path.string()));
  }
  const auto n_bytes = static_cast<std::uint64_t>(status.st_size);
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  const bool is_git = kind == ContentHash::Kind::kGitBlob;
  bool is_good = context != nullptr &&
                 EVP_DigestInit_ex(context.get(), is_git ? EVP_sha1() : EVP_sha256(), nullptr) == 1;
  if (is_git) {
    const std::string head = format_text("blob {}", n_bytes);
    is_good = is_good && EVP_DigestUpdate(context.get(), head.c_str(), head.size() + 1) == 1;
  }
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (std::uint64_t offset = 0; is_good && offset < n_bytes;) {
    const auto part =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), n_bytes - offset));
    if (Result<void> read = read_exactly(fd->get(), part, offset); !read) {
      return std::unexpected(std::move(read.error()));
    }
    is_good = EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
    offset += part.size();
    if (on_bytes && !on_bytes(offset)) {
      return fail(Code::kCancelled, format_text("the hash of {} is not wanted", path.string()));
    }
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned digest_bytes = 0;
  if (!is_good || EVP_DigestFinal_ex(context.get(), digest.data(), &digest_bytes) != 1) {
    return fail(Code::kUnsupported,
                format_text("OpenSSL cannot compute a {} here: look at its configuration",
                            is_git ? "SHA-1" : "SHA-256"));
  }
  return to_hex(std::span(digest).first(digest_bytes));
}

}  // namespace slipstream::hub
