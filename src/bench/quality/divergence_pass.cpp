#include "bench/quality/divergence_pass.h"

#include <llama.h>

#include <cmath>
#include <vector>

#include "bench/quality/base_rows.h"

namespace slipstream::quality {
namespace {

std::size_t n_vocab_of(const Model& model) {
  return static_cast<std::size_t>(llama_vocab_n_tokens(model.vocab()));
}

Result<void> read_all(Model& model, std::span<const Tokens> chunks, int n_step_tokens,
                      const TakeLogits& take, const OnProgress& on_progress) {
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (Result<void> read = read_chunk(model, chunks[i], n_step_tokens, take); !read) return read;
    if (on_progress) {
      on_progress(static_cast<double>(i + 1) / static_cast<double>(chunks.size()));
    }
  }
  return {};
}

}  // namespace

Result<double> record_base(Model& model, std::span<const Tokens> chunks, int n_step_tokens,
                           const std::string& path, const OnProgress& on_progress) {
  Result<BaseRowsWriter> writer = BaseRowsWriter::create(path, n_vocab_of(model), hash_of(chunks));
  if (!writer) return std::unexpected(writer.error());
  double nll = 0;
  double n_tokens = 0;
  const auto take = [&](std::span<const float> logits, Token next) -> Result<void> {
    const Result<LogProbsView> row = writer->add(logits);
    if (!row) return std::unexpected(row.error());
    nll -= static_cast<double>((*row)[static_cast<std::size_t>(next)]);
    ++n_tokens;
    return {};
  };
  if (const auto read = read_all(model, chunks, n_step_tokens, take, on_progress); !read) {
    return std::unexpected(read.error());
  }
  return std::exp(nll / n_tokens);
}

Result<DivergenceFigures> measure(Model& model, std::span<const Tokens> chunks, int n_step_tokens,
                                  const std::string& path, const OnProgress& on_progress) {
  std::size_t n_rows = 0;
  for (const Tokens& chunk : chunks) {
    n_rows += static_cast<std::size_t>(n_scored(static_cast<int>(chunk.size())));
  }
  const Result<BaseRows> base = BaseRows::open(path, n_vocab_of(model), hash_of(chunks), n_rows);
  if (!base) return std::unexpected(base.error());
  std::vector<TokenDivergence> tokens;
  tokens.reserve(n_rows);
  const auto take = [&](std::span<const float> logits, Token next) -> Result<void> {
    const Result<TokenDivergence> token = compare(logits, base->row(tokens.size()), next);
    if (!token) return std::unexpected(token.error());
    tokens.push_back(*token);
    return {};
  };
  if (const auto read = read_all(model, chunks, n_step_tokens, take, on_progress); !read) {
    return std::unexpected(read.error());
  }
  return summarize(tokens);
}

}  // namespace slipstream::quality
