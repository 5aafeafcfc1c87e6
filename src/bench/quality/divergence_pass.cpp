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
                      const TakeLogits& take, const OnProgress& on_progress, int n_single = 0) {
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (Result<void> read = read_chunk(model, chunks[i], n_step_tokens, take, n_single); !read) {
      return read;
    }
    if (on_progress) {
      on_progress(static_cast<double>(i + 1) / static_cast<double>(chunks.size()));
    }
  }
  return {};
}

// The last n tokens that count of each chunk.
std::vector<TokenDivergence> last_of_each(std::span<const TokenDivergence> tokens,
                                          std::span<const Tokens> chunks, int n) {
  std::vector<TokenDivergence> last;
  for (const Tokens& chunk : chunks) {
    const auto n_of_chunk = static_cast<std::size_t>(n_scored(static_cast<int>(chunk.size())));
    last.append_range(tokens.first(n_of_chunk).last(static_cast<std::size_t>(n)));
    tokens = tokens.subspan(n_of_chunk);
  }
  return last;
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
  const Result<PassFigures> figures =
      measure_decoding(model, chunks, n_step_tokens, 0, path, on_progress);
  if (!figures) return std::unexpected(figures.error());
  return figures->all;
}

Result<PassFigures> measure_decoding(Model& model, std::span<const Tokens> chunks,
                                     int n_step_tokens, int n_decoded, const std::string& path,
                                     const OnProgress& on_progress) {
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
  const int n_single = n_decoded > 0 ? n_decoded + 1 : 0;  // the last one has no successor
  if (const auto read = read_all(model, chunks, n_step_tokens, take, on_progress, n_single);
      !read) {
    return std::unexpected(read.error());
  }
  return PassFigures{.all = summarize(tokens),
                     .decoded = summarize(last_of_each(tokens, chunks, n_decoded))};
}

}  // namespace slipstream::quality
