#include "server/template/model_template.h"

#include <llama.h>

#include <optional>
#include <string>

namespace slipstream {
namespace {

std::string text_of(const Vocabulary& vocabulary, std::optional<Token> token) {
  return token ? vocabulary.piece(*token, true) : std::string();
}

}  // namespace

Result<ChatTemplate> chat_template_of(const llama_model* model, const Vocabulary& vocabulary) {
  const char* source = llama_model_chat_template(model, nullptr);
  if (source == nullptr) return fail(Code::kUnsupported, "the model has no chat template");
  Result<ChatTemplate> created = ChatTemplate::create(source, text_of(vocabulary, vocabulary.bos()),
                                                      text_of(vocabulary, vocabulary.eos()));
  if (!created) return fail(Code::kUnsupported, created.error().message);
  return created;
}

}  // namespace slipstream
