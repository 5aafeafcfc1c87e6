#include "bench/speed/cell_json.h"

namespace slipstream::bench {

using nlohmann::json;

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
