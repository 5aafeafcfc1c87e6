// RankingPairs: a query and a text as the tokens that a reranker reads together, as llama.cpp's
// rerankers do: by the template that the model's file calls "rerank", or as
// [BOS] query [EOS] [SEP] text [EOS], each of these tokens if the vocabulary has it and adds it.
//
// Control tokens are read only in the template. Tokens are compared with the model's n_tokens_max.
//
// Threads: thread-safe; the model must outlive it.
// Errors:  those of the vocabulary; cut(): kInvalidArgument if the query fills all of a template.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/embedding/reading_model.h"
#include "engine/text/marked_text.h"

namespace slipstream {

class RankingPairs {
 public:
  explicit RankingPairs(const ReadingModel& model)
      : model_(model), template_(model.text_template("rerank")) {}

  // Both whole. May have more tokens than fit.
  [[nodiscard]] Result<std::vector<Token>> whole(std::string_view query,
                                                 std::string_view text) const;
  // As much of the beginnings of both as fits; half of it is the text's.
  [[nodiscard]] Result<std::vector<Token>> cut(std::string_view query, std::string_view text) const;

 private:
  [[nodiscard]] MarkedText fill_template(std::string_view query, std::string_view text) const;
  [[nodiscard]] Result<std::vector<Token>> by_template(std::string_view query,
                                                       std::string_view text) const;
  [[nodiscard]] std::vector<Token> join(const std::vector<Token>& query,
                                        const std::vector<Token>& text) const;
  [[nodiscard]] Result<std::vector<Token>> cut_by_template(std::string_view query,
                                                           std::string_view text) const;

  const ReadingModel& model_;
  const std::string template_;  // with {query} and {document}; empty: tokens separate both
};

}  // namespace slipstream
