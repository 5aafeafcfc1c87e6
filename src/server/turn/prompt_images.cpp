#include "server/turn/prompt_images.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include "base/format.h"
#include "server/api/image_parts.h"
#include "server/template/image_mark.h"

namespace slipstream {
namespace {

constexpr std::string_view kEndOfMark = "__>";

std::string drawn_mark() {
  std::random_device random;
  return format_text("<__image_{:08x}{:08x}{:08x}{:08x}_", random(), random(), random(), random());
}

std::string path_of(const Json& part, std::size_t message_idx, std::size_t part_idx) {
  if (const Json* path = member(part, "path"); path != nullptr && path->is_string()) {
    return quotable(path->get<std::string>());
  }
  return format_text("messages[{}].content[{}].image_url", message_idx, part_idx);
}

class ImageReader {
 public:
  explicit ImageReader(const ServedModel& model) : vision_(model.engine->vision()) {}

  ApiResult<PromptImages> read(Json& messages) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (!messages[i].is_object() || !messages[i].contains("content")) continue;
      Json& content = messages[i]["content"];
      if (!content.is_array()) continue;
      for (std::size_t j = 0; j < content.size(); ++j) {
        if (!is_image_part(content[j])) continue;
        if (auto taken = take_image(content[j], path_of(content[j], i, j)); !taken) {
          return std::unexpected(taken.error());
        }
      }
    }
    return std::move(taken_);
  }

 private:
  ApiResult<void> take_image(Json& part, const std::string& path) {
    if (vision_ == nullptr) {
      return refuse(path, format_text("'{}' is an image, and this model reads none: start the "
                                      "server with --mmproj FILE, the projector of a model with "
                                      "vision",
                                      path));
    }
    const ImageLimits& limits = vision_->limits();
    if (taken_.images.size() >= limits.images_max) {
      return refuse(
          path, format_text("A request may have {} images: leave out old ones", limits.images_max));
    }
    const Json* url = member(part["image_url"], "url");
    if (url == nullptr || !url->is_string()) {
      return refuse(path,
                    format_text("'{}' must be {{\"url\": \"data:image/png;base64,...\"}}", path));
    }
    ApiResult<std::vector<std::byte>> file =
        read_image_url(url->get_ref<const std::string&>(), path);
    if (!file) return std::unexpected(file.error());
    const std::uint64_t n_left =
        limits.request_pixels_max - std::min(n_pixels_, limits.request_pixels_max);
    Result<ReadImage> image = vision_->read(*file, n_left);
    if (!image) {
      if (image.error().code != Code::kInvalidArgument) {
        return std::unexpected(to_api_error(image.error()));
      }
      return refuse(path, format_text("'{}': {}", path, image.error().message));
    }
    n_pixels_ += image->n_pixels;
    if (taken_.mark.empty()) taken_.mark = drawn_mark();
    part = image_mark(format_text("{}{}{}", taken_.mark, taken_.images.size(), kEndOfMark));
    taken_.images.push_back(std::move(*image));
    return {};
  }

  Vision* const vision_;
  std::uint64_t n_pixels_ = 0;
  PromptImages taken_;
};

// Where the template has rendered marks: the texts around them, and which image is between two.
struct CutPrompt {
  std::vector<MarkedText> texts = {};
  std::vector<std::size_t> images = {};
};

CutPrompt cut_at_marks(const MarkedText& prompt, const PromptImages& images) {
  CutPrompt cut;
  const std::string& text = prompt.text();
  std::size_t begin = 0;
  for (std::size_t at = text.find(images.mark); at != std::string::npos;
       at = text.find(images.mark, at)) {
    std::size_t idx = 0;
    const char* const number = text.data() + at + images.mark.size();
    const auto read = std::from_chars(number, text.data() + text.size(), idx);
    const auto end = static_cast<std::size_t>(read.ptr - text.data());
    const bool is_mark = read.ec == std::errc() && idx < images.images.size() &&
                         text.compare(end, kEndOfMark.size(), kEndOfMark) == 0;
    if (!is_mark) {  // a template has cut it
      ++at;
      continue;
    }
    cut.texts.push_back(prompt.slice(begin, at));
    cut.images.push_back(idx);
    at = begin = end + kEndOfMark.size();
  }
  cut.texts.push_back(prompt.slice(begin, text.size()));
  return cut;
}

}  // namespace

ApiResult<PromptImages> take_images(const ServedModel& model, Json& messages) {
  if (!messages.is_array()) return PromptImages{};
  return ImageReader(model).read(messages);
}

ApiResult<PromptTokens> with_images(const ServedModel& model, const MarkedText& prompt,
                                    const PromptImages& images, bool are_all_shown) {
  const CutPrompt cut = cut_at_marks(prompt, images);
  for (std::size_t i = 0; are_all_shown && i < images.images.size(); ++i) {
    if (std::ranges::contains(cut.images, i)) continue;
    return refuse("messages",
                  format_text("The model's chat template leaves out image {} of the conversation: "
                              "leave it out, or put it into a message of the user",
                              i + 1));
  }
  Result<std::vector<std::vector<Token>>> texts = model.engine->vocabulary().tokenize_chat(
      cut.texts, static_cast<std::size_t>(model.engine->n_context()));
  if (!texts) return refuse("messages", texts.error().message);
  PromptTokens whole;
  for (std::size_t i = 0; i < texts->size(); ++i) {
    whole.tokens.append_range((*texts)[i]);
    if (i == cut.images.size()) break;
    const ReadImage& image = images.images[cut.images[i]];
    for (ImagePlace place : image.places) {
      place.first += static_cast<int>(whole.tokens.size());
      whole.images.push_back(std::move(place));
    }
    whole.tokens.append_range(image.tokens);
  }
  return whole;
}

}  // namespace slipstream
