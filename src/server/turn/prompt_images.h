// Images of a conversation, on their way through its template.
//
// take_images() reads them and leaves a mark in the place of each, which the template renders as words
// of its message. A mark has a number that was drawn for this request: no client can write one.
// with_images() makes tokens of the prompt, and the images' cells of the marks.
//
// Threads: on a worker. Errors: ApiErrors that name the part.
#pragma once

#include <string>
#include <vector>

#include "engine/text/marked_text.h"
#include "engine/vision/vision.h"
#include "server/api/api_error.h"
#include "server/json.h"
#include "server/served_model.h"

namespace slipstream {

struct PromptImages {
  std::string mark = {};  // what all marks of the request begin with; empty: there are none
  std::vector<ReadImage> images = {};
};

// The images of messages in the form of OpenAI's chat API.
[[nodiscard]] ApiResult<PromptImages> take_images(const ServedModel& model, Json& messages);

struct PromptTokens {
  std::vector<Token> tokens = {};
  std::vector<ImagePlace> images = {};
};

// are_all_shown: whether an image that is not in the prompt is an error.
[[nodiscard]] ApiResult<PromptTokens> with_images(const ServedModel& model,
                                                  const MarkedText& prompt,
                                                  const PromptImages& images, bool are_all_shown);

}  // namespace slipstream
