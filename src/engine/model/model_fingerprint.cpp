#include "engine/model/model_fingerprint.h"

#include <fcntl.h>
#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <boost/hash2/sha2.hpp>
#include <cstring>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "engine/forecast/gguf_model.h"

namespace slipstream {
namespace {

// Raise it whenever the same model and scheme give different states.
constexpr std::string_view kStateVersion = "slipstream state 1";
constexpr std::uint64_t kSampleBytes = 4096;

using Hash = boost::hash2::sha2_256;

// Adds the length too, so that two texts never hash like two others.
void add(Hash& hash, std::string_view text) {
  const std::uint64_t n = text.size();
  hash.update(&n, sizeof(n));
  hash.update(text.data(), text.size());
}

Result<void> add_range(Hash& hash, const UniqueFd& fd, std::uint64_t offset,
                       std::uint64_t n_bytes) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(n_bytes, 1U << 20U));
  while (n_bytes > 0) {
    const auto part = std::span(bytes).first(std::min<std::uint64_t>(n_bytes, bytes.size()));
    if (Result<void> read = read_exactly(fd.get(), part, offset); !read) return read;
    hash.update(part.data(), part.size());
    offset += part.size();
    n_bytes -= part.size();
  }
  return {};
}

Result<void> add_samples(Hash& hash, const UniqueFd& fd, const GgufTensor& tensor) {
  const std::uint64_t n = std::min(kSampleBytes, tensor.n_bytes);
  for (const std::uint64_t at : {std::uint64_t{0}, (tensor.n_bytes - n) / 2, tensor.n_bytes - n}) {
    if (Result<void> added = add_range(hash, fd, tensor.file_offset + at, n); !added) return added;
  }
  return {};
}

Result<void> add_file(Hash& hash, const GgufModel& model, std::size_t file_idx) {
  const std::filesystem::path& path = model.files()[file_idx];
  const Result<UniqueFd> fd = open_file(path.string(), O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  std::error_code unknown;
  std::uint64_t header_bytes = std::filesystem::file_size(path, unknown);
  if (unknown) return fail(Code::kIo, format_text("{}: {}", path.string(), unknown.message()));
  for (const GgufTensor& tensor : model.tensors()) {
    if (tensor.file_idx == file_idx) header_bytes = std::min(header_bytes, tensor.file_offset);
  }
  if (Result<void> added = add_range(hash, *fd, 0, header_bytes); !added) return added;
  for (const GgufTensor& tensor : model.tensors()) {
    if (tensor.file_idx != file_idx) continue;
    if (Result<void> added = add_samples(hash, *fd, tensor); !added) return added;
  }
  return {};
}

// Whether libllama takes the rotations for long contexts (llama_model::get_rope_factors).
bool has_long_rotations(const GgufModel& model, std::int64_t n_ctx) {
  const std::optional<std::int64_t> n_original =
      model.integer("%s.rope.scaling.original_context_length");
  return n_original && n_ctx > *n_original && model.has_tensors("rope_factors_long");
}

Result<Fingerprint> hash_with_model(Hash& hash, const std::filesystem::path& path,
                                    const Positions& positions = {}) {
  const Result<GgufModel> model = GgufModel::open(path);
  if (!model) return std::unexpected(model.error());
  if (!positions.rope.is_own()) add(hash, to_text(positions.rope));
  if (has_long_rotations(*model, positions.n_ctx)) add(hash, "long");
  for (std::size_t i = 0; i < model->files().size(); ++i) {
    if (const Result<void> added = add_file(hash, *model, i); !added) {
      return std::unexpected(added.error());
    }
  }
  const auto digest = hash.result();
  Fingerprint fingerprint;
  static_assert(sizeof(digest) == sizeof(fingerprint));
  std::memcpy(fingerprint.data(), digest.data(), fingerprint.size());
  return fingerprint;
}

}  // namespace

Result<Fingerprint> fingerprint_of(const std::filesystem::path& path, std::string_view kv,
                                   const std::filesystem::path& key_profile,
                                   const Positions& positions) {
  Hash hash;
  add(hash, kStateVersion);
  add(hash, ggml_version());
  add(hash, llama_version());
  add(hash, kv);
  // A profile that is missing or cannot be read has no effect on states either.
  std::error_code missing;
  const std::uintmax_t n_bytes = std::filesystem::file_size(key_profile, missing);
  if (const auto fd = open_file(key_profile.string(), O_RDONLY); fd && !missing) {
    if (const auto added = add_range(hash, *fd, 0, n_bytes); !added) {
      return std::unexpected(added.error());
    }
  }
  return hash_with_model(hash, path, positions);
}

Result<Fingerprint> fingerprint_of_model(const std::filesystem::path& path) {
  Hash hash;
  return hash_with_model(hash, path);
}

std::string to_hex(const Fingerprint& fingerprint) {
  std::string text;
  for (const std::byte byte : fingerprint) {
    text += format_text("{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

}  // namespace slipstream
