// Evidence: what was measured for a model, and which KV scheme it led to. Divergences are means
// against f16 (bench/quality/divergence.h).
//
// Threads: immutable. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/calibrate/width_choice.h"

namespace slipstream::calibrate {

// A scheme with the same widths in all layers.
struct SchemeEvidence {
  std::string kv;
  double kl = 0;
  double same_top = 1;  // a share
};

// Whether 4-bit keys are good enough only because the codec removes their offset. Stock's q4_0
// keeps the offset and so shows the result without a centre. The centre is computed from the
// first rows of a text, and does not follow an offset that moves later. Zeros if the model
// cannot have q4_0.
struct KeyOffset {
  double kl_with_centre = 0;     // turbo's 4-bit keys, values f16
  double kl_without_centre = 0;  // q4_0 keys, values f16
  bool is_large = false;
};
// Above this ratio, keys keep 8 bits, or as few bits as can be fitted: a fitted mean holds
// everywhere. With values in 4 bits too, q4_0 is 0.8 to 1.5 times as far from f16 as turbo4 on
// models without an offset, and 34 times on the one with an offset (docs/quality.md).
inline constexpr double kLargeOffsetRatio = 10;

// What was fitted to the model's keys before anything was measured (docs/formats/key-profile.md).
struct KeyFitting {
  int n_layers = 0;      // 0: nothing was fitted
  int n_tokens = 0;      // tokens used for fitting
  bool has_all = false;  // all layers that can be compressed
};

// What the probe measured (probe.h).
struct ProbeResult {
  int depth = 0;
  int n_chunks = 0;
  int n_tokens = 0;            // scored tokens
  SchemeEvidence finest = {};  // turbo8, the reference for the widths of groups
  std::vector<SchemeEvidence> schemes = {};
  KeyOffset key_offset = {};
  KeyFitting key_fitting = {};
  std::vector<LayerGroup> groups = {};
};

// A scheme tried as a whole, like eval.
struct Trial {
  std::string kv;
  double kl_expected = 0;  // sum over the layers
  double kl = 0;           // at the worst depth
  double same_top = 1;     // at the worst depth
  int n_needles = 0;       // needles that f16 finds
  int n_needles_found = 0;
  std::string objection = {};  // why it was rejected; empty if it was chosen
};

// A scheme at one depth. Figures of decoding are of tokens that were read one at a time.
struct DepthEvidence {
  int depth = 0;
  double kl = 0;
  double same_top = 1;
  double kl_decoded = 0;
  double same_top_decoded = 1;
  int n_needles = 0;  // needles that f16 finds; 0 if they were not asked for
  int n_needles_found = 0;
};

// The chosen scheme, tried as a whole with a limit on how many tokens a query reads.
struct AttendTrial {
  std::string kv;
  std::int64_t attend = 0;  // the limit; 0: all is read
  std::vector<DepthEvidence> at = {};
  std::string objection = {};
};

// The search for the smallest limit. It holds to the depth that was measured, and not beyond.
struct AttendEvidence {
  std::string chosen = {};  // "turbo4,attend=2048"; empty: no limit is small enough to be of use
  std::string reason = {};
  int depth_max = 0;
  double bytes_per_token = 0;            // of the scheme with a limit
  std::vector<AttendTrial> trials = {};  // the first reads all, the last is the chosen one
};

struct Evidence {
  std::string chosen;       // the scheme
  std::string reason = {};  // why no smaller one was chosen, in a sentence
  double budget = 0;
  double bytes_per_token = 0;
  double bytes_per_token_f16 = 0;
  double bytes_per_token_turbo8v4 = 0;
  std::vector<ChosenGroup> groups = {};  // of the chosen scheme
  ProbeResult probe = {};
  std::vector<int> depths = {};               // of the trials
  std::vector<Trial> trials = {};             // the last one is the chosen scheme
  std::optional<AttendEvidence> attend = {};  // if a limit was asked for
  std::vector<std::string> notes = {};
  double seconds = 0;
};

}  // namespace slipstream::calibrate
