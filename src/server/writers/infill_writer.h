// InfillWriter: the answer to POST /infill, with llama-server's fields.
//
// Of several answers, the whole is a list of them. A stream has the text as it comes, and an event
// with "stop": true for each answer.
//
// Threads: as TurnWriter. Errors: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/json.h"
#include "server/turn/turn_writer.h"

namespace slipstream {

class InfillWriter final : public TurnWriter {
 public:
  struct Options {
    std::string model;
    int n_context = 0;
    int n_choices = 1;
    std::size_t n_dropped = 0;  // chunks of other files that did not fit
    bool only_reads = false;    // what was generated is not wanted
  };
  explicit InfillWriter(Options options)
      : options_(std::move(options)), answers_(static_cast<std::size_t>(options_.n_choices)) {}

  std::string begin() override { return {}; }
  std::string write(TurnStep step) override;
  std::string ping() override;
  std::string write(const ApiError& error) override;
  std::string end(const Usage& /*usage*/) override { return {}; }

  void collect(TurnStep step) override;
  std::string whole(const Usage& usage) override;

 private:
  struct Infilled {
    std::string text;
    Usage usage;
    std::optional<TurnEnd> end;
  };
  [[nodiscard]] Json piece(std::size_t idx, const std::string& text) const;
  [[nodiscard]] Json ended(std::size_t idx, const Infilled& answer) const;

  const Options options_;
  std::vector<Infilled> answers_;
};

}  // namespace slipstream
