#include "engine/embedding/reading_kind.h"

#include <algorithm>

#include "engine/embedding/text_reader.h"

namespace slipstream {

std::optional<ReadingKind> reading_kind(const GgufModel& model) {
  const std::int64_t pooling =
      model.integer("%s.pooling_type").value_or(LLAMA_POOLING_TYPE_UNSPECIFIED);
  if (pooling == LLAMA_POOLING_TYPE_RANK) return ReadingKind::kRanks;
  if (pooling > LLAMA_POOLING_TYPE_NONE) return ReadingKind::kVectors;
  if (model.architecture().contains("bert")) return ReadingKind::kVectors;
  return std::nullopt;
}

int read_tokens_max(const GgufModel& model, int n_asked) {
  const std::int64_t n_wished = n_asked > 0 ? n_asked : kReadTokens;
  const std::int64_t n_trained = model.integer("%s.context_length").value_or(n_wished);
  return static_cast<int>(std::clamp<std::int64_t>(n_trained, 1, n_wished));
}

std::uint64_t reading_bytes(const GgufModel& model, int n_tokens_max) {
  constexpr double kFixed = 64 << 20;  // vocabulary, graphs, threads' scratch
  const auto size = [&model](const char* key) {
    constexpr std::int64_t kSane = 1 << 20;  // numbers of a header are claims
    return static_cast<double>(std::clamp<std::int64_t>(model.integer(key).value_or(0), 0, kSane));
  };
  const double n = std::max<double>(n_tokens_max, TextReader::kTokensOfBatch);
  const double width = size("%s.embedding_length");
  double bytes = kFixed;
  for (const GgufTensor& tensor : model.tensors()) bytes += static_cast<double>(tensor.n_bytes);
  bytes += n * (8 * width + 2 * size("%s.feed_forward_length")) * sizeof(float);  // of a batch
  bytes += n * n * 6;                                   // who sees whom, in f32 and f16
  bytes += n * size("%s.block_count") * width * 2 * 2;  // a decoder's keys and values in f16
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace slipstream
