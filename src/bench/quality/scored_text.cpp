#include "bench/quality/scored_text.h"

#include <llama.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/format.h"

namespace slipstream::quality {

Result<std::vector<Tokens>> cut(std::span<const Token> text, int depth, int n_chunks_max,
                                std::optional<Token> begin) {
  SLIP_CHECK(depth >= 4 && n_chunks_max > 0, "chunks of nothing");
  const auto n = static_cast<std::size_t>(depth);
  const std::size_t n_chunks = std::min(static_cast<std::size_t>(n_chunks_max), text.size() / n);
  if (n_chunks == 0) {
    return fail(Code::kInvalidArgument,
                format_text("the text has {} tokens, too few for a depth of {}: give a longer "
                            "--text or a smaller --depth",
                            text.size(), depth));
  }
  std::vector<Tokens> chunks;
  for (std::size_t i = 0; i < n_chunks; ++i) {
    const auto part = text.subspan(i * n, n);
    chunks.emplace_back(part.begin(), part.end());
    if (begin) chunks.back().front() = *begin;
  }
  return chunks;
}

Result<void> read_chunk(Model& model, std::span<const Token> chunk, int n_step_tokens,
                        const TakeLogits& take, int n_single) {
  llama_context* context = model.context();
  llama_memory_clear(llama_get_memory(context), true);
  const auto n_vocab = static_cast<std::size_t>(llama_vocab_n_tokens(model.vocab()));
  const auto n_chunk = static_cast<int>(chunk.size());
  const int first_scored = n_chunk / 2;
  llama_batch batch = llama_batch_init(n_step_tokens, 0, 1);
  const std::unique_ptr<llama_batch, void (*)(llama_batch*)> owner(
      &batch, [](llama_batch* b) { llama_batch_free(*b); });
  for (int start = 0; start < n_chunk; start += batch.n_tokens) {
    const int n_together = n_chunk - n_single - start;
    batch.n_tokens = n_together > 0 ? std::min(n_step_tokens, n_together) : 1;
    for (int i = 0; i < batch.n_tokens; ++i) {
      batch.token[i] = chunk[static_cast<std::size_t>(start + i)];
      batch.pos[i] = start + i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = start + i >= first_scored && start + i + 1 < n_chunk ? 1 : 0;
    }
    if (const int status = llama_decode(context, batch); status != 0) {
      return fail(Code::kUnsupported,
                  format_text("libllama cannot compute a batch of {} tokens (status {})",
                              batch.n_tokens, status));
    }
    for (int i = 0; i < batch.n_tokens; ++i) {
      if (batch.logits[i] == 0) continue;
      const std::span logits(llama_get_logits_ith(context, i), n_vocab);
      const auto next = chunk[static_cast<std::size_t>(start + i + 1)];
      if (Result<void> taken = take(logits, next); !taken) return taken;
    }
  }
  return {};
}

}  // namespace slipstream::quality
