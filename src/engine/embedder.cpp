#include "engine/embedder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "engine/model/llama_log.h"
#include "engine/model/model.h"
#include "engine/model/own_thread.h"

namespace slipstream {
namespace {

llama_context_ptr make_context(llama_model* model, int n_tokens_max, int n_threads,
                               enum llama_pooling_type pooling) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(n_tokens_max);
  params.n_batch = params.n_ubatch = params.n_ctx;  // pooling needs the whole text in one batch
  params.n_seq_max = 1;
  params.n_threads = params.n_threads_batch = threads_to_use(n_threads);
  params.embeddings = true;
  params.pooling_type = pooling;
  params.offload_kqv = false;  // keeps attention on the CPU, where nothing is compressed
  params.no_perf = true;
  return llama_context_ptr(llama_init_from_model(model, params));
}

}  // namespace

Result<std::unique_ptr<Embedder>> Embedder::create(llama_model* model, int n_tokens_max,
                                                   int n_threads) {
  (void)take_llama_complaint();
  llama_context_ptr context =
      make_context(model, n_tokens_max, n_threads, LLAMA_POOLING_TYPE_UNSPECIFIED);
  if (context != nullptr && llama_pooling_type(context.get()) == LLAMA_POOLING_TYPE_NONE) {
    context = make_context(model, n_tokens_max, n_threads, LLAMA_POOLING_TYPE_MEAN);
  }
  if (context == nullptr) {
    return fail(Code::kOutOfMemory, format_text("no context for embeddings of {} tokens: {}",
                                                n_tokens_max, take_llama_complaint()));
  }
  if (llama_pooling_type(context.get()) == LLAMA_POOLING_TYPE_RANK) {
    return fail(Code::kUnsupported, "this model ranks texts and has no embeddings of them");
  }
  // Not n_embd: some models project to a different width at the end.
  return std::unique_ptr<Embedder>(
      new Embedder(std::move(context), n_tokens_max, llama_model_n_embd_out(model),
                   llama_vocab_n_tokens(llama_model_get_vocab(model))));
}

Result<std::vector<float>> Embedder::embed(std::span<const Token> tokens) {
  if (tokens.empty()) return fail(Code::kInvalidArgument, "a text without tokens has no embedding");
  if (std::cmp_greater(tokens.size(), n_tokens_max_)) {
    return fail(Code::kInvalidArgument, format_text("{} tokens are more than the {} that fit",
                                                    tokens.size(), n_tokens_max_));
  }
  const auto is_unknown = [this](Token token) { return token < 0 || token >= n_vocab_; };
  if (std::ranges::any_of(tokens, is_unknown)) {
    return fail(Code::kInvalidArgument, "a token that the model does not know");
  }
  const MutexLock lock(mutex_);
  llama_memory_clear(llama_get_memory(context_.get()), true);
  std::vector<Token> copy(tokens.begin(), tokens.end());
  int status = 0;
  on_own_thread([&]() SLIP_TSA(no_thread_safety_analysis) {
    status = llama_decode(context_.get(),
                          llama_batch_get_one(copy.data(), static_cast<std::int32_t>(copy.size())));
  });
  const float* pooled = status == 0 ? llama_get_embeddings_seq(context_.get(), 0) : nullptr;
  if (pooled == nullptr) {
    return fail(Code::kUnsupported,
                format_text("libllama computes no embedding with this model (status {})", status));
  }
  std::vector<float> vector(pooled, pooled + n_dimensions_);
  const double squares = std::transform_reduce(vector.begin(), vector.end(), 0.0, std::plus<>(),
                                               [](double value) { return value * value; });
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  for (float& value : vector) value = static_cast<float>(value * scale);
  return vector;
}

}  // namespace slipstream
