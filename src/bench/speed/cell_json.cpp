#include "bench/speed/cell_json.h"

namespace slipstream::bench {

using nlohmann::json;

namespace {

json rope_json(const RopeScaling& rope) {
  return {{"type", rope.type},
          {"freq_base", rope.freq_base},
          {"freq_scale", rope.freq_scale},
          {"yarn_orig_ctx", rope.yarn_orig_ctx},
          {"yarn_ext_factor", rope.yarn_ext_factor},
          {"yarn_attn_factor", rope.yarn_attn_factor},
          {"yarn_beta_fast", rope.yarn_beta_fast},
          {"yarn_beta_slow", rope.yarn_beta_slow}};
}

RopeScaling rope_of(const json& json) {
  RopeScaling rope;
  json.at("type").get_to(rope.type);
  json.at("freq_base").get_to(rope.freq_base);
  json.at("freq_scale").get_to(rope.freq_scale);
  json.at("yarn_orig_ctx").get_to(rope.yarn_orig_ctx);
  json.at("yarn_ext_factor").get_to(rope.yarn_ext_factor);
  json.at("yarn_attn_factor").get_to(rope.yarn_attn_factor);
  json.at("yarn_beta_fast").get_to(rope.yarn_beta_fast);
  json.at("yarn_beta_slow").get_to(rope.yarn_beta_slow);
  return rope;
}

}  // namespace

void to_json(json& json, const Cell& cell) {
  json = {{"kv", cell.kv}, {"depth", cell.depth}, {"sequences", cell.n_sequences}};
  if (cell.shares_depth) json["shared"] = true;
}

void from_json(const json& json, Cell& cell) {
  json.at("kv").get_to(cell.kv);
  json.at("depth").get_to(cell.depth);
  json.at("sequences").get_to(cell.n_sequences);
  cell.shares_depth = json.value("shared", false);
}

void to_json(json& json, const CellTask& task) {
  json = {{"cell", task.cell},
          {"model", task.model.string()},
          {"plugin", task.plugin.string()},
          {"key_profile", task.key_profile.string()},
          {"text", task.text.string()},
          {"states", task.states.string()},
          {"kv_memory", task.kv_memory},
          {"kv_memory_bytes", task.kv_memory_bytes},
          {"rope", rope_json(task.rope)},
          {"threads", task.n_threads},
          {"computed", task.n_computed_max},
          {"prompt", task.n_prompt},
          {"tokens", task.n_tokens}};
}

void from_json(const json& json, CellTask& task) {
  json.at("cell").get_to(task.cell);
  task.model = json.at("model").get<std::string>();
  task.plugin = json.at("plugin").get<std::string>();
  task.key_profile = json.at("key_profile").get<std::string>();
  task.text = json.at("text").get<std::string>();
  task.states = json.at("states").get<std::string>();
  json.at("kv_memory").get_to(task.kv_memory);
  json.at("kv_memory_bytes").get_to(task.kv_memory_bytes);
  task.rope = rope_of(json.at("rope"));
  json.at("threads").get_to(task.n_threads);
  json.at("computed").get_to(task.n_computed_max);
  json.at("prompt").get_to(task.n_prompt);
  json.at("tokens").get_to(task.n_tokens);
}

void to_json(json& json, const CellFigures& figures) {
  json = {{"prefill_tokens_per_s", figures.prefill_tokens_per_s},
          {"decode_tokens_per_s", figures.decode_tokens_per_s},
          {"step_ms", figures.step_ms},
          {"fill_seconds", figures.fill_seconds},
          {"cpu_share", figures.cpu_share},
          {"rss_bytes", figures.rss_bytes},
          {"kv_bytes", figures.kv_bytes}};
}

void from_json(const json& json, CellFigures& figures) {
  json.at("prefill_tokens_per_s").get_to(figures.prefill_tokens_per_s);
  json.at("decode_tokens_per_s").get_to(figures.decode_tokens_per_s);
  json.at("step_ms").get_to(figures.step_ms);
  json.at("fill_seconds").get_to(figures.fill_seconds);
  json.at("cpu_share").get_to(figures.cpu_share);
  json.at("rss_bytes").get_to(figures.rss_bytes);
  json.at("kv_bytes").get_to(figures.kv_bytes);
}

}  // namespace slipstream::bench
