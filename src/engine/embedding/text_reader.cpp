#include "engine/embedding/text_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "engine/model/llama_log.h"
#include "engine/model/model.h"
#include "engine/model/own_thread.h"

namespace slipstream {
namespace {

// States of a recurrent model have a fixed size each, and texts here are read once.
std::size_t n_texts_of_batch(const llama_model* model) {
  const bool has_state = llama_model_is_recurrent(model) || llama_model_is_hybrid(model);
  return has_state ? 1 : TextReader::kTextsOfBatch;
}

llama_context_ptr make_reading_context(llama_model* model, int n_tokens_max, int n_threads,
                                       enum llama_pooling_type pooling) {
  llama_context_params params = llama_context_default_params();
  // Pooling needs the whole text in one batch.
  params.n_ctx = std::max(static_cast<std::uint32_t>(n_tokens_max),
                          static_cast<std::uint32_t>(TextReader::kTokensOfBatch));
  params.n_batch = params.n_ubatch = params.n_ctx;
  params.n_seq_max = static_cast<std::uint32_t>(n_texts_of_batch(model));
  params.kv_unified = true;  // a decoder's texts share the cells
  params.n_threads = params.n_threads_batch = threads_to_use(n_threads);
  params.embeddings = true;
  params.pooling_type = pooling;
  params.offload_kqv = false;  // keeps attention on the CPU, where nothing is compressed
  params.no_perf = true;
  return llama_context_ptr(llama_init_from_model(model, params));
}

struct FreeBatch {
  void operator()(llama_batch* batch) const {
    llama_batch_free(*batch);
    delete batch;
  }
};
using BatchPtr = std::unique_ptr<llama_batch, FreeBatch>;

BatchPtr make_batch(TextReader::Texts texts) {
  std::size_t n_tokens = 0;
  for (const std::vector<Token>& text : texts) n_tokens += text.size();
  BatchPtr batch(new llama_batch(llama_batch_init(static_cast<int>(n_tokens), 0, 1)));
  llama_seq_id sequence = 0;
  for (const std::vector<Token>& text : texts) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto at = static_cast<std::size_t>(batch->n_tokens++);
      batch->token[at] = text[i];
      batch->pos[at] = static_cast<llama_pos>(i);
      batch->n_seq_id[at] = 1;
      batch->seq_id[at][0] = sequence;
      batch->logits[at] = 1;  // pooling reads every token
    }
    ++sequence;
  }
  return batch;
}

}  // namespace

TextReader::TextReader(llama_context_ptr context, int n_tokens_max)
    : ranks_(llama_pooling_type(context.get()) == LLAMA_POOLING_TYPE_RANK),
      n_tokens_max_(n_tokens_max),
      // Not n_embd: some models project to another width at the end.
      n_columns_(ranks_ ? static_cast<int>(llama_model_n_cls_out(llama_get_model(context.get())))
                        : llama_model_n_embd_out(llama_get_model(context.get()))),
      n_vocab_(llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context.get())))),
      n_texts_max_(n_texts_of_batch(llama_get_model(context.get()))),
      context_(std::move(context)) {}

Result<std::unique_ptr<TextReader>> TextReader::create(llama_model* model, int n_tokens_max,
                                                       int n_threads) {
  SLIP_CHECK(n_tokens_max > 0, "a context for nothing");
  (void)take_llama_complaint();
  llama_context_ptr context =
      make_reading_context(model, n_tokens_max, n_threads, LLAMA_POOLING_TYPE_UNSPECIFIED);
  if (context != nullptr && llama_pooling_type(context.get()) == LLAMA_POOLING_TYPE_NONE) {
    context = make_reading_context(model, n_tokens_max, n_threads, LLAMA_POOLING_TYPE_MEAN);
  }
  if (context == nullptr) {
    return fail(Code::kOutOfMemory,
                with_llama_complaint(format_text("no context that reads {} tokens", n_tokens_max)));
  }
  return std::unique_ptr<TextReader>(new TextReader(std::move(context), n_tokens_max));
}

Result<void> TextReader::check(std::span<const Token> text) const {
  if (text.empty()) return fail(Code::kInvalidArgument, "a text without tokens cannot be read");
  if (std::cmp_greater(text.size(), n_tokens_max_)) {
    return fail(Code::kInvalidArgument,
                format_text("{} tokens are more than the {} that fit", text.size(), n_tokens_max_));
  }
  const auto is_unknown = [this](Token token) { return token < 0 || token >= n_vocab_; };
  if (std::ranges::any_of(text, is_unknown)) {
    return fail(Code::kInvalidArgument, "a token that the model does not know");
  }
  return {};
}

Result<std::vector<TextReader::Row>> TextReader::read_batch(Texts texts) {
  const BatchPtr batch = make_batch(texts);
  const MutexLock lock(mutex_);
  (void)take_llama_complaint();
  llama_memory_t memory = llama_get_memory(context_.get());
  if (memory != nullptr) llama_memory_clear(memory, true);
  const int status = memory == nullptr ? llama_encode(context_.get(), *batch)
                                       : llama_decode(context_.get(), *batch);
  std::vector<Row> rows(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const float* row = status == 0
                           ? llama_get_embeddings_seq(context_.get(), static_cast<llama_seq_id>(i))
                           : nullptr;
    if (row == nullptr) {
      return fail(Code::kUnsupported, with_llama_complaint(format_text(
                                          "libllama cannot read this (status {})", status)));
    }
    rows[i].assign(row, row + n_columns_);
  }
  return rows;
}

Result<std::vector<TextReader::Row>> TextReader::read(Texts texts, const std::stop_token& stop) {
  for (const std::vector<Token>& text : texts) {
    if (Result<void> checked = check(text); !checked) return std::unexpected(checked.error());
  }
  std::vector<Row> rows;
  Result<void> done;
  on_own_thread([&] {
    for (std::size_t begin = 0; begin < texts.size();) {
      if (stop.stop_requested()) {
        done = fail(Code::kCancelled, "stopped");
        return;
      }
      std::size_t end = begin;
      std::size_t n_tokens = 0;
      while (end < texts.size() && has_room(end - begin, n_tokens, texts[end].size())) {
        n_tokens += texts[end++].size();
      }
      Result<std::vector<Row>> batch = read_batch(texts.subspan(begin, end - begin));
      if (!batch) {
        done = std::unexpected(batch.error());
        return;
      }
      std::ranges::move(*batch, std::back_inserter(rows));
      begin = end;
    }
  });
  if (!done) return std::unexpected(done.error());
  return rows;
}

}  // namespace slipstream
