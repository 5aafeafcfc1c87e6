// A pass over a text to measure its divergence: first with f16, which writes its log-probabilities
// to a file, then with any scheme, in this process or another, which is compared with that file.
//
//   record_base(f16_model, chunks, 512, "base", {});
//   Result<DivergenceFigures> figures = measure(turbo_model, chunks, 512, "base", {});
//
// The model needs as many outputs as a step has tokens (ModelOptions::n_outputs_max).
//
// Threads: for the thread that owns the model.
// Errors:  those of scored_text.h, base_rows.h and divergence.h.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "bench/quality/divergence.h"
#include "bench/quality/scored_text.h"

namespace slipstream::quality {

using OnProgress = std::function<void(double done)>;  // from 0 to 1

// Returns the perplexity.
[[nodiscard]] Result<double> record_base(Model& model, std::span<const Tokens> chunks,
                                         int n_step_tokens, const std::string& path,
                                         const OnProgress& on_progress);

[[nodiscard]] Result<DivergenceFigures> measure(Model& model, std::span<const Tokens> chunks,
                                                int n_step_tokens, const std::string& path,
                                                const OnProgress& on_progress);

struct PassFigures {
  DivergenceFigures all = {};
  DivergenceFigures decoded = {};  // of the tokens that were computed one at a time
};
// The last n_decoded tokens that count of each chunk are computed one at a time, as the tokens of an
// answer are. A scheme with attend=N reads more for the tokens of a prompt.
[[nodiscard]] Result<PassFigures> measure_decoding(Model& model, std::span<const Tokens> chunks,
                                                   int n_step_tokens, int n_decoded,
                                                   const std::string& path,
                                                   const OnProgress& on_progress);

}  // namespace slipstream::quality
