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

// The device whose kernels multiply, if it can be had: without it reading is only slower.
std::optional<TurboDevice> open_products(const std::filesystem::path& plugin) {
  if (plugin.empty()) return std::nullopt;
  Result<TurboDevice> device = TurboDevice::open(plugin, "f16", "", /*has_products=*/true);
  if (device) return std::move(*device);
  log::warn("embedding.products", {{"without", device.error().message}});
  return std::nullopt;
}

}  // namespace

ReadingModel::ReadingModel(std::optional<TurboDevice> turbo, llama_model_ptr model,
                           std::unique_ptr<TextReader> reader, Vocabulary vocabulary)
    : turbo_(std::move(turbo)),
      model_(std::move(model)),
      vocabulary_(std::move(vocabulary)),
      reader_(std::move(reader)) {}

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
  Result<std::unique_ptr<TextReader>> reader =
      TextReader::create(model.get(), n_tokens_max, options.n_threads);
  if (!reader) {
    return fail(reader.error().code, format_text("{}: {}", name, reader.error().message));
  }
  const bool ranks = (*reader)->ranks();
  if (ranks && reads == Reads::kVectors) {
    return fail(Code::kUnsupported, name + " ranks texts and makes no vectors of them");
  }
  if (!ranks && reads == Reads::kRanks) {
    return fail(Code::kUnsupported, name + " makes vectors of texts and does not rank them");
  }
  return std::unique_ptr<ReadingModel>(new ReadingModel(
      std::move(turbo), std::move(model), std::move(*reader), std::move(*vocabulary)));
}

std::string ReadingModel::text_template(const char* name) const {
  const char* text = llama_model_chat_template(model_.get(), name);
  return text == nullptr ? "" : text;
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
