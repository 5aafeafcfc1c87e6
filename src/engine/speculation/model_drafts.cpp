#include "engine/speculation/model_drafts.h"

#include <algorithm>
#include <utility>

namespace slipstream {

ModelDrafts::ModelDrafts(BatchDrafter& model, Clock clock)
    : model_(model), clock_(std::move(clock)), costs_(model.relative_cost()) {}

ModelDrafts::Offer ModelDrafts::offer(const OfRequest& request, SeqId seq,
                                      std::span<const Token> tokens, int n_max) const {
  if (request.has_failed || n_max <= 0) return {};
  const std::optional<int> n_missing = model_.n_missing(seq, tokens);
  if (!n_missing) {
    model_.release(seq);  // its cells serve others
    return {};
  }
  const Trust& trust = request.trust ? *request.trust : all_;
  return {.chances = trust.chances(n_max), .n_missing = *n_missing};
}

void ModelDrafts::learn(std::span<const Wish> wishes, double step_seconds) {
  costs_.count_step();
  int n_left = kLearnedMax;
  if (step_seconds > 0) {
    const double n = kLearningShare * step_seconds / costs_.estimate_learning(step_seconds);
    n_left = static_cast<int>(std::clamp<double>(n, kLearnedMin, kLearnedMax));
  }
  for (const Wish& wish : wishes) {
    const int n = std::min(n_left, wish.n_missing - 1);
    if (n <= 0) continue;
    const double started = clock_();
    if (!model_.learn(wish.seq, wish.tokens, n)) wish.request->has_failed = true;
    const double took = clock_() - started;
    costs_.observe_learning(n, took);
    seconds_spent_ += took;
    n_left -= n;
  }
}

void ModelDrafts::make(std::span<const Wish> wishes) {
  if (wishes.empty()) return all_.rest();
  std::vector<BatchDrafter::Wish> asked;
  int n_rounds = 0;
  for (const Wish& wish : wishes) {
    asked.push_back({.seq = wish.seq, .tokens = wish.tokens, .n = wish.n});
    n_rounds = std::max(n_rounds, wish.n);
  }
  const double started = clock_();
  const bool is_done = model_.draft(asked);
  const double took = clock_() - started;
  seconds_spent_ += took;
  if (is_done) costs_.observe(static_cast<int>(std::ssize(wishes)), n_rounds, took);
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    OfRequest& request = *wishes[i].request;
    request.has_failed = !is_done;
    request.tokens = std::move(asked[i].draft);
    n_guessed_ += std::ssize(request.tokens);
  }
}

void ModelDrafts::catch_up(SeqId seq, std::span<const Token> tokens) {
  const double started = clock_();
  model_.catch_up(seq, tokens);
  seconds_spent_ += clock_() - started;
}

void ModelDrafts::observe(OfRequest& request, std::span<const Token> tokens) {
  if (request.tokens.empty()) return;
  if (!request.trust) request.trust.emplace(all_.right());
  request.trust->observe(request.tokens, tokens);
  all_.observe(request.tokens, tokens);
  request.tokens.clear();
}

}  // namespace slipstream
