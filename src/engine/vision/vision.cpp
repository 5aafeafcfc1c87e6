#include "engine/vision/vision.h"

#include <llama.h>
#include <mtmd-helper.h>
#include <mtmd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "engine/forecast/gguf_model.h"
#include "engine/model/llama_log.h"
#include "engine/model/model_fingerprint.h"
#include "engine/vision/image_file.h"
#include "engine/vision/image_key.h"

namespace slipstream {
namespace {

std::uint64_t square_bytes(std::int64_t side) {
  constexpr std::int64_t kSideMax = 1 << 14;  // a claim of the file
  const auto n = static_cast<std::uint64_t>(std::clamp<std::int64_t>(side, 1, kSideMax));
  return n * n * 3 * sizeof(float);
}

Result<void> check_projector(const GgufModel& file, const std::filesystem::path& path) {
  if (file.architecture() == "clip") return {};
  return fail(Code::kInvalidArgument,
              format_text("{} is no projector but a model of the architecture {}: name the file "
                          "whose name begins with mmproj",
                          path.string(), file.architecture()));
}

Result<void> check_served(const mtmd_context* context, const std::filesystem::path& path) {
  if (!mtmd_support_vision(context)) {
    return fail(Code::kUnsupported, format_text("{} reads no images", path.string()));
  }
  if (mtmd_decode_use_mrope(context)) {
    return fail(Code::kUnsupported,
                "images of models with positions in two dimensions (M-RoPE, such as Qwen2-VL) are "
                "not served: leave out --mmproj for text, or use llama-server");
  }
  return {};
}

}  // namespace

void Vision::Free::operator()(mtmd_context* context) const { mtmd_free(context); }

Vision::Vision(std::unique_ptr<mtmd_context, Free> context, const Fingerprint& projector,
               int n_embd, int n_step_tokens_max, std::uint64_t n_part_bytes,
               const ImageLimits& limits)
    : context_(std::move(context)),
      projector_(projector),
      n_embd_(n_embd),
      n_step_tokens_max_(n_step_tokens_max),
      n_part_bytes_(n_part_bytes),
      limits_(limits) {}

Vision::~Vision() = default;

Result<std::unique_ptr<Vision>> Vision::load(const std::filesystem::path& projector,
                                             const Model& model, int n_threads,
                                             const ImageLimits& limits) {
  if (model.has_recurrent_state()) {
    return fail(Code::kUnsupported,
                "images of models with a recurrent state are not served: leave out --mmproj");
  }
  const Result<GgufModel> file = GgufModel::open(projector);
  if (!file) return std::unexpected(file.error());
  if (const auto checked = check_projector(*file, projector); !checked) {
    return std::unexpected(checked.error());
  }
  const Result<Fingerprint> fingerprint = fingerprint_of_model(projector);
  if (!fingerprint) return std::unexpected(fingerprint.error());
  redirect_projector_log();
  mtmd_context_params params = mtmd_context_params_default();
  params.use_gpu = false;
  params.print_timings = false;
  params.warmup = false;
  // Half of them, so that answers go on while an image is read.
  params.n_threads = std::max(1, threads_to_use(n_threads) / 2);
  std::unique_ptr<mtmd_context, Free> context(
      mtmd_init_from_file(projector.c_str(), model.model(), params));
  if (!context) {
    return fail(Code::kUnsupported, with_llama_complaint(format_text("cannot use {} with the model",
                                                                     projector.string())));
  }
  if (const auto served = check_served(context.get(), projector); !served) {
    return std::unexpected(served.error());
  }
  const std::int64_t side = file->integer("clip.vision.image_size").value_or(1);
  return std::unique_ptr<Vision>(
      new Vision(std::move(context), *fingerprint, llama_model_n_embd_inp(model.model()),
                 static_cast<int>(llama_n_ubatch(model.context())), square_bytes(side), limits));
}

Result<ReadImage> Vision::read(std::span<const std::byte> file, std::uint64_t n_pixels_max) {
  const Result<ImageSize> size = check_image_file(file, limits_);
  if (!size) return std::unexpected(size.error());
  if (size->n_pixels() > n_pixels_max) {
    return fail(Code::kInvalidArgument,
                format_text("the images have more than the {} pixels that those of a request may "
                            "have together: make them smaller, or send fewer",
                            limits_.request_pixels_max));
  }
  const Result<Chunks> chunks = unpack(file);
  if (!chunks) return std::unexpected(chunks.error());
  return parts_of(*chunks, file, size->n_pixels());
}

Result<Vision::Chunks> Vision::unpack(std::span<const std::byte> file) {
  const MutexLock lock(unpacking_);
  try {
    // What is no image to it, libmtmd would give to ffmpeg as a video: it finds none there.
    mtmd_helper_init_opt options = mtmd_helper_init_opt_default();
    options.video_params.ffmpeg_bin_dir = "/nonexistent";
    const mtmd_helper_bitmap_wrapper unpacked = mtmd_helper_bitmap_init_from_buf(
        context_.get(), reinterpret_cast<const unsigned char*>(file.data()), file.size(),
        /*placeholder=*/false, options);
    const std::unique_ptr<mtmd_bitmap, decltype(&mtmd_bitmap_free)> bitmap(unpacked.bitmap,
                                                                           &mtmd_bitmap_free);
    const std::unique_ptr<mtmd_helper_video, decltype(&mtmd_helper_video_free)> video(
        unpacked.video_ctx, &mtmd_helper_video_free);
    if (!bitmap || video || mtmd_bitmap_is_audio(bitmap.get())) {
      return fail(Code::kInvalidArgument, "the image file is damaged: its pixels cannot be read");
    }
    Chunks chunks(mtmd_input_chunks_init(), &mtmd_input_chunks_free);
    const mtmd_input_part part{.text = nullptr, .bitmap = bitmap.get()};
    const mtmd_input_part* const parts[] = {&part};
    if (mtmd_tokenize_from_parts(context_.get(), chunks.get(), parts, 1, false) != 0) {
      return fail(Code::kInvalidArgument,
                  with_llama_complaint("the projector does not take the image"));
    }
    return chunks;
  } catch (const std::exception& error) {
    return fail(Code::kInvalidArgument,
                format_text("the projector does not take the image: {}", error.what()));
  }
}

Result<ReadImage> Vision::parts_of(const Chunks& chunks, std::span<const std::byte> file,
                                   std::uint64_t n_pixels) const {
  const std::size_t n_chunks = mtmd_input_chunks_size(chunks.get());
  const auto chunk_at = [&](std::size_t i) { return mtmd_input_chunks_get(chunks.get(), i); };
  std::uint64_t n_bytes = 0;
  for (std::size_t i = 0; i < n_chunks; ++i) {
    if (mtmd_input_chunk_get_type(chunk_at(i)) == MTMD_INPUT_CHUNK_TYPE_TEXT) continue;
    n_bytes += mtmd_input_chunk_get_n_tokens(chunk_at(i)) * static_cast<std::uint64_t>(n_embd_) *
               sizeof(float);
    n_bytes += std::max(n_part_bytes_, n_pixels * 3 * sizeof(float) / n_chunks);
  }
  const auto held = std::make_shared<const HeldBytes>(n_held_, n_bytes);
  if (*n_held_ > limits_.held_bytes_max) {
    return fail(Code::kOverloaded, "other requests hold as many images as may be held at a time");
  }
  const ImageKey key = image_key(projector_, file);
  ReadImage image{.n_pixels = n_pixels};
  for (std::size_t i = 0; i < n_chunks; ++i) {
    const mtmd_input_chunk* chunk = chunk_at(i);
    if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
      std::size_t n = 0;
      const llama_token* tokens = mtmd_input_chunk_get_tokens_text(chunk, &n);
      image.tokens.insert(image.tokens.end(), tokens, tokens + n);
      continue;
    }
    const int n_cells = static_cast<int>(mtmd_input_chunk_get_n_tokens(chunk));
    const bool is_whole = mtmd_decode_use_non_causal(context_.get(), chunk);
    if (n_cells < kImageCellsMin || (is_whole && n_cells > n_step_tokens_max_)) {
      return fail(
          Code::kInvalidArgument,
          format_text("the projector makes {} tokens of a part of the image, and from {} to "
                      "{} can be computed: send an image of another size",
                      n_cells, kImageCellsMin, n_step_tokens_max_));
    }
    std::vector<Token> cells = cell_tokens(part_key(key, static_cast<std::uint32_t>(i)), n_cells);
    const int first = static_cast<int>(image.tokens.size());
    image.tokens.insert(image.tokens.end(), cells.begin(), cells.end());
    image.places.push_back({.first = first,
                            .rows = std::make_shared<ImageRows>(
                                std::move(cells), is_whole, held,
                                std::shared_ptr<const mtmd_input_chunk>(chunks, chunk))});
  }
  return image;
}

void Vision::encode(ImageRows& rows) {
  const MutexLock lock(encoding_);
  try {
    const auto started = std::chrono::steady_clock::now();
    if (mtmd_encode_chunk(context_.get(), rows.pixels()) != 0) {
      return rows.give_up(with_llama_complaint("the projector could not read the image"));
    }
    const float* output = mtmd_get_output_embd(context_.get());
    const auto n = static_cast<std::size_t>(rows.n_cells()) * static_cast<std::size_t>(n_embd_);
    rows.fill({output, output + n});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    log::debug("engine.image", {{"tokens", rows.n_cells()}, {"seconds", seconds.count()}});
  } catch (const std::exception& error) {  // such as bad_alloc
    rows.give_up(error.what());
  }
}

}  // namespace slipstream
