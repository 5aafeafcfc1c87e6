// Limits: the largest value of everything that could otherwise grow without end. One struct, so
// that a reader finds every maximum in one place and a test can set all of them small. A room adds
// its own field here together with the code that obeys it and the error its caller gets.
//
// Threads: immutable after start.
#pragma once

#include <cstddef>

namespace slipstream {

struct Limits {
  // read_small_file() refuses longer files: it is meant for /proc, /sys and configuration.
  std::size_t small_file_bytes_max = std::size_t{1} << 20;
  // A longer log line is cut and says so (log.h): one huge value must not fill a disk.
  std::size_t log_line_bytes_max = std::size_t{16} << 10;

  // A longer prompt is refused before it is tokenized (vocabulary.h): some of libllama's tokenizers
  // take a second per megabyte, and a context of a million tokens is about 4 MB of text.
  std::size_t text_bytes_max = std::size_t{16} << 20;
  // A request with more, or longer, stop strings is refused (text_stream.h): each costs a
  // comparison per byte, and its length is what a client's text may lag behind.
  std::size_t stops_max = 16;
  std::size_t stop_bytes_max = std::size_t{1} << 10;

  // Sampling parameters past these are refused (sampling_params.h). Penalties keep so many tokens
  // per sequence, and each breaker of DRY is looked for in the whole vocabulary.
  std::size_t penalty_window_max = std::size_t{1} << 20;
  std::size_t dry_breakers_max = 16;
  std::size_t logit_biases_max = std::size_t{1} << 16;
  int top_logprobs_max = 100;

  // A larger grammar is refused (grammar.h). A repetition counts as often as it repeats.
  std::size_t grammar_bytes_max = std::size_t{256} << 10;
  std::size_t grammar_symbols_max = std::size_t{1} << 18;
  std::size_t grammar_nesting_max = 128;
  // A grammar that needs more than this for one token fails its request (grammar_matcher.h): it is
  // so ambiguous that the ways to read the answer multiply. Inside a string of JSON, where nearly
  // every token is allowed, looking at all 50,000 of GPT-2 takes half a million steps.
  std::size_t grammar_steps_max = std::size_t{1} << 23;
  std::size_t grammar_nodes_max = std::size_t{1} << 20;

  // A larger JSON schema is refused (server/schema). A pattern, a range of numbers or the names
  // that are taken become an automaton, each state a rule of the grammar. Steps are a measure of
  // time: all of them take about a tenth of a second.
  std::size_t schema_bytes_max = std::size_t{256} << 10;  // text of all names and strings
  std::size_t schema_values_max = std::size_t{1} << 15;
  std::size_t schema_depth_max = 128;
  // Of references, allOf, anyOf and oneOf, one inside the other without a value in between.
  std::size_t schema_nesting_max = 64;
  // Ways to meet a schema: three anyOf of ten in one allOf are 1,000.
  std::size_t schema_shapes_max = 1024;
  std::size_t schema_key_patterns_max = 4;
  std::size_t schema_steps_max = std::size_t{1} << 22;
  std::size_t pattern_bytes_max = std::size_t{4} << 10;
  std::size_t pattern_nesting_max = 64;
  std::size_t automaton_states_max = 4096;
  std::size_t multiple_of_max = 1000;

  // Prefixes on disk (engine/prefixes/disk). A longer one is not written, and a file that claims to
  // hold one is corrupt.
  std::size_t prefix_tokens_max = std::size_t{1} << 20;
  std::size_t prefix_state_bytes_max = std::size_t{4} << 30;
  // Prefixes that wait for the disk, with the one that is being written: more are not taken.
  std::size_t n_prefix_writes_max = 8;
  std::size_t prefix_writes_bytes_max = std::size_t{4} << 30;
  // With more files than this those used longest ago are deleted, as with more bytes than
  // configured.
  std::size_t n_prefix_files_max = 16'384;
  // What prefixes leave free on a disk, unless 5 % of the disk is less.
  std::size_t disk_reserve_bytes_max = std::size_t{1} << 30;

  // HTTP (server/http): a larger header or body is refused with 431 or 413; one connection more is
  // turned away with 503.
  std::size_t http_header_bytes_max = std::size_t{32} << 10;
  std::size_t http_body_bytes_max = std::size_t{32} << 20;
  std::size_t http_connections_max = 4096;
  // Bodies that are read and worked on have so much together, without the first bytes of each; one
  // that finds no room waits, and is refused with 503 when it has waited too long.
  std::size_t http_bodies_bytes_max = std::size_t{256} << 20;
  std::size_t http_free_body_bytes = std::size_t{64} << 10;
  // A client that sends more than this behind a request that is not answered yet is cut off.
  std::size_t http_ahead_bytes_max = std::size_t{256} << 10;
  // JSON of a client that is nested deeper or has more values is refused while it is read, in a
  // body and in a string that is read as JSON again (server/bounded_json.h). So is what takes more
  // memory than this, or so many times that of its text, but for the first megabyte: messages of
  // one letter take nine times theirs, a list of such texts sixteen.
  std::size_t json_nesting_max = 128;
  std::size_t json_values_max = std::size_t{1} << 23;
  std::size_t json_bytes_max = std::size_t{128} << 20;
  std::size_t json_free_bytes = std::size_t{1} << 20;
  std::size_t json_bytes_per_byte_max = 10;

  // What a model writes (server/output). So much is held back while it may become a tool call: its
  // arguments before its name, or one parameter whose type must be seen whole. More is given to the
  // client as text.
  std::size_t call_held_bytes_max = std::size_t{1} << 20;
  // A tool's name and what surrounds it; the name of a parameter.
  std::size_t call_header_bytes_max = 512;
  // Deeper arguments are no call: a client's parser would recurse as deep.
  std::size_t call_nesting_max = 128;
  // A model's chat template, and what rendering it may take (server/template/chat_template.h). The
  // longest of 68 public templates has 17 KB. A conversation of 1,000 messages takes most of them
  // 200,000 steps, but those that look at all messages for each of them millions; this many take
  // 0.2 to 1.4 s.
  std::size_t template_source_bytes_max = std::size_t{256} << 10;
  std::size_t template_steps_max = std::size_t{1} << 25;
  std::size_t template_bytes_max = std::size_t{128} << 20;
  std::size_t template_nesting_max = 100;
  // White space before markup belongs to the markup, up to so much.
  std::size_t held_space_bytes_max = 256;
};

inline constexpr Limits kLimits{};

}  // namespace slipstream
