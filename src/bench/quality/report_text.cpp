// Reports for people: tables, for a terminal and as Markdown, and one figure per line.
#include <algorithm>
#include <functional>
#include <vector>

#include "base/format.h"
#include "bench/quality/report.h"

namespace slipstream::quality {
namespace {

using Row = std::vector<std::string>;

struct Table {
  std::string title;
  std::vector<Row> rows;  // the first one is the heading
};

// The number of characters in UTF-8 text.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string aligned(const Table& table) {
  std::vector<std::size_t> widths;
  for (const Row& row : table.rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text = table.title + "\n";
  for (const Row& row : table.rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      line += i == 0 ? row[i] + padding : "  " + padding + row[i];  // figures are right-aligned
    }
    text += line + "\n";
  }
  return text;
}

std::string markdown(const Table& table) {
  std::string text = format_text("## {}\n\n", table.title);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    text += "|";
    for (const std::string& cell : table.rows[i]) text += format_text(" {} |", cell);
    text += "\n";
    if (i > 0) continue;
    text += "|";
    for (std::size_t k = 0; k < table.rows[i].size(); ++k) text += "---|";
    text += "\n";
  }
  return text;
}

std::string percent(const Json& share) {
  return format_text("{:.2f} %", 100 * share.get<double>());
}

std::string of(const Json& part, const char* key) {
  if (part.is_null()) return "-";
  return format_text("{}/{}", part[key].get<int>(), part["n"].get<int>());
}

Table divergence_table(const Json& report, int depth) {
  Table table{.title = format_text("Divergence from f16 at depth {}", depth),
              .rows = {{"KV", "bits", "perplexity", "mean KL", "median", "90 %", "95 %", "99 %",
                        "99.9 %", "max", "same top-1", "mean Δp", "RMS Δp"}}};
  for (const Json& scheme : report["schemes"]) {
    Row row = {scheme["kv"], format_text("{:.2f}", scheme["bits_per_value"].get<double>())};
    if (!scheme["error"].is_null()) row.emplace_back("failed");
    for (const Json& figures : scheme["divergence"]) {
      if (figures["depth"] != depth) continue;
      row.push_back(format_text("{:.4f}", figures["perplexity"].get<double>()));
      const Json& found = figures["divergence"];
      if (found.is_null()) continue;
      row.push_back(format_text("{:.6f} ± {:.6f}", found["kl_mean"].get<double>(),
                                found["kl_mean_error"].get<double>()));
      for (const char* key : {"kl_median", "kl_90", "kl_95", "kl_99", "kl_99_9", "kl_max"}) {
        row.push_back(format_text("{:.6f}", found[key].get<double>()));
      }
      row.push_back(format_text("{:.2f} ± {:.2f} %", 100 * found["same_top"].get<double>(),
                                100 * found["same_top_error"].get<double>()));
      row.push_back(percent(found["delta_p_mean"]));
      row.push_back(percent(found["delta_p_rms"]));
    }
    row.resize(table.rows.front().size(), "-");
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Older reports have no decoded tokens.
bool has_decoded(const Json& figures) {
  return figures.contains("decoded") && !figures["decoded"].is_null();
}

// A line for each scheme, with a mean and a share for each depth; no rows but the heading if no
// tokens were read one at a time.
Table decoded_table(const Json& report) {
  Table table{
      .title = "Divergence from f16, of tokens read one at a time as an answer's are, by depth",
      .rows = {{"KV"}}};
  for (const Json& depth : report["options"]["depths"]) {
    table.rows.front().push_back(format_text("mean KL at {}", depth.get<int>()));
    table.rows.front().emplace_back("same top-1");
  }
  for (const Json& scheme : report["schemes"]) {
    Row row = {scheme["kv"]};
    for (const Json& figures : scheme["divergence"]) {
      if (!has_decoded(figures)) continue;
      const Json& found = figures["decoded"];
      row.push_back(format_text("{:.6f} ± {:.6f}", found["kl_mean"].get<double>(),
                                found["kl_mean_error"].get<double>()));
      row.push_back(format_text("{:.2f} ± {:.2f} %", 100 * found["same_top"].get<double>(),
                                100 * found["same_top_error"].get<double>()));
    }
    if (row.size() > 1) table.rows.push_back(std::move(row));
  }
  return table;
}

// Right / as f16 / asked, of those cells of the scheme's grid together.
std::string needle_count(const Json& scheme, const std::function<bool(const Json&)>& counts) {
  int n = 0;
  int n_right = 0;
  int n_same = 0;
  for (const Json& cell : scheme["needles"]["grid"]) {
    if (!counts(cell)) continue;
    n += cell["n"].get<int>();
    n_right += cell["n_right"].get<int>();
    n_same += cell["n_same"].get<int>();
  }
  return format_text("{}/{}/{}", n_right, n_same, n);
}

// A line for each scheme, with what all cells of the grid that have the same `key` add up to.
Table needle_overview(const Json& report, const char* key) {
  Table table{.title = format_text("Needles: right / as f16 / asked, by {}", key),
              .rows = {{"KV"}}};
  std::vector<Json> columns;
  for (const Json& cell : report["schemes"][0]["needles"]["grid"]) {
    if (std::ranges::contains(columns, cell[key])) continue;
    columns.push_back(cell[key]);
    table.rows.front().push_back(cell[key].is_string() ? cell[key].get<std::string>()
                                                       : cell[key].dump());
  }
  for (const Json& scheme : report["schemes"]) {
    if (scheme["needles"].is_null()) continue;
    Row row = {scheme["kv"]};
    for (const Json& column : columns) {
      row.push_back(needle_count(scheme, [&](const Json& cell) { return cell[key] == column; }));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Right answers and answers equal to f16's, for all kinds together.
Table needle_table(const Json& scheme) {
  Table table{.title = format_text("Needles with {}: right / as f16 / asked, by depth and position",
                                   scheme["kv"].get<std::string>()),
              .rows = {{"depth", "0 %", "25 %", "50 %", "75 %", "100 %"}}};
  std::vector<int> depths;
  for (const Json& cell : scheme["needles"]["grid"]) {
    if (!std::ranges::contains(depths, cell["depth"].get<int>())) depths.push_back(cell["depth"]);
  }
  for (const int depth : depths) {
    Row row = {std::to_string(depth)};
    for (const double position : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      row.push_back(needle_count(scheme, [&](const Json& cell) {
        return cell["depth"] == depth && cell["position"] == position;
      }));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Older reports have no work.
const Json& work_in(const Json& scheme, std::string_view kind) {
  static const Json kNone;
  return scheme.contains("work") && scheme["work"].contains(kind) ? scheme["work"][kind] : kNone;
}

// What f16 gets right is said first: where that is little, only agreement with it tells anything.
Table work_table(const Json& report, std::string_view kind) {
  Table table{.title = format_text("Work, {}: f16 answers {} right", kind,
                                   of(work_in(report["schemes"][0], kind), "n_right")),
              .rows = {{"KV", "right where f16 is", "as f16", "right", "valid"}}};
  for (const Json& scheme : report["schemes"]) {
    const Json& work = work_in(scheme, kind);
    const std::string kept = work.is_null() ? "-"
                                            : format_text("{}/{}", work["n_kept"].get<int>(),
                                                          work["n_base_right"].get<int>());
    table.rows.push_back(
        {scheme["kv"], kept, of(work, "n_same"), of(work, "n_right"), of(work, "n_valid")});
  }
  return table;
}

Table summary_table(const Json& report) {
  Table table{.title = "Summary",
              .rows = {{"KV", "needles right", "as f16", "calls valid", "as asked", "as f16",
                        "JSON valid", "drift median", "verdict"}}};
  for (const Json& scheme : report["schemes"]) {
    const Json& drift = scheme["drift"];
    const bool is_base = scheme["kv"] == "f16";
    table.rows.push_back(
        {scheme["kv"], of(scheme["needles"], "n_right"), of(scheme["needles"], "n_same"),
         of(scheme["tool_calls"], "n_valid"), of(scheme["tool_calls"], "n_as_expected"),
         of(scheme["tool_calls"], "n_same"), of(scheme["schemas"], "n_valid"),
         drift.is_null() || is_base ? "-"
                                    : format_text("{:.0f} of {}", drift["median"].get<double>(),
                                                  drift["n_tokens"].get<int>()),
         !scheme["error"].is_null()    ? "failed"
         : scheme["verdict"].is_null() ? "-"
                                       : scheme["verdict"].get<std::string>()});
  }
  return table;
}

std::vector<Table> tables(const Json& report) {
  std::vector<Table> all;
  if (!report["schemes"][0]["divergence"].is_null()) {
    for (const Json& depth : report["options"]["depths"]) {
      all.push_back(divergence_table(report, depth));
    }
    Table decoded = decoded_table(report);
    if (decoded.rows.size() > 1) all.push_back(std::move(decoded));
  }
  if (!report["schemes"][0]["needles"].is_null()) {
    for (const char* key : {"depth", "kind"}) all.push_back(needle_overview(report, key));
  }
  for (const Json& scheme : report["schemes"]) {
    if (!scheme["needles"].is_null()) all.push_back(needle_table(scheme));
  }
  for (const std::string_view kind : kWorkKinds) {
    if (work_in(report["schemes"][0], kind).is_null()) continue;
    all.push_back(work_table(report, kind));
  }
  all.push_back(summary_table(report));
  return all;
}

// Reasons, errors and notes, one per line.
std::vector<std::string> remarks(const Json& report) {
  std::vector<std::string> lines;
  const auto add = [&](const Json& scheme, const Json& text) {
    if (text.is_null()) return;
    lines.push_back(
        format_text("{}: {}", scheme["kv"].get<std::string>(), text.get<std::string>()));
  };
  for (const Json& scheme : report["schemes"]) {
    add(scheme, scheme["error"]);
    if (scheme["verdict"] != "fine") add(scheme, scheme["reason"]);
    if (scheme["kv"] != "f16") continue;  // the others leave out the same
    for (const Json& note : scheme["notes"]) add(scheme, note);
    for (const std::string_view kind : kWorkKinds) {
      const Json& work = work_in(scheme, kind);
      if (work.is_null() || work["n_right"] != 0) continue;
      add(scheme,
          format_text("it gets nothing right in {}, so there only agreement with it counts", kind));
    }
  }
  return lines;
}

std::string heading(const Json& report) {
  return format_text(
      "{}, {} bytes, text: {}, keys: {}, {} chunks at each depth at most; slipstream {}, "
      "llama.cpp {}, ggml {}; {}, {} CPUs; {}",
      report["model"]["file"].get<std::string>(), report["model"]["bytes"].get<std::uint64_t>(),
      report["options"]["text"].get<std::string>(),
      report["options"].value("keys", "rotated"),  // older reports have no fitted keys
      report["options"]["n_chunks"].get<int>(), report["slipstream"].get<std::string>(),
      report["llama_cpp"].get<std::string>(), report["ggml"].get<std::string>(),
      report["cpu"].get<std::string>(), report["n_cpus"].get<int>(),
      report["created"].get<std::string>());
}

// Quotes as RFC 4180 requires.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

class Csv {
 public:
  void add(const Json& scheme, std::string_view measure, const std::string& kind,
           const std::string& depth, const std::string& position, const Json& value,
           const Json& error = {}) {
    text += format_text("{},{},{},{},{},{},{}\n", quoted(scheme["kv"].get<std::string>()), measure,
                        kind, depth, position,
                        value.is_string() ? quoted(value.get<std::string>()) : value.dump(),
                        error.is_null() ? "" : error.dump());
  }
  std::string text = "kv,measure,kind,depth,position,value,error\n";
};

void add_divergence(Csv& csv, const Json& scheme) {
  for (const Json& figures : scheme["divergence"]) {
    const std::string depth = figures["depth"].dump();
    csv.add(scheme, "perplexity", "", depth, "", figures["perplexity"]);
    const Json& found = figures["divergence"];
    if (found.is_null()) continue;
    for (const auto& [key, value] : found.items()) {
      if (key.ends_with("_error") || key == "perplexity") continue;
      csv.add(scheme, key, "", depth, "", value,
              found.contains(key + "_error") ? found[key + "_error"] : Json());
    }
    if (!has_decoded(figures)) continue;
    const Json& decoded = figures["decoded"];
    for (const char* key : {"kl_mean", "same_top"}) {
      csv.add(scheme, format_text("decoded_{}", key), "", depth, "", decoded[key],
              decoded[format_text("{}_error", key)]);
    }
  }
}

}  // namespace

std::string report_for_terminal(const Json& report) {
  std::string text = heading(report) + "\n\n";
  for (const Table& table : tables(report)) text += aligned(table) + "\n";
  for (const std::string& remark : remarks(report)) text += remark + "\n";
  return text;
}

std::string report_as_markdown(const Json& report) {
  std::string text = format_text("# Quality\n\n{}\n\n", heading(report));
  for (const bench::Picture& picture : report_pictures(report)) {
    text += format_text("![{}]({})\n", picture.title, picture.file);
  }
  text += "\n";
  for (const Table& table : tables(report)) text += markdown(table) + "\n";
  for (const std::string& remark : remarks(report)) text += format_text("- {}\n", remark);
  return text;
}

std::string report_as_csv(const Json& report) {
  Csv csv;
  for (const Json& scheme : report["schemes"]) {
    if (!scheme["error"].is_null()) csv.add(scheme, "error", "", "", "", scheme["error"]);
    if (!scheme["verdict"].is_null()) csv.add(scheme, "verdict", "", "", "", scheme["verdict"]);
    add_divergence(csv, scheme);
    if (!scheme["needles"].is_null()) {
      for (const Json& cell : scheme["needles"]["grid"]) {
        for (const char* key : {"n", "n_right", "n_same"}) {
          csv.add(scheme, format_text("needles_{}", key), cell["kind"], cell["depth"].dump(),
                  cell["position"].dump(), cell[key]);
        }
      }
    }
    for (const char* part : {"tool_calls", "schemas"}) {
      if (scheme[part].is_null()) continue;
      for (const auto& [key, value] : scheme[part].items()) {
        if (value.is_number()) csv.add(scheme, format_text("{}_{}", part, key), "", "", "", value);
      }
    }
    for (const auto& [kind, work] : scheme["work"].items()) {
      for (const auto& [key, value] : work.items()) {
        if (value.is_number()) csv.add(scheme, format_text("work_{}", key), kind, "", "", value);
      }
    }
    if (!scheme["drift"].is_null()) {
      csv.add(scheme, "drift_median", "", "", "", scheme["drift"]["median"]);
    }
  }
  return csv.text;
}

}  // namespace slipstream::quality
