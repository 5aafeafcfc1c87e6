#include "server/reading/reading_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace slipstream {

std::deque<ReadingQueue::Waiting>::iterator ReadingQueue::next_of(Line& line) {
  return std::ranges::min_element(line.requests, {}, &Waiting::served);
}

void ReadingQueue::add(std::shared_ptr<const ReadingRequest> request) {
  SLIP_CHECK(!request->texts.empty() && request->priority > 0, "a request that reads nothing");
  n_texts_ += request->texts.size();
  const auto [found, is_new] = lines_.try_emplace(request->client);
  Line& line = found->second;
  if (is_new) line.served = served_;
  const double served = line.requests.empty() ? 0.0 : next_of(line)->served;
  line.requests.push_back({.request = std::move(request), .served = served});
}

void ReadingQueue::forget(Lines::iterator line, const std::deque<Waiting>::iterator& request) {
  n_texts_ -= request->request->texts.size() - request->next;
  line->second.requests.erase(request);
  if (line->second.requests.empty()) lines_.erase(line);
}

void ReadingQueue::remove(const ReadingRequest& request) {
  const auto line = lines_.find(request.client);
  if (line == lines_.end()) return;
  const auto found = std::ranges::find_if(
      line->second.requests, [&](const Waiting& one) { return one.request.get() == &request; });
  if (found != line->second.requests.end()) forget(line, found);
}

std::vector<ReadingQueue::Text> ReadingQueue::take_batch(const HasRoom& has_room) {
  std::vector<Text> batch;
  std::size_t n_tokens = 0;
  while (!lines_.empty()) {
    const auto line = std::ranges::min_element(
        lines_, {}, [](const Lines::value_type& one) { return one.second.served; });
    const auto turn = next_of(line->second);
    const std::size_t n = turn->request->texts[turn->next].size();
    if (!has_room(batch.size(), n_tokens, n)) break;
    n_tokens += n;
    batch.push_back({.request = turn->request, .idx = turn->next});
    served_ = line->second.served;
    turn->served += static_cast<double>(n);
    line->second.served += static_cast<double>(n) / turn->request->priority;
    ++turn->next;
    --n_texts_;
    if (turn->next == turn->request->texts.size()) forget(line, turn);
  }
  return batch;
}

}  // namespace slipstream
