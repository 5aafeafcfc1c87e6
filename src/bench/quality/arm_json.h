// Arms as JSON, for the pipe between eval and the process of an arm. Members keep their names.
//
// Threads: pure functions. Errors: nlohmann's exceptions; readers of foreign files catch them.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/quality/arm.h"

namespace slipstream::quality {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ArmOptions, model, kv, plugin, key_profile, text, base_directory,
                                   depths, n_chunks, n_decoded, n_needle_texts, needle_kinds,
                                   n_tool_calls, n_drift_prompts, n_drift_tokens, n_work_tasks,
                                   n_threads, has_products, tasks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DivergenceFigures, n_tokens, kl_mean, kl_mean_error, kl_median,
                                   kl_90, kl_95, kl_99, kl_99_9, kl_max, same_top, same_top_error,
                                   delta_p_mean, delta_p_mean_error, delta_p_rms, perplexity,
                                   perplexity_base, perplexity_ratio, perplexity_ratio_error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RowFigures, n_rows, error_mean, n_lost, first_lost)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DepthFigures, depth, n_chunks, perplexity, divergence, decoded,
                                   rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NeedleAnswer, kind, depth, position, name, answer, right,
                                   n_prompt, n_cached)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ToolCallOutcome, asked, answer, is_call, right_name, valid,
                                   as_expected)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SchemaOutcome, schema, answer, valid)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkAnswer, kind, expected, answer, valid, right)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ArmResult, depths, divergence, needles, tool_calls, schemas,
                                   continuations, work, notes, seconds)

}  // namespace slipstream::quality
