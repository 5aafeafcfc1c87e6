#include "watched_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "engine/forecast/gguf_model.h"
#include "engine/model/model.h"

namespace slipstream::evictions {
namespace {

constexpr std::size_t kStepTokens = 512;
constexpr std::string_view kScores = "kq";
constexpr std::string_view kWeights = "kq_soft_max";
constexpr std::string_view kQueries = "Qcur_normed";  // before RoPE
constexpr std::string_view kKeys = "Kcur_normed";

// "kq_soft_max-3" as its name and layer.
struct Place {
  std::string_view name;
  std::size_t layer = 0;
};

std::optional<Place> place_of(const ggml_tensor* tensor) {
  const std::string_view whole(static_cast<const char*>(tensor->name));
  const std::size_t dash = whole.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  Place place{.name = whole.substr(0, dash)};
  const char* const end = whole.data() + whole.size();
  const auto [last, error] = std::from_chars(whole.data() + dash + 1, end, place.layer);
  if (error != std::errc() || last != end) return std::nullopt;
  return place;
}

// Row (i1, i2) of a tensor of floats, which lies in memory of the CPU.
float* row_of(const ggml_tensor* tensor, std::size_t i1, std::size_t i2) {
  return reinterpret_cast<float*>(static_cast<char*>(tensor->data) + i1 * tensor->nb[1] +
                                  i2 * tensor->nb[2]);
}

// kq_soft_max: [cell][query][head].
void record_weights(AttentionRecord& record, const ggml_tensor* weights, std::size_t layer,
                    std::size_t n_done) {
  const auto n_queries = static_cast<std::size_t>(weights->ne[1]);
  for (std::size_t head = 0; head < record.shape.n_heads; ++head) {
    const std::span<float> mass = record.row(record.mass, layer, head);
    const std::span<float> window = record.row(record.window, layer, head);
    for (std::size_t query = 0; query < n_queries; ++query) {
      const float* const row = row_of(weights, query, head);
      const std::size_t n_seen = n_done + query + 1;
      for (std::size_t cell = 0; cell < n_seen; ++cell) mass[cell] += row[cell];
      if (n_seen + kWindowTokens <= record.n_cells) continue;
      for (std::size_t cell = 0; cell < n_seen; ++cell) window[cell] += row[cell];
    }
  }
}

// Qcur_normed: [channel][head][token].
void record_queries(AttentionRecord& record, const ggml_tensor* queries, std::size_t layer) {
  const std::size_t n_channels = record.shape.n_channels;
  for (std::size_t token = 0; token < static_cast<std::size_t>(queries->ne[2]); ++token) {
    for (std::size_t head = 0; head < record.shape.n_heads; ++head) {
      const float* const query = row_of(queries, head, token);
      const std::size_t at = layer * record.shape.n_heads + head;
      for (std::size_t i = 0; i < n_channels; ++i) {
        record.query_sums[at * n_channels + i] += query[i];
      }
      for (std::size_t i = 0; i < n_channels / 2; ++i) {
        record.query_lengths[at * (n_channels / 2) + i] +=
            std::hypot(query[i], query[i + n_channels / 2]);
      }
    }
  }
}

// Kcur_normed: [channel][KV head][token].
void record_keys(AttentionRecord& record, const ggml_tensor* keys, std::size_t layer,
                 std::size_t n_done) {
  const AttentionShape& shape = record.shape;
  for (std::size_t token = 0; token < static_cast<std::size_t>(keys->ne[2]); ++token) {
    for (std::size_t head = 0; head < shape.n_kv_heads; ++head) {
      const std::size_t at = (layer * shape.n_kv_heads + head) * record.n_cells + n_done + token;
      std::copy_n(row_of(keys, head, token), shape.n_channels,
                  record.keys.begin() + static_cast<std::ptrdiff_t>(at * shape.n_channels));
    }
  }
}

// kq: [cell][query][head].
void hide(const Kept& kept, const AttentionShape& shape, const ggml_tensor* scores,
          std::size_t layer) {
  for (std::size_t head = 0; head < shape.n_heads; ++head) {
    const std::vector<bool>& is_kept =
        kept[layer * shape.n_kv_heads + head * shape.n_kv_heads / shape.n_heads];
    for (std::size_t query = 0; query < static_cast<std::size_t>(scores->ne[1]); ++query) {
      float* const row = row_of(scores, query, head);
      for (std::size_t cell = 0; cell < is_kept.size(); ++cell) {
        if (!is_kept[cell]) row[cell] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

Result<AttentionShape> shape_of(const std::string& path, const llama_model* model) {
  const Result<GgufModel> header = GgufModel::open(path);
  if (!header) return std::unexpected(header.error());
  const std::string key = header->architecture() + ".rope.freq_base";
  std::string base(32, '\0');
  const auto n_heads = static_cast<std::size_t>(llama_model_n_head(model));
  const std::int64_t n_channels = header->integer("%s.attention.key_length").value_or(0);
  if (llama_model_meta_val_str(model, key.c_str(), base.data(), base.size()) < 0 ||
      n_channels <= 0) {
    return fail(Code::kUnsupported,
                format_text("{} does not state {} and its head size", path, key));
  }
  return AttentionShape{.n_layers = static_cast<std::size_t>(llama_model_n_layer(model)),
                        .n_heads = n_heads,
                        .n_kv_heads = static_cast<std::size_t>(llama_model_n_head_kv(model)),
                        .n_channels = static_cast<std::size_t>(n_channels),
                        .rope_base = std::strtod(base.c_str(), nullptr)};
}

}  // namespace

bool WatchedModel::on_tensor(ggml_tensor* tensor, bool is_question, void* watch) {
  auto& self = *static_cast<Watch*>(watch);
  const std::optional<Place> place = place_of(tensor);
  const bool is_recorded =
      self.record != nullptr && place &&
      (place->name == kWeights || place->name == kQueries || place->name == kKeys);
  const bool is_hidden = self.kept != nullptr && place && place->name == kScores;
  if (is_question) return is_recorded || is_hidden;
  if (is_hidden) {
    hide(*self.kept, self.shape, tensor, place->layer);
  } else if (is_recorded && place->name == kWeights) {
    record_weights(*self.record, tensor, place->layer, self.n_done);
  } else if (is_recorded && place->name == kQueries) {
    record_queries(*self.record, tensor, place->layer);
  } else if (is_recorded) {
    record_keys(*self.record, tensor, place->layer, self.n_done);
  }
  return true;
}

Result<WatchedModel> WatchedModel::create(const std::string& path, std::size_t n_cells,
                                          int n_threads) {
  load_backends();
  llama_model_ptr model(llama_model_load_from_file(path.c_str(), llama_model_default_params()));
  if (!model) return fail(Code::kNotFound, format_text("cannot load {}", path));
  const Result<AttentionShape> shape = shape_of(path, model.get());
  if (!shape) return std::unexpected(shape.error());
  auto watch = std::make_unique<Watch>();
  watch->shape = *shape;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(n_cells);
  params.n_batch = params.n_ubatch = kStepTokens;
  params.n_seq_max = 1;
  params.n_threads = params.n_threads_batch = threads_to_use(n_threads);
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;  // it shows no weights
  params.cb_eval = on_tensor;
  params.cb_eval_user_data = watch.get();
  llama_context_ptr context(llama_init_from_model(model.get(), params));
  if (!context) return fail(Code::kOutOfMemory, "libllama makes no context");
  Result<Vocabulary> vocabulary = Vocabulary::create(model.get());
  if (!vocabulary) return std::unexpected(vocabulary.error());
  return WatchedModel(std::move(model), std::move(context), std::move(*vocabulary),
                      std::move(watch));
}

Result<AttentionRecord> WatchedModel::read_recording(std::span<const Token> text) {
  AttentionRecord record(watch_->shape, text.size());
  watch_->record = &record;
  const Result<void> done = read(text);
  watch_->record = nullptr;
  if (!done) return std::unexpected(done.error());
  const auto is_empty = [](const auto& numbers) {
    return std::ranges::all_of(numbers, [](auto number) { return number == 0; });
  };
  if (is_empty(record.mass) || is_empty(record.keys) || is_empty(record.query_sums)) {
    return fail(Code::kUnsupported,
                "the model's graph has none of the tensors that are watched: take one of the "
                "architecture qwen3");
  }
  return record;
}

Result<void> WatchedModel::read(std::span<const Token> text) {
  llama_memory_clear(llama_get_memory(context_.get()), false);
  n_text_ = text.size();
  for (std::size_t done = 0; done < text.size(); done += kStepTokens) {
    watch_->n_done = done;
    const std::size_t n = std::min(kStepTokens, text.size() - done);
    if (const auto decoded = decode(text.subspan(done, n)); !decoded) return decoded;
  }
  return {};
}

Result<void> WatchedModel::decode(std::span<const Token> tokens) {
  std::vector<Token> copy(tokens.begin(), tokens.end());
  const int status = llama_decode(
      context_.get(), llama_batch_get_one(copy.data(), static_cast<std::int32_t>(copy.size())));
  if (status == 0) return {};
  return fail(status == 1 ? Code::kOutOfMemory : Code::kUnsupported,
              format_text("llama_decode failed with status {}", status));
}

Result<std::vector<float>> WatchedModel::logits_after(std::span<const Token> more,
                                                      const Kept* kept) {
  watch_->kept = kept;
  Result<void> done = {};
  for (std::size_t at = 0; done && at < more.size(); at += kStepTokens) {
    done = decode(more.subspan(at, std::min(kStepTokens, more.size() - at)));
  }
  watch_->kept = nullptr;
  if (!done) return std::unexpected(done.error());
  const float* const logits = llama_get_logits_ith(context_.get(), -1);
  return std::vector(logits, logits + vocabulary_.n_tokens());
}

Result<std::string> WatchedModel::answer(std::span<const Token> question, const Kept* kept,
                                         int n_tokens_max) {
  std::string text;
  Result<std::vector<float>> logits = logits_after(question, kept);
  for (int i = 0; logits && i < n_tokens_max; ++i) {
    const auto best = static_cast<Token>(std::ranges::max_element(*logits) - logits->begin());
    if (vocabulary_.is_end(best)) break;
    text += vocabulary_.piece(best, false);
    logits = logits_after(std::span(&best, 1), kept);
  }
  llama_memory_seq_rm(llama_get_memory(context_.get()), 0, static_cast<llama_pos>(n_text_), -1);
  if (!logits) return std::unexpected(logits.error());
  return text;
}

}  // namespace slipstream::evictions
