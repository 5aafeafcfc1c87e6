// A key profile may hold anything: it is refused, or written again it is the same bytes. The input
// is a file without its checksum, which is put behind it, because chance does not find checksums.
#include <boost/hash2/sha2.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "device/fit/profile_file.h"
#include "harness.h"

int fuzz_one(const std::uint8_t* data, std::size_t size) {
  using namespace slipstream;
  const std::span bytes = std::as_bytes(std::span(data, size));
  (void)turbo::decode_profile(bytes);
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  boost::hash2::sha2_256 hash;
  hash.update(file.data(), file.size());
  const auto digest = hash.result();
  file.append_range(std::as_bytes(std::span(digest.data(), digest.size())));
  if (const Result<turbo::KeyProfile> profile = turbo::decode_profile(file); profile) {
    SLIP_CHECK(turbo::encode_profile(*profile) == file, "another file than was read");
  }
  return 0;
}
