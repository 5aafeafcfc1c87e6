// Vision: reads images with a projector (--mmproj), a file beside the model's, by the packaged libmtmd.
//
// read() makes what stands for an image in a prompt: tokens around it, as the model was trained with
// them, and cells, whose rows encode() computes from pixels later. The model's context is not used: its
// thread computes with the rows (runner.h).
//
// Threads: thread-safe. One image is unpacked at a time, and one is encoded at a time.
// Errors:  load(): those of gguf_model.h; kInvalidArgument for a file that is no projector;
//          kUnsupported for models and projectors that are not served, and says which.
//          read(): kInvalidArgument for a file that is no image, damaged or too large;
//          kOverloaded while others hold too many.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "engine/model/model.h"
#include "engine/prefixes/disk/prefix_file.h"
#include "engine/vision/image_rows.h"
#include "engine/vision/vision_limits.h"

struct mtmd_context;
struct mtmd_input_chunks;

namespace slipstream {

// An image in a prompt.
struct ReadImage {
  std::vector<Token> tokens = {};
  std::vector<ImagePlace> places = {};  // in these tokens
  std::uint64_t n_pixels = 0;           // of the file
};

class Vision {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Vision>> load(
      const std::filesystem::path& projector, const Model& model, int n_threads,
      const ImageLimits& limits = kImageLimits);
  ~Vision();
  Vision(const Vision&) = delete;
  Vision& operator=(const Vision&) = delete;

  [[nodiscard]] const ImageLimits& limits() const { return limits_; }
  // n_pixels_max: of this image; the rest of what its request may have.
  [[nodiscard]] Result<ReadImage> read(std::span<const std::byte> file, std::uint64_t n_pixels_max);
  // Fills the rows, or says in them why not.
  void encode(ImageRows& rows);

 private:
  struct Free {
    void operator()(mtmd_context* context) const;
  };
  using Chunks = std::shared_ptr<mtmd_input_chunks>;

  Vision(std::unique_ptr<mtmd_context, Free> context, const Fingerprint& projector, int n_embd,
         int n_step_tokens_max, std::uint64_t n_part_bytes, const ImageLimits& limits);
  [[nodiscard]] Result<Chunks> unpack(std::span<const std::byte> file);
  [[nodiscard]] Result<ReadImage> parts_of(const Chunks& chunks, std::span<const std::byte> file,
                                           std::uint64_t n_pixels) const;

  const std::unique_ptr<mtmd_context, Free> context_;
  const Fingerprint projector_;
  const int n_embd_;
  const int n_step_tokens_max_;
  const std::uint64_t n_part_bytes_;  // what a part's pixels take
  const ImageLimits limits_;
  const HeldBytes::Counter n_held_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  Mutex unpacking_;
  Mutex encoding_;
};

}  // namespace slipstream
