#include "bench/quality/base_rows.h"

#include <fcntl.h>

#include <array>
#include <cstring>

#include "base/format.h"

namespace slipstream::quality {
namespace {

constexpr std::uint64_t kMagic = 0x31776f7265736162;  // "baserow1"
using Head = std::array<std::uint64_t, 3>;

}  // namespace

// FNV-1a, which guards against a base of another text, not against malice.
std::uint64_t hash_of(std::span<const Tokens> chunks) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const Tokens& chunk : chunks) {
    mix(chunk.size());
    for (const Token token : chunk) mix(static_cast<std::uint64_t>(token));
  }
  return hash;
}

Result<BaseRowsWriter> BaseRowsWriter::create(const std::string& path, std::size_t n_vocab,
                                              std::uint64_t tokens_hash) {
  Result<UniqueFd> file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!file) return std::unexpected(file.error());
  const Head head = {kMagic, n_vocab, tokens_hash};
  if (const auto written = write_exactly(file->get(), std::as_bytes(std::span(head))); !written) {
    return std::unexpected(written.error());
  }
  return BaseRowsWriter(std::move(*file), n_vocab);
}

Result<LogProbsView> BaseRowsWriter::add(std::span<const float> logits) {
  if (const auto encoded = encode_log_probs(logits, row_); !encoded) {
    return std::unexpected(encoded.error());
  }
  if (const auto written = write_exactly(file_.get(), std::as_bytes(std::span(row_))); !written) {
    return std::unexpected(written.error());
  }
  return LogProbsView(row_);
}

Result<BaseRows> BaseRows::open(const std::string& path, std::size_t n_vocab,
                                std::uint64_t tokens_hash, std::size_t n_rows) {
  Result<Mapping> file = Mapping::of_file(path);
  if (!file) return std::unexpected(file.error());
  const std::span<const std::byte> bytes = std::as_const(*file).bytes();
  Head head = {};
  const std::size_t n_bytes = sizeof(Head) + n_rows * row_codes(n_vocab) * sizeof(std::uint16_t);
  if (bytes.size() == n_bytes) std::memcpy(head.data(), bytes.data(), sizeof(Head));
  if (head != Head{kMagic, n_vocab, tokens_hash}) {
    return fail(Code::kCorrupt,
                format_text("{} does not hold the f16 run of this text: run eval again", path));
  }
  return BaseRows(std::move(*file), n_vocab);
}

LogProbsView BaseRows::row(std::size_t idx) const {
  const auto* codes = reinterpret_cast<const std::uint16_t*>(file_.bytes().data() + sizeof(Head));
  const std::size_t n = row_codes(n_vocab_);
  return LogProbsView({codes + idx * n, n});
}

}  // namespace slipstream::quality
