#include "retrieval/dense/vector_cache.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

// While vectors are being computed, all are read again as often as this.
constexpr std::chrono::seconds kReadAgainAfter(2);

Result<std::shared_ptr<const VectorTable>> read_table(Database& database,
                                                      const EmbedderInfo& embedder,
                                                      ProjectId project) {
  Result<Statement> select = database.prepare(
      "SELECT chunk_vector.chunk, vector.packed FROM chunk_vector "
      "JOIN vector ON vector.id = chunk_vector.vector JOIN chunk ON chunk.id = chunk_vector.chunk "
      "JOIN content ON content.id = chunk.content "
      "WHERE content.project = ? AND content.n_files > 0 ORDER BY chunk_vector.chunk");
  if (!select) return std::unexpected(select.error());
  select->bind(project);
  auto table = std::make_shared<VectorTable>(embedder.n_dimensions);
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return table;
    if (table->size() >= kRetrievalLimits.vectors_max) {
      return fail(Code::kUnsupported,
                  format_text("more than {} pieces cannot be compared for every query",
                              kRetrievalLimits.vectors_max));
    }
    // What is not a vector was not written by us: the chunk has none.
    if (const auto vector = read_packed(select->bytes(1), embedder.n_dimensions)) {
      table->add(select->integer(0), *vector);
    }
  }
}

}  // namespace

VectorTable::VectorTable(int n_dimensions)
    : n_codes_(padded(static_cast<std::size_t>(n_dimensions))) {}

void VectorTable::add(ChunkId chunk, const PackedVector& vector) {
  SLIP_CHECK(padded(vector.codes.size()) == n_codes_, "a vector of other dimensions");
  chunks_.push_back(chunk);
  scales_.push_back(vector.scale);
  codes_.insert(codes_.end(), vector.codes.begin(), vector.codes.end());
  codes_.resize(chunks_.size() * n_codes_);
}

std::vector<std::int8_t> VectorTable::pad(const PackedVector& query) const {
  std::vector<std::int8_t> codes = query.codes;
  codes.resize(n_codes_);
  return codes;
}

std::vector<NearChunk> VectorTable::nearest(const PackedVector& query, std::size_t n_max) const {
  const std::vector<std::int8_t> codes = pad(query);
  std::vector<NearChunk> all(chunks_.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int32_t dot = dot_of_codes(codes.data(), codes_.data() + i * n_codes_, n_codes_);
    all[i] = {.chunk = chunks_[i], .cosine = static_cast<float>(dot) * scales_[i] * query.scale};
  }
  const auto n = static_cast<std::ptrdiff_t>(std::min(n_max, all.size()));
  std::ranges::partial_sort(all, all.begin() + n, std::greater(), &NearChunk::cosine);
  all.resize(static_cast<std::size_t>(n));
  return all;
}

std::optional<float> VectorTable::cosine(const PackedVector& query, ChunkId chunk) const {
  const auto found = std::ranges::lower_bound(chunks_, chunk);
  if (found == chunks_.end() || *found != chunk) return std::nullopt;
  const auto i = static_cast<std::size_t>(found - chunks_.begin());
  const std::int32_t dot = dot_of_codes(pad(query).data(), codes_.data() + i * n_codes_, n_codes_);
  return static_cast<float>(dot) * scales_[i] * query.scale;
}

Result<std::shared_ptr<const VectorTable>> VectorCache::get(Database& database,
                                                            const EmbedderInfo& embedder,
                                                            ProjectId project) {
  const auto now = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);  // so that several searches do not read the same
  Entry& entry = entries_[project];
  const bool is_of_embedder = entry.table != nullptr && entry.embedder_id == embedder.id;
  if (is_of_embedder &&
      (entry.n_changes == embedder.n_changes || now - entry.read < kReadAgainAfter)) {
    return entry.table;
  }
  const auto table = read_table(database, embedder, project);
  if (!table) return table;
  entry = {
      .embedder_id = embedder.id, .n_changes = embedder.n_changes, .read = now, .table = *table};
  return table;
}

}  // namespace slipstream
