#include "engine/embedding/reading_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "base/utf8.h"
#include "engine/model/llama_log.h"
#include "engine/model/model.h"
#include "engine/model/own_thread.h"

namespace slipstream {
namespace {

constexpr int kTextsOfBatchMax = 32;

llama_context_ptr make_reading_context(llama_model* model, int n_tokens_max, int n_threads,
                                       enum llama_pooling_type pooling) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(n_tokens_max);
  params.n_batch = params.n_ubatch = params.n_ctx;  // pooling needs the whole text in one batch
  params.n_seq_max = static_cast<std::uint32_t>(std::min(kTextsOfBatchMax, n_tokens_max));
  params.kv_unified = true;  // a decoder's texts share the cells
  params.n_threads = params.n_threads_batch = n_threads;
  params.embeddings = true;
  params.pooling_type = pooling;
  params.offload_kqv = false;  // keeps attention on the CPU, where nothing is compressed
  params.no_perf = true;
  return llama_context_ptr(llama_init_from_model(model, params));
}

// The device whose kernels multiply, if it can be had: without it reading is only slower.
std::optional<TurboDevice> open_products(const std::filesystem::path& plugin) {
  if (plugin.empty()) return std::nullopt;
  Result<TurboDevice> device = TurboDevice::open(plugin, "f16", "", /*has_products=*/true);
  if (device) return std::move(*device);
  log::warn("embedding.products", {{"without", device.error().message}});
  return std::nullopt;
}

struct FreeBatch {
  void operator()(llama_batch* batch) const {
    llama_batch_free(*batch);
    delete batch;
  }
};
using BatchPtr = std::unique_ptr<llama_batch, FreeBatch>;

BatchPtr make_batch(std::span<const std::vector<Token>> texts, int n_tokens) {
  BatchPtr batch(new llama_batch(llama_batch_init(n_tokens, 0, 1)));
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

ReadingModel::ReadingModel(std::optional<TurboDevice> turbo, llama_model_ptr model,
                           llama_context_ptr context, Vocabulary vocabulary, int n_tokens_max,
                           int n_columns)
    : turbo_(std::move(turbo)),
      model_(std::move(model)),
      vocabulary_(std::move(vocabulary)),
      n_tokens_max_(n_tokens_max),
      n_columns_(n_columns),
      context_(std::move(context)) {}

Result<std::unique_ptr<ReadingModel>> ReadingModel::load(const ReadingOptions& options,
                                                         Reads reads) {
  SLIP_CHECK(options.n_tokens_max > 0, "a context for nothing");
  load_backends();
  (void)take_llama_complaint();
  const std::string name = options.path.string();
  std::error_code error;
  if (!std::filesystem::exists(options.path, error)) {
    return fail(Code::kNotFound, format_text("there is no model {}", name));
  }
  llama_model_params params = llama_model_default_params();
  std::optional<TurboDevice> turbo = open_products(options.plugin);
  std::array<ggml_backend_dev_t, 2> devices = {};  // terminated by null
  if (turbo) {
    devices[0] = turbo->handle();
    params.devices = devices.data();
    params.use_extra_bufts = false;  // stock's layouts are not our kernels' to read
  }
  llama_model_ptr model;
  on_own_thread([&] { model.reset(llama_model_load_from_file(name.c_str(), params)); });
  if (model == nullptr) {
    return fail(Code::kUnsupported, with_llama_complaint(format_text("cannot load {}", name)));
  }
  if (llama_model_has_encoder(model.get()) && llama_model_has_decoder(model.get())) {
    return fail(Code::kUnsupported, name + " translates texts: it does not only read them");
  }
  Result<Vocabulary> vocabulary = Vocabulary::create(model.get());
  if (!vocabulary) return std::unexpected(vocabulary.error());
  const int n_tokens_max = std::min(options.n_tokens_max, llama_model_n_ctx_train(model.get()));
  const int n_threads = threads_to_use(options.n_threads);
  llama_context_ptr context =
      make_reading_context(model.get(), n_tokens_max, n_threads, LLAMA_POOLING_TYPE_UNSPECIFIED);
  if (context != nullptr && llama_pooling_type(context.get()) == LLAMA_POOLING_TYPE_NONE) {
    context = make_reading_context(model.get(), n_tokens_max, n_threads, LLAMA_POOLING_TYPE_MEAN);
  }
  if (context == nullptr) {
    return fail(Code::kOutOfMemory,
                with_llama_complaint(format_text("{} cannot read {} tokens", name, n_tokens_max)));
  }
  const bool ranks = llama_pooling_type(context.get()) == LLAMA_POOLING_TYPE_RANK;
  if (ranks && reads == Reads::kVectors) {
    return fail(Code::kUnsupported, name + " ranks texts and makes no vectors of them");
  }
  if (!ranks && reads == Reads::kRanks) {
    return fail(Code::kUnsupported, name + " makes vectors of texts and does not rank them");
  }
  // Not n_embd: some models project to another width at the end.
  const int n_columns = ranks ? static_cast<int>(llama_model_n_cls_out(model.get()))
                              : llama_model_n_embd_out(model.get());
  return std::unique_ptr<ReadingModel>(new ReadingModel(std::move(turbo), std::move(model),
                                                        std::move(context), std::move(*vocabulary),
                                                        n_tokens_max, n_columns));
}

std::string ReadingModel::text_template(const char* name) const {
  const char* text = llama_model_chat_template(model_.get(), name);
  return text == nullptr ? "" : text;
}

Result<void> ReadingModel::read_batch(std::span<const std::vector<Token>> texts,
                                      std::span<Row> rows) SLIP_TSA(no_thread_safety_analysis) {
  std::size_t n_tokens = 0;
  for (const std::vector<Token>& text : texts) n_tokens += text.size();
  const BatchPtr batch = make_batch(texts, static_cast<int>(n_tokens));
  llama_memory_t memory = llama_get_memory(context_.get());
  if (memory != nullptr) llama_memory_clear(memory, true);
  const int status = memory == nullptr ? llama_encode(context_.get(), *batch)
                                       : llama_decode(context_.get(), *batch);
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
  return {};
}

Result<std::vector<ReadingModel::Row>> ReadingModel::read(std::span<const std::vector<Token>> texts,
                                                          const std::stop_token& stop) {
  for (const std::vector<Token>& text : texts) {
    if (text.empty()) return fail(Code::kInvalidArgument, "a text without tokens cannot be read");
    if (std::cmp_greater(text.size(), n_tokens_max_)) {
      return fail(Code::kInvalidArgument, format_text("{} tokens are more than the {} that fit",
                                                      text.size(), n_tokens_max_));
    }
    if (!std::ranges::all_of(text, [this](Token token) { return vocabulary_.contains(token); })) {
      return fail(Code::kInvalidArgument, "a token that the model does not know");
    }
  }
  std::vector<Row> rows(texts.size());
  Result<void> done;
  const MutexLock lock(mutex_);
  (void)take_llama_complaint();
  on_own_thread([&]() SLIP_TSA(no_thread_safety_analysis) {
    for (std::size_t begin = 0; begin < texts.size() && done;) {
      if (stop.stop_requested()) {
        done = fail(Code::kCancelled, "stopped");
        return;
      }
      std::size_t end = begin;
      std::size_t n_tokens = 0;
      while (end < texts.size() && end - begin < kTextsOfBatchMax &&
             n_tokens + texts[end].size() <= static_cast<std::size_t>(n_tokens_max_)) {
        n_tokens += texts[end++].size();
      }
      done = read_batch(texts.subspan(begin, end - begin),
                        std::span(rows).subspan(begin, end - begin));
      begin = end;
    }
  });
  if (!done) return std::unexpected(done.error());
  return rows;
}

std::string beginning_of(std::string_view text, int n_tokens) {
  constexpr std::size_t kBytesPerToken = 32;  // tokens of text are shorter
  std::string valid;
  (void)append_repaired_utf8(valid,
                             text.substr(0, static_cast<std::size_t>(n_tokens) * kBytesPerToken));
  return valid;
}

Result<std::vector<Token>> tokens_of_beginning(const Vocabulary& vocabulary, std::string_view text,
                                               int n_tokens_max) {
  const auto n_max = static_cast<std::size_t>(n_tokens_max);
  Result<std::vector<Token>> tokens = vocabulary.tokenize(
      beginning_of(text, n_tokens_max), /*add_special=*/true, /*parse_special=*/false);
  if (!tokens || tokens->size() <= n_max) return tokens;
  const Token last = tokens->back();
  tokens->resize(n_max);
  if (vocabulary.is_control(last)) tokens->back() = last;
  return tokens;
}

}  // namespace slipstream
