#include "engine/sampling/sampler.h"

#include <llama.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <limits>
#include <new>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/format.h"

namespace slipstream {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();
// Below this, logits divided by the temperature overflow. The difference from 0 is not noticeable.
constexpr float kTemperatureMin = 1e-5F;
// libllama's filters keep at least this many tokens.
constexpr std::size_t kKeptMin = 1;

std::size_t index(Token token) { return static_cast<std::size_t>(token); }

Token first_with(std::span<const float> logits, float value) {
  return static_cast<Token>(std::ranges::find(logits, value) - logits.begin());
}

llama_sampler* new_chain() {
  llama_sampler_chain_params params = llama_sampler_chain_default_params();
  params.no_perf = true;
  return llama_sampler_chain_init(params);
}

bool has_penalties(const SamplingParams& params) {
  return params.penalty_last_n > 0 &&
         (params.repeat_penalty != 1 || params.frequency_penalty != 0 ||
          params.presence_penalty != 0);
}

bool has_dry(const DryParams& dry) { return dry.multiplier > 0 && dry.last_n > 0; }

}  // namespace

void Sampler::Deleter::operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
Sampler::Sampler(Sampler&& other) noexcept = default;
Sampler& Sampler::operator=(Sampler&& other) noexcept = default;
Sampler::~Sampler() = default;

Sampler::Sampler(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}

Result<Sampler> Sampler::create(const Vocabulary& vocabulary, const SamplingParams& params) {
  if (const Result<void> in_range = check(params, vocabulary.n_tokens()); !in_range) {
    return std::unexpected(in_range.error());
  }
  Sampler sampler(vocabulary);
  sampler.n_top_logprobs_ = params.n_top_logprobs;
  sampler.biases_ = params.logit_bias;
  std::int32_t n_suppressed = 0;
  const llama_token* suppressed = llama_vocab_get_suppress_tokens(vocabulary.get(), &n_suppressed);
  for (std::int32_t i = 0; i < n_suppressed; ++i) {
    if (vocabulary.contains(suppressed[i])) sampler.biases_.push_back({suppressed[i], kBanned});
  }
  sampler.n_left_min_ = params.n_tokens_min;
  if (params.n_tokens_min > 0) {
    std::ranges::copy(vocabulary.pieces().ends(), std::back_inserter(sampler.ends_));
    std::ranges::copy(params.stop_tokens, std::back_inserter(sampler.ends_));
  }
  if (const Result<void> grammar = sampler.add_grammar(params.grammar); !grammar) {
    return std::unexpected(grammar.error());
  }
  if (const Result<void> reasoning = sampler.add_reasoning(params.reasoning); !reasoning) {
    return std::unexpected(reasoning.error());
  }
  try {
    sampler.add_history(params);
    sampler.add_dice(params);
  } catch (const std::bad_alloc&) {
    return fail(Code::kOutOfMemory, "not enough memory for the sampling parameters");
  } catch (const std::exception& error) {
    return fail(Code::kInvalidArgument,
                format_text("these sampling parameters cannot be used: {}", error.what()));
  }
  return sampler;
}

Sampler Sampler::clone(const SamplingParams& params) const {
  Sampler copy(*vocabulary_);
  copy.biases_ = biases_;
  copy.ends_ = ends_;
  copy.n_left_min_ = n_left_min_;
  if (history_) copy.history_.reset(llama_sampler_clone(history_.get()));
  copy.grammar_ = grammar_;
  copy.reasoning_ = reasoning_;
  copy.n_top_logprobs_ = n_top_logprobs_;
  copy.n_history_max_ = n_history_max_;
  copy.seen_ = seen_;
  copy.is_seen_ = is_seen_;
  copy.add_dice(params);
  return copy;
}

void Sampler::add_history(const SamplingParams& params) {
  if (!has_penalties(params) && !has_dry(params.dry)) return;
  history_.reset(new_chain());
  if (has_penalties(params)) {
    n_history_max_ = static_cast<std::size_t>(params.penalty_last_n);
    llama_sampler_chain_add(
        history_.get(), llama_sampler_init_penalties(
                            vocabulary_->n_tokens(), params.penalty_last_n, params.repeat_penalty,
                            params.frequency_penalty, params.presence_penalty));
  }
  if (has_dry(params.dry)) {
    n_history_max_ = std::max(n_history_max_, static_cast<std::size_t>(params.dry.last_n));
    std::vector<const char*> breakers;
    for (const std::string& breaker : params.dry.sequence_breakers) {
      breakers.push_back(breaker.c_str());
    }
    llama_sampler_chain_add(
        history_.get(),
        llama_sampler_init_dry(vocabulary_->get(), params.dry.multiplier, params.dry.base,
                               params.dry.allowed_length, params.dry.last_n, breakers.data(),
                               breakers.size()));
  }
  is_seen_.resize(index(vocabulary_->n_tokens()));
}

void Sampler::add_dice(const SamplingParams& params) {
  seed_ = params.seed ? *params.seed : std::random_device{}();
  if (params.temperature < kTemperatureMin) return;
  dice_.reset(new_chain());
  const auto add = [this](llama_sampler* sampler) {
    llama_sampler_chain_add(dice_.get(), sampler);
  };
  if (params.top_k > 0) add(llama_sampler_init_top_k(params.top_k));
  if (params.typical_p < 1) {
    add(llama_sampler_init_typical(params.typical_p, kKeptMin));
    prunes_ = true;
  }
  if (params.top_p < 1) add(llama_sampler_init_top_p(params.top_p, kKeptMin));
  if (params.min_p > 0) add(llama_sampler_init_min_p(params.min_p, kKeptMin));
  add(llama_sampler_init_temp(params.temperature));
  // To libllama this one seed means "a random one", so its results would not be repeatable.
  add(llama_sampler_init_dist(seed_ == LLAMA_DEFAULT_SEED ? seed_ - 1 : seed_));
}

Result<void> Sampler::add_grammar(const std::string& text) {
  if (text.empty()) return {};
  const auto token_of_name = [this](std::string_view name) -> std::optional<Token> {
    const Result<std::vector<Token>> tokens = vocabulary_->tokenize(name, false, true);
    if (!tokens || tokens->size() != 1) return std::nullopt;
    return tokens->front();
  };
  Result<Grammar> grammar = Grammar::parse(text, vocabulary_->n_tokens(), token_of_name);
  if (!grammar) return std::unexpected(grammar.error());
  Result<GrammarMatcher> matcher = GrammarMatcher::create(std::move(*grammar));
  if (!matcher) return std::unexpected(matcher.error());
  grammar_ = std::move(*matcher);
  return {};
}

Result<void> Sampler::add_reasoning(const ReasoningParams& params) {
  if (params.open.empty()) return {};
  Result<std::vector<Token>> open = vocabulary_->tokenize(params.open, false, true);
  if (!open) return std::unexpected(open.error());
  Result<std::vector<Token>> end = vocabulary_->tokenize(params.forced_end, false, true);
  if (!end) return std::unexpected(end.error());
  if (open->empty()) return {};
  std::string head;
  for (const Token token : std::span(*open).first(open->size() - 1)) {
    head += vocabulary_->piece(token, true);
  }
  reasoning_.emplace(params, ReasoningWatch::Markup{.open_head = std::move(head),
                                                    .open_last = open->back(),
                                                    .forced_end = std::move(*end)});
  return {};
}

void Sampler::accept_prompt(std::span<const Token> tokens) {
  for (const Token token : tokens.last(std::min(tokens.size(), n_history_max_))) remember(token);
}

void Sampler::remember(Token token) {
  if (!history_) return;
  SLIP_CHECK(vocabulary_->contains(token), "a token outside of the vocabulary");
  llama_sampler_accept(history_.get(), token);
  if (is_seen_[index(token)]) return;
  is_seen_[index(token)] = true;
  seen_.push_back(token);
}

Result<Sampled> Sampler::sample(std::span<const float> logits) {
  SLIP_CHECK(logits.size() == index(vocabulary_->n_tokens()), "not one logit per token");
  const Result<float> max = checked_max(logits);
  if (!max) return std::unexpected(max.error());
  const Result<Token> token = choose_next(logits, *max);
  if (!token) return std::unexpected(token.error());
  remember(*token);
  if (reasoning_) reasoning_->accept(vocabulary_->piece(*token, true));
  if (n_left_min_ > 0) --n_left_min_;

  Sampled sampled{.token = *token};
  if (n_top_logprobs_ >= 0) {
    Result<TokenLogprobs> logprobs = logprobs_of(logits, *token, n_top_logprobs_);
    if (!logprobs) return std::unexpected(logprobs.error());
    sampled.logprobs = std::move(*logprobs);
  }
  return sampled;
}

Result<Token> Sampler::choose_next(std::span<const float> logits, float max) {
  Result<std::optional<Token>> forced = take_forced();
  if (!forced) return std::unexpected(forced.error());
  if (*forced) return **forced;
  // Most greedy answers need no changed logits. Copying the logits of a large vocabulary for eight
  // sequences took a fiftieth of the step.
  const bool is_plain =
      !dice_ && biases_.empty() && !history_ && !grammar_ && n_left_min_ == 0 && !banned_now();
  return is_plain ? first_with(logits, max) : choose_adjusted(logits);
}

// The next token of the markup that ends reasoning. A grammar that refuses it wins.
Result<std::optional<Token>> Sampler::take_forced() {
  const std::optional<Token> forced = reasoning_ ? reasoning_->forced() : std::nullopt;
  if (!forced || !grammar_) return forced;
  const Result<bool> accepted = grammar_->accept(*forced, vocabulary_->pieces());
  if (!accepted) return std::unexpected(accepted.error());
  if (*accepted) return forced;
  reasoning_->give_up();
  return std::nullopt;
}

Result<Token> Sampler::choose_adjusted(std::span<const float> logits) {
  logits_.assign(logits.begin(), logits.end());
  for (const LogitBias& entry : biases_) logits_[index(entry.token)] += entry.bias;
  // A grammar may leave nothing else. Reasoning that it opens is then ended at once.
  const std::optional<Token> banned = banned_now();
  if (banned && !grammar_) logits_[index(*banned)] = kBanned;
  adjust_by_history();
  forbid_ends();
  const Result<Token> token = choose();
  if (!token || !grammar_) return token;
  const Result<bool> accepted = grammar_->accept(*token, vocabulary_->pieces());
  if (!accepted) return std::unexpected(accepted.error());
  return *accepted ? token : choose_allowed(*grammar_);
}

// Penalties and DRY change only tokens that occurred before. Passing just those gives the same
// logits as passing all, without looking up every token of the vocabulary in their tables, which
// takes milliseconds.
void Sampler::adjust_by_history() {
  if (!history_ || seen_.empty()) return;
  candidates_.clear();
  for (const Token token : seen_) candidates_.push_back({token, logits_[index(token)], 0});
  llama_token_data_array array{candidates_.data(), candidates_.size(), -1, false};
  llama_sampler_apply(history_.get(), &array);
  for (std::size_t i = 0; i < array.size; ++i)
    logits_[index(array.data[i].id)] = array.data[i].logit;
}

void Sampler::forbid_ends() {
  forbidden_.clear();
  if (n_left_min_ == 0) return;
  for (const Token end : ends_) {
    float& logit = logits_[index(end)];
    if (logit != kBanned) forbidden_.push_back({end, std::exchange(logit, kBanned)});
  }
}

// Called after the grammar refused a token: bans all tokens that it refuses and chooses again.
// Trying one token first makes grammars cheap: most answers follow their grammar by themselves.
Result<Token> Sampler::choose_allowed(GrammarMatcher& grammar) {
  const TokenPieces& pieces = vocabulary_->pieces();
  if (const Result<void> found = grammar.find_allowed(pieces, allowed_); !found) {
    return std::unexpected(found.error());
  }
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    if (!allowed_[i]) logits_[i] = kBanned;
  }
  Result<Token> token = choose();
  if (!token && !forbidden_.empty()) {  // what must be longer is complete: the grammar wins
    for (const auto& [end, logit] : forbidden_) {
      if (allowed_[index(end)]) logits_[index(end)] = logit;
    }
    token = choose();
  }
  if (!token) {
    return fail(Code::kInvalidArgument,
                "the grammar leaves no token that the answer could go on by");
  }
  const Result<bool> accepted = grammar.accept(*token, pieces);
  if (!accepted) return std::unexpected(accepted.error());
  SLIP_CHECK(*accepted, "the grammar refuses a token that it allowed");
  return token;
}

Result<Token> Sampler::choose() {
  const Result<float> max = checked_max(logits_);
  if (!max) return fail(Code::kInvalidArgument, "logit_bias leaves no token to choose");
  if (!dice_) return first_with(logits_, *max);
  // If a probability underflows, libllama's typical_p multiplies 0 by infinity, and the NaN makes
  // it keep the wrong tokens. The tokens left out here have probabilities below 1e-34.
  const float floor = prunes_ ? *max - 80 : kBanned;
  candidates_.clear();
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    if (logits_[i] > floor) candidates_.push_back({static_cast<Token>(i), logits_[i], 0});
  }
  llama_token_data_array array{candidates_.data(), candidates_.size(), -1, false};
  llama_sampler_apply(dice_.get(), &array);
  SLIP_CHECK(array.selected >= 0 && std::cmp_less(array.selected, array.size),
             "libllama selected none of its candidates");
  return array.data[array.selected].id;
}

}  // namespace slipstream
