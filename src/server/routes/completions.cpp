#include "server/routes/completions.h"

#include <algorithm>
#include <utility>

#include "server/api/completion_request.h"
#include "server/routes/generated_answer.h"

namespace slipstream {

namespace {

using Prompts = std::vector<std::vector<Token>>;

// In code points, as OpenAI's offsets are.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

class Completion final : public GeneratedAnswer {
 public:
  Completion(ServedModel& model, HttpExchange& exchange, const Client& client,
             const CompletionRequest& request, Prompts prompts)
      : GeneratedAnswer(
            {.id_prefix = "cmpl", .whole = "text_completion", .chunk = "text_completion"}, model,
            exchange, client, request.options,
            prompts.size() * static_cast<std::size_t>(request.options.n)),
        echoes_(request.echoes),
        prompts_(std::move(prompts)),
        collected_(n_choices()),
        progress_(n_choices()) {}

  [[nodiscard]] const std::vector<Token>& prompt(std::size_t idx) const {
    return prompts_[idx / static_cast<std::size_t>(options().n)];
  }
  using GeneratedAnswer::n_choices;
  [[nodiscard]] bool echoes() const { return echoes_; }

 private:
  // How far a choice has come at the client.
  struct Progress {
    bool has_begun = false;
    std::size_t offset = 0;  // of the next token in the text
  };

  std::vector<Json> choices_of(std::size_t idx, Event event) override {
    // A token whose text is held back says nothing yet, unless its probability is asked for.
    if (event.text.empty() && !event.ending && !wants_logprobs()) return {};
    return {to_choice(idx, event)};
  }

  void collect(std::size_t idx, Event event) override {
    Event& all = collected_[idx];
    all.text += event.text;
    std::ranges::move(event.tokens, std::back_inserter(all.tokens));
    std::ranges::move(event.prompt_logprobs, std::back_inserter(all.prompt_logprobs));
    all.ending = std::move(event.ending);
  }
  Json choice(std::size_t idx) override { return to_choice(idx, collected_[idx]); }

  Json to_choice(std::size_t idx, const Event& event) {
    const bool has_begun = std::exchange(progress_[idx].has_begun, true);
    const bool echoes_now = echoes_ && !has_begun;
    return {{"index", idx},
            {"text", echoes_now ? prompt_text(idx) + event.text : event.text},
            {"logprobs", wants_logprobs() ? logprobs(idx, event, echoes_now) : Json()},
            {"finish_reason", event.ending ? finish_reason_of(*event.ending) : Json()}};
  }

  Json logprobs(std::size_t idx, const Event& event, bool echoes_now) {
    Json result = {{"tokens", Json::array()},
                   {"token_logprobs", Json::array()},
                   {"top_logprobs", Json::array()},
                   {"text_offset", Json::array()}};
    std::size_t& offset = progress_[idx].offset;
    if (echoes_now) {
      const std::vector<Token>& tokens = prompt(idx);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool is_known = i > 0 && i <= event.prompt_logprobs.size();
        add(result, tokens[i], is_known ? &event.prompt_logprobs[i - 1] : nullptr, offset);
      }
    }
    for (const Sampled& sampled : event.tokens) {
      add(result, sampled.token, sampled.logprobs ? &*sampled.logprobs : nullptr, offset);
    }
    return result;
  }

  void add(Json& logprobs, Token token, const TokenLogprobs* of, std::size_t& offset) const {
    const std::string text = piece(token);
    logprobs["tokens"].push_back(text);
    logprobs["text_offset"].push_back(std::exchange(offset, offset + length_of(text)));
    logprobs["token_logprobs"].push_back(of == nullptr ? Json() : Json(of->logprob));
    Json top = of == nullptr ? Json() : Json::object();
    if (of != nullptr) {
      for (const TokenLogprob& other : of->top) top[piece(other.token)] = other.logprob;
    }
    logprobs["top_logprobs"].push_back(std::move(top));
  }

  [[nodiscard]] std::string prompt_text(std::size_t idx) const {
    std::string text;
    for (const Token token : prompt(idx)) text += piece(token);
    return text;
  }
  [[nodiscard]] std::string piece(Token token) const { return vocabulary().piece(token, true); }

  const bool echoes_;
  const Prompts prompts_;
  std::vector<Event> collected_;
  std::vector<Progress> progress_;
};

}  // namespace

Prepared prepare_completion(ServedModel& model, HttpExchange& exchange, Json& body,
                            const Client& client) {
  // Before anything is built for it; submit() asks again.
  if (const Result<void> room = model.engine->check_room(); !room) {
    return std::unexpected(to_api_error(room.error()));
  }
  ApiResult<CompletionRequest> request = read_completion_request(body);
  if (!request) return std::unexpected(request.error());
  Prompts prompts;
  for (Prompt& prompt : request->prompts) {
    ApiResult<std::vector<Token>> tokens = to_tokens(model.engine->vocabulary(), "prompt",
                                                     std::move(prompt), model.engine->n_context());
    if (!tokens) return std::unexpected(tokens.error());
    prompts.push_back(std::move(*tokens));
  }
  auto answer = std::make_unique<Completion>(model, exchange, client, *request, std::move(prompts));
  const GenerationOptions& options = answer->options();
  for (std::size_t i = 0; i < answer->n_choices(); ++i) {
    const std::vector<Token>& prompt = answer->prompt(i);
    const ApiResult<int> n_tokens =
        tokens_to_generate("prompt", prompt.size(), options, model.engine->n_context());
    if (!n_tokens) return std::unexpected(n_tokens.error());
    GenerateRequest generate =
        make_request(options, prompt, *n_tokens, static_cast<int>(i) % options.n, client);
    generate.wants_prompt_logprobs = answer->echoes() && options.sampling.n_top_logprobs >= 0;
    const Result<void> submitted = answer->stream().submit(std::move(generate));
    if (!submitted) return std::unexpected(to_api_error(submitted.error()));
    if (std::cmp_equal(i % static_cast<std::size_t>(options.n), 0))
      client.charge_prompt(prompt.size());
  }
  return answer;
}

}  // namespace slipstream
