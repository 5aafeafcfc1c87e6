// The runner's outputs: what is sampled, told and ended after a batch was computed.
#include <algorithm>
#include <exception>
#include <utility>

#include "base/format.h"
#include "engine/active_request.h"
#include "engine/runner.h"

namespace slipstream {

namespace {

// An exception from one request's sampler ends only that request.
Result<Sampled> sampled_by(Sampler& sampler, std::span<const float> logits) {
  try {
    return sampler.sample(logits);
  } catch (const std::exception& error) {
    return fail(Code::kOutOfMemory, format_text("no token could be chosen: {}", error.what()));
  }
}

}  // namespace

void Runner::read_outputs(Work& work, int first_batch_idx) {
  Active& worker = active(work.id);
  read_prompt_logprobs(worker, work, first_batch_idx);
  worker.holding.n_computed += work.n;
  share(worker);
  tell_progress(worker);
  if (work.samples) {
    answer(work, first_batch_idx + work.n - 1);
  } else if (work.first + work.n == static_cast<int>(worker.tokens.size())) {
    stop(work.id, {.reason = FinishReason::kLength});  // it asked for no generated tokens
  }
}

std::span<const float> Runner::logits(int batch_idx) const {
  return {llama_get_logits_ith(model_.context(), batch_idx),
          static_cast<std::size_t>(vocabulary_.n_tokens())};
}

void Runner::read_prompt_logprobs(Active& active, const Work& work, int first_batch_idx) {
  std::vector<TokenLogprobs>& logprobs = active.event.prompt_logprobs;
  for (int i = work.first; i < work.first + work.n && active.judges(i); ++i) {
    // A sequence that was preempted computes these positions again.
    if (static_cast<std::size_t>(i) < logprobs.size()) continue;
    const Token next = active.tokens[static_cast<std::size_t>(i) + 1];
    const int n_top = std::max(active.job.request.sampling.n_top_logprobs, 0);
    // Logits that are not finite have no probabilities; the sampler reports them.
    logprobs.push_back(logprobs_of(logits(first_batch_idx + i - work.first), next, n_top)
                           .value_or(TokenLogprobs{}));
  }
}

void Runner::tell_progress(const Active& active) {
  const int n_prompt = active.usage.n_prompt;
  const int n_done = active.holding.n_computed;
  if (!active.job.request.wants_progress || n_done > n_prompt) return;
  active.job.listener(
      {.progress = PromptProgress{
           .n_prompt = n_prompt, .n_cached = active.usage.n_cached, .n_done = n_done}});
}

// Samples behind the pending token, and behind each drafted one as long as it is what was sampled.
// The cells of the others go back.
void Runner::answer(Work& work, int batch_idx) {
  Active& worker = active(work.id);
  const std::size_t n_before = worker.tokens.size();
  worker.usage.n_drafted += work.n_drafted;
  while (sample(work, batch_idx + work.n_accepted)) {
  }
  speculation_.count(work.n_drafted, work.n_accepted);
  if (!actives_.contains(work.id)) return;  // it has ended
  speculation_.observe_answer(worker.drafting, std::span(worker.tokens).subspan(n_before));
  const int n_refused = work.n_drafted - work.n_accepted;
  if (n_refused == 0) return;
  const Holding& holding = worker.holding;
  if (cells_.remove(holding.seq, holding.n_computed, kEndOfSequence)) {
    return reserve_.note_cut(holding.seq, n_refused);
  }
  worker.holding.n_computed = 0;  // its state is not worth keeping
  stop(work.id,
       {.reason = FinishReason::kFailed, .error = "drafted tokens could not be taken back"});
}

// Returns whether the next token can be sampled from this batch, too.
bool Runner::sample(Work& work, int batch_idx) {
  Active& worker = active(work.id);
  Job& job = worker.job;
  Result<Sampled> sampled = sampled_by(job.sampler, logits(batch_idx));
  if (!sampled) {
    stop(work.id, {.reason = FinishReason::kFailed, .error = sampled.error().message});
    return false;
  }
  const Token token = sampled->token;
  worker.tokens.push_back(token);
  const std::span<const Token> draft = worker.drafting.draft();
  const bool is_accepted =
      work.n_accepted < work.n_drafted && token == draft[static_cast<std::size_t>(work.n_accepted)];
  if (is_accepted) {  // it is computed already
    ++work.n_accepted;
    ++worker.usage.n_accepted;
    ++worker.holding.n_computed;
  }
  worker.count_token();
  worker.usage.n_reasoning = job.sampler.n_reasoning();
  ++stats_.n_generated_tokens;
  worker.event.tokens.push_back(std::move(*sampled));
  if (std::optional<Ending> ending = add_text(worker, token)) {
    stop(work.id, std::move(*ending));
    return false;
  }
  worker.event.usage = worker.usage;
  job.listener(std::exchange(worker.event, {}));
  return is_accepted;
}

// The text of a token that was chosen; returns how the answer ends if it ends here.
std::optional<Ending> Runner::add_text(Active& worker, Token token) const {
  Job& job = worker.job;
  const SamplingParams& sampling = job.request.sampling;
  const bool may_stop = worker.usage.n_generated > sampling.n_tokens_min;
  const bool is_stop = may_stop && std::ranges::contains(sampling.stop_tokens, token);
  if (is_stop || (vocabulary_.is_end(token) && !job.request.ignores_end)) {
    return Ending{.reason = FinishReason::kStop};
  }
  TextStream::Delta delta =
      job.text.push(vocabulary_.piece(token, job.request.shows_control_tokens), may_stop);
  worker.event.text += delta.text;
  if (delta.stopped) {
    return Ending{.reason = FinishReason::kStop, .matched_stop = std::move(delta.matched_stop)};
  }
  if (worker.usage.n_generated == job.request.n_tokens_max) {
    return Ending{.reason = FinishReason::kLength};
  }
  return std::nullopt;
}

// The request has ended within this step.
void Runner::stop(RequestId id, Ending ending) {
  Active& stopped = active(id);
  ended_.push_back(id);
  release(stopped);
  end(stopped, std::move(ending));
}

void Runner::end(Active& active, Ending ending) {
  const RequestId id = active.job.id;
  // Text held back as a possible start of a stop string is text after all.
  if (ending.matched_stop.empty()) active.event.text += active.job.text.finish().text;
  ending.usage = active.usage;
  active.event.usage = active.usage;
  active.event.ending = std::move(ending);
  active.job.listener(active.event);
  actives_.erase(id);
}

}  // namespace slipstream
