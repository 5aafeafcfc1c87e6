// Parts of a message that are images: as every API sends them, in the form of OpenAI's chat API.
//
//   {"type": "image_url", "image_url": {"url": "data:image/png;base64,..."}, "path": ...}
//
// The path says where the image is in the body, for errors. turn/prompt_images.h reads such parts.
//
// Threads: immutable. Errors: 400 that names the part.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/json.h"

namespace slipstream {

// Whether the part is an image in this form, whatever it contains.
[[nodiscard]] bool is_image_part(const Json& part);

// url: a data URI, or what read_image_url() refuses.
[[nodiscard]] Json image_part(std::string url, const std::string& path);

// Of Anthropic's block "image": its source is moved out.
[[nodiscard]] ApiResult<Json> image_part_of_block(Json& block, const std::string& path);
// Of the part "input_image" of the Responses API.
[[nodiscard]] ApiResult<Json> image_part_of_input(Json& part, const std::string& path);

// The file in a data URI. Nothing is fetched.
[[nodiscard]] ApiResult<std::vector<std::byte>> read_image_url(std::string_view url,
                                                               const std::string& path);

}  // namespace slipstream
