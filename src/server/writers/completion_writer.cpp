#include "server/writers/completion_writer.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace slipstream {

namespace {

// The length in code points, because OpenAI's offsets count code points.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

CompletionWriter::CompletionWriter(const ServedModel& model, const CompletionRequest& request,
                                   Prompts prompts)
    : OpenAiWriter({.id_prefix = "cmpl", .whole = "text_completion", .chunk = "text_completion"},
                   model, request.options,
                   prompts.size() * static_cast<std::size_t>(request.options.n)),
      echoes_(request.echoes),
      n_per_prompt_(static_cast<std::size_t>(request.options.n)),
      prompts_(std::move(prompts)),
      collected_(n_choices()),
      progress_(n_choices()) {}

void CompletionWriter::append(Piece& piece, TurnStep step) {
  for (const ChatDelta& delta : step.deltas) piece.text += delta.text;
  std::ranges::move(step.tokens, std::back_inserter(piece.tokens));
  std::ranges::move(step.prompt_logprobs, std::back_inserter(piece.prompt_logprobs));
  piece.end = std::move(step.end);
}

std::vector<Json> CompletionWriter::choices_of(TurnStep step) {
  // A token whose text is held back needs no chunk yet, unless its log-probability was requested.
  if (step.deltas.empty() && !step.end && !wants_logprobs()) return {};
  const std::size_t idx = step.choice;
  Piece piece;
  append(piece, std::move(step));
  return {to_choice(idx, piece)};
}

Json CompletionWriter::empty_choice() const {
  return {{"index", 0}, {"text", ""}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
}

void CompletionWriter::collect(TurnStep step) {
  const std::size_t idx = step.choice;
  append(collected_[idx], std::move(step));
}

Json CompletionWriter::to_choice(std::size_t idx, const Piece& piece) {
  const bool has_begun = std::exchange(progress_[idx].has_begun, true);
  const bool echoes_now = echoes_ && !has_begun;
  return {{"index", idx},
          {"text", echoes_now ? prompt_text(idx) + piece.text : piece.text},
          {"logprobs", wants_logprobs() ? logprobs(idx, piece, echoes_now) : Json()},
          {"finish_reason", piece.end ? Json(name(piece.end->reason)) : Json()}};
}

Json CompletionWriter::logprobs(std::size_t idx, const Piece& piece, bool echoes_now) {
  Json result = {{"tokens", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"top_logprobs", Json::array()},
                 {"text_offset", Json::array()}};
  std::size_t& offset = progress_[idx].offset;
  if (echoes_now) {
    const std::vector<Token>& tokens = prompt(idx);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool is_known = i > 0 && i <= piece.prompt_logprobs.size();
      add(result, tokens[i], is_known ? &piece.prompt_logprobs[i - 1] : nullptr, offset);
    }
  }
  for (const Sampled& sampled : piece.tokens) {
    add(result, sampled.token, sampled.logprobs ? &*sampled.logprobs : nullptr, offset);
  }
  return result;
}

void CompletionWriter::add(Json& logprobs, Token token, const TokenLogprobs* of,
                           std::size_t& offset) const {
  const std::string text = piece_of(token);
  logprobs["tokens"].push_back(text);
  logprobs["text_offset"].push_back(std::exchange(offset, offset + length_of(text)));
  logprobs["token_logprobs"].push_back(of == nullptr ? Json() : Json(of->logprob));
  Json top = of == nullptr ? Json() : Json::object();
  if (of != nullptr) {
    for (const TokenLogprob& other : of->top) top[piece_of(other.token)] = other.logprob;
  }
  logprobs["top_logprobs"].push_back(std::move(top));
}

const std::vector<Token>& CompletionWriter::prompt(std::size_t idx) const {
  return prompts_[idx / n_per_prompt_];
}

std::string CompletionWriter::prompt_text(std::size_t idx) const {
  std::string text;
  for (const Token token : prompt(idx)) text += piece_of(token);
  return text;
}

}  // namespace slipstream
