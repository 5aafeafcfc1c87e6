#include "engine/embedding/ranking_model.h"

#include <llama.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/format.h"

namespace slipstream {
namespace {

// A query may take at most this part of what fits: a half.
constexpr std::size_t kQueryShare = 2;

// Of the template that llama.cpp calls "rerank".
constexpr std::string_view kQueryPlace = "{query}";
constexpr std::string_view kTextPlace = "{document}";

}  // namespace

RankingModel::RankingModel(std::unique_ptr<ReadingModel> model)
    : model_(std::move(model)), template_(model_->text_template("rerank")) {}

Result<std::unique_ptr<RankingModel>> RankingModel::load(const ReadingOptions& options) {
  Result<std::unique_ptr<ReadingModel>> model =
      ReadingModel::load(options, ReadingModel::Reads::kRanks);
  if (!model) return std::unexpected(model.error());
  return std::unique_ptr<RankingModel>(new RankingModel(std::move(*model)));
}

// As llama.cpp's rerankers read it: [BOS] query [EOS] [SEP] text [EOS], each of these tokens if the
// vocabulary has it and adds it.
Result<std::vector<Token>> RankingModel::pair(std::string_view query, std::string_view text) const {
  const Vocabulary& vocabulary = model_->vocabulary();
  const llama_vocab* vocab = vocabulary.get();
  const auto n_max = static_cast<std::size_t>(model_->n_tokens_max());
  Token end = llama_vocab_eos(vocab);
  if (end == LLAMA_TOKEN_NULL) end = llama_vocab_sep(vocab);
  const auto tokens_of = [&](std::string_view part) {
    return vocabulary.tokenize(beginning_of(part, model_->n_tokens_max()), false, false);
  };
  Result<std::vector<Token>> asked = tokens_of(query);
  if (!asked) return asked;
  asked->resize(std::min(asked->size(), n_max / kQueryShare));
  const Result<std::vector<Token>> read = tokens_of(text);
  if (!read) return read;
  std::vector<Token> tokens;
  const auto add = [&tokens](bool is_added, Token token) {
    if (is_added && token != LLAMA_TOKEN_NULL) tokens.push_back(token);
  };
  add(llama_vocab_get_add_bos(vocab), llama_vocab_bos(vocab));
  tokens.append_range(*asked);
  add(llama_vocab_get_add_eos(vocab), end);
  add(llama_vocab_get_add_sep(vocab), llama_vocab_sep(vocab));
  tokens.append_range(*read);
  if (tokens.size() >= n_max) tokens.resize(n_max - 1);
  add(llama_vocab_get_add_eos(vocab), end);
  return tokens;
}

MarkedText RankingModel::fill_template(std::string_view query, std::string_view text) const {
  MarkedText filled;
  const std::string_view whole = template_;
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t brace = std::min(whole.find('{', at), whole.size());
    filled.append(whole.substr(at, brace - at), Origin::kTemplate);
    const std::string_view rest = whole.substr(brace);
    if (rest.starts_with(kQueryPlace)) {
      filled.append(query, Origin::kClient);
      at = brace + kQueryPlace.size();
    } else if (rest.starts_with(kTextPlace)) {
      filled.append(text, Origin::kClient);
      at = brace + kTextPlace.size();
    } else {
      filled.append(rest.substr(0, 1), Origin::kTemplate);
      at = brace + 1;
    }
  }
  return filled;
}

Result<std::vector<Token>> RankingModel::pair_by_template(std::string_view query,
                                                          std::string_view text) const {
  const int n_max = model_->n_tokens_max();
  std::string kept = beginning_of(text, n_max);
  const std::string asked = beginning_of(query, n_max);
  while (true) {  // the text is cut, not what the template says behind it
    Result<std::vector<Token>> tokens = model_->vocabulary().tokenize_chat(
        fill_template(asked, kept), std::numeric_limits<std::size_t>::max());
    if (!tokens || std::cmp_less_equal(tokens->size(), n_max)) return tokens;
    if (kept.empty()) return fail(Code::kInvalidArgument, "the query is too long for the reranker");
    kept = beginning_of(std::string_view(kept).substr(0, kept.size() / 2), n_max);
  }
}

Result<std::vector<float>> RankingModel::rank(std::string_view query,
                                              std::span<const std::string> texts,
                                              const std::stop_token& stop) {
  std::vector<std::vector<Token>> pairs;
  for (const std::string& text : texts) {
    Result<std::vector<Token>> tokens =
        template_.empty() ? pair(query, text) : pair_by_template(query, text);
    if (!tokens) return std::unexpected(tokens.error());
    pairs.push_back(std::move(*tokens));
  }
  const Result<std::vector<ReadingModel::Row>> rows = model_->read(pairs, stop);
  if (!rows) return std::unexpected(rows.error());
  std::vector<float> ranks;
  for (const ReadingModel::Row& row : *rows) ranks.push_back(row.front());
  return ranks;
}

}  // namespace slipstream
