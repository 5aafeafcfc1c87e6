#include "server/writers/chat_writer.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "server/writers/annotations.h"

namespace slipstream {

namespace {

// The log-probability of one token in the form of the chat API.
Json entry_of(const Vocabulary& vocabulary, Token token, float logprob) {
  const std::string piece = vocabulary.piece(token, true);
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", piece}, {"logprob", logprob}, {"bytes", std::move(bytes)}};
}

Json logprobs_of(const Vocabulary& vocabulary, const std::vector<Sampled>& tokens) {
  Json content = Json::array();
  for (const Sampled& sampled : tokens) {
    if (!sampled.logprobs || vocabulary.is_end(sampled.token)) continue;  // EOS is not content
    Json entry = entry_of(vocabulary, sampled.token, sampled.logprobs->logprob);
    entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& top : sampled.logprobs->top) {
      entry["top_logprobs"].push_back(entry_of(vocabulary, top.token, top.logprob));
    }
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

// The delta of one of OpenAI's chunks; null if no chunk is needed.
Json delta_json(const ChatDelta& delta) {
  switch (delta.kind) {
    case ChatDelta::Kind::kContent: return {{"content", delta.text}};
    case ChatDelta::Kind::kReasoning: return {{"reasoning_content", delta.text}};
    case ChatDelta::Kind::kCallBegin:
      return {
          {"tool_calls", Json::array({{{"index", delta.call_idx},
                                       {"id", new_id("call")},
                                       {"type", "function"},
                                       {"function", {{"name", delta.text}, {"arguments", ""}}}}})}};
    case ChatDelta::Kind::kCallArguments:
      return {{"tool_calls", Json::array({{{"index", delta.call_idx},
                                           {"function", {{"arguments", delta.text}}}}})}};
    case ChatDelta::Kind::kCallEnd: return {};
  }
  return {};
}

Json message_of(const ChatAnswer& answer) {
  const bool says_nothing = answer.content.empty() && !answer.calls.empty();
  Json message = {{"role", "assistant"},
                  {"content", says_nothing ? Json() : Json(answer.content)},
                  {"refusal", nullptr}};
  if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
  for (const ChatAnswer::Call& call : answer.calls) {
    message["tool_calls"].push_back(
        {{"id", new_id("call")},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return message;
}

Json chunk_choice(std::size_t idx, Json delta, Json logprobs, Json finish_reason) {
  return {{"index", idx},
          {"delta", std::move(delta)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", std::move(finish_reason)}};
}

// Without a notice, an empty answer looks like a failure of the client or the server.
void note_silence(const TurnEnd& end, Json& json) {
  if (end.said_nothing) json["notice"] = "The model ended its answer without a word";
}

}  // namespace

ChatWriter::ChatWriter(const ServedModel& model, const GenerationOptions& options)
    : OpenAiWriter(
          {.id_prefix = "chatcmpl", .whole = "chat.completion", .chunk = "chat.completion.chunk"},
          model, options, static_cast<std::size_t>(options.n)),
      collected_(n_choices()) {}

std::vector<Json> ChatWriter::first_choices() {
  std::vector<Json> chunks;
  for (std::size_t i = 0; i < n_choices(); ++i) {
    chunks.push_back(chunk_choice(i, {{"role", "assistant"}, {"content", ""}}, {}, {}));
  }
  return chunks;
}

Json ChatWriter::empty_choice() const { return chunk_choice(0, Json::object(), {}, {}); }

std::vector<Json> ChatWriter::choices_of(TurnStep step) {
  std::vector<Json> chunks;
  Json pending_logprobs = logprobs(step.tokens);
  for (const ChatDelta& delta : step.deltas) {
    Json json = delta_json(delta);
    if (json.is_null()) continue;
    chunks.push_back(
        chunk_choice(step.choice, std::move(json), std::exchange(pending_logprobs, Json()), {}));
  }
  // These are of tokens whose text is held back, or which have no text.
  if (!pending_logprobs.is_null()) {
    chunks.push_back(chunk_choice(step.choice, Json::object(), std::move(pending_logprobs), {}));
  }
  if (step.end) {
    Json delta = Json::object();
    if (!step.end->citations.empty()) delta["annotations"] = chat_annotations(step.end->citations);
    chunks.push_back(chunk_choice(step.choice, std::move(delta), {}, name(step.end->reason)));
    note_silence(*step.end, chunks.back());
  }
  return chunks;
}

void ChatWriter::collect(TurnStep step) {
  Collected& all = collected_[step.choice];
  all.answer.add(step.deltas);
  std::ranges::move(step.tokens, std::back_inserter(all.tokens));
  all.end = std::move(step.end);
}

Json ChatWriter::choice(std::size_t idx) {
  const Collected& all = collected_[idx];
  Json json = {{"index", idx},
               {"message", message_of(all.answer)},
               {"logprobs", logprobs(all.tokens)},
               {"finish_reason", all.end ? Json(name(all.end->reason)) : Json()}};
  if (!all.end) return json;
  note_silence(*all.end, json);
  if (!all.end->citations.empty()) {
    json["message"]["annotations"] = chat_annotations(all.end->citations);
  }
  return json;
}

Json ChatWriter::logprobs(const std::vector<Sampled>& tokens) const {
  if (!wants_logprobs() || tokens.empty()) return {};
  return logprobs_of(vocabulary(), tokens);
}

}  // namespace slipstream
