// Evidence as JSON, in profiles and for the pipe to the process of a probe. Members
// keep their names.
//
// Threads: pure functions. Errors: nlohmann's exceptions; readers of foreign files catch them.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/calibrate/evidence.h"
#include "bench/calibrate/probe.h"

namespace slipstream::turbo {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Bits, keys, values)

}  // namespace slipstream::turbo

namespace slipstream::calibrate {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProbeTask, model, plugin, text, directory, key_profile, depth,
                                   n_chunks, n_trial_tokens, n_layers_together, n_threads,
                                   has_products, budget)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WidthOption, bits, kl, bytes_per_token)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayerGroup, first_layer, last_layer, keys, values)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChosenGroup, first_layer, last_layer, bits, kl)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SchemeEvidence, kv, kl, same_top)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KeyOffset, kl_with_centre, kl_without_centre, is_large)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KeyFitting, n_layers, n_tokens, has_all)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProbeResult, depth, n_chunks, n_tokens, finest, schemes,
                                   key_offset, key_fitting, groups)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Trial, kv, kl_expected, kl, same_top, n_needles, n_needles_found,
                                   objection)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DepthEvidence, depth, kl, same_top, kl_decoded, same_top_decoded,
                                   n_needles, n_needles_found)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AttendTrial, kv, attend, at, objection)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AttendEvidence, chosen, reason, depth_max, bytes_per_token,
                                   trials)
// Without `attend`, which not every profile has (profile.cpp).
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Evidence, chosen, reason, budget, bytes_per_token,
                                   bytes_per_token_f16, bytes_per_token_turbo8v4, groups, probe,
                                   depths, trials, notes, seconds)

}  // namespace slipstream::calibrate
