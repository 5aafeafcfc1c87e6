#include "bench/speed/journal.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "base/format.h"
#include "bench/speed/cell_json.h"

namespace slipstream::bench {
namespace {

using nlohmann::json;

struct Existing {
  std::optional<RunHeader> header;
  std::vector<TurnRecord> records;
  bool ends_torn = false;  // its last line is incomplete
};

TurnRecord read_record(const json& line) {
  TurnRecord record{
      .turn = {.cell = line.at("cell").get<Cell>(), .repeat = line.at("repeat").get<int>()},
      .figures = {},
      .error = line.value("error", ""),
      .seconds = line.value("seconds", 0.0)};
  if (line.contains("figures")) record.figures = line.at("figures").get<CellFigures>();
  return record;
}

void add_last(std::vector<TurnRecord>& records, TurnRecord record) {
  std::erase_if(records, [&](const TurnRecord& other) { return other.turn == record.turn; });
  records.push_back(std::move(record));
}

// An incomplete last line was being written when the machine went down. It counts as not measured.
Result<Existing> read(const std::filesystem::path& path) {
  Existing existing;
  std::ifstream file(path);
  std::string text;
  while (std::getline(file, text)) {
    existing.ends_torn = file.eof();
    const json line = json::parse(text, nullptr, false);
    if (line.is_discarded()) continue;
    try {
      if (line.contains("work")) {
        existing.header = RunHeader{.work = line.at("work"), .machine = line.at("machine")};
      } else {
        add_last(existing.records, read_record(line));
      }
    } catch (const json::exception& error) {
      return fail(Code::kCorrupt, format_text("{} is not a journal of a benchmark: {}",
                                              path.string(), error.what()));
    }
  }
  return existing;
}

double load_average() {
  std::array<double, 1> average = {};
  return getloadavg(average.data(), 1) == 1 ? average[0] : -1;
}

// What a child said when it failed may not be UTF-8; such bytes are replaced.
std::string line_of(const json& record) {
  return record.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<Journal> Journal::open(const std::filesystem::path& path, const RunHeader& header) {
  Result<Existing> existing = read(path);
  if (!existing) return std::unexpected(existing.error());
  if (existing->header && existing->header->work != header.work) {
    return fail(Code::kInvalidArgument,
                format_text("{} holds another benchmark: name another directory with --out, or "
                            "remove it\n  there: {}\n  now:   {}",
                            path.string(), existing->header->work.dump(), header.work.dump()));
  }
  std::ofstream file(path, std::ios::app);
  if (!file) return fail_errno(errno, format_text("cannot write {}", path.string()));
  if (existing->ends_torn) file << "\n";
  if (!existing->header) {
    file << line_of({{"work", header.work}, {"machine", header.machine}}) << std::flush;
  }
  return Journal(existing->header.value_or(header), std::move(existing->records), std::move(file));
}

std::set<Turn> Journal::done() const {
  std::set<Turn> turns;
  for (const TurnRecord& record : records_) {
    if (record.figures && !was_starved(*record.figures)) turns.insert(record.turn);
  }
  return turns;
}

Result<void> Journal::add(TurnRecord record) {
  json line = {{"cell", record.turn.cell},
               {"repeat", record.turn.repeat},
               {"ended", format_text("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(
                                                      std::chrono::system_clock::now()))},
               {"seconds", record.seconds},
               {"load_average", load_average()}};
  if (record.figures) {
    line["figures"] = *record.figures;
  } else {
    line["error"] = record.error;
  }
  file_ << line_of(line) << std::flush;  // every turn is saved as soon as it has ended
  if (!file_) return fail(Code::kIo, "cannot write the journal: is the disk full?");
  add_last(records_, std::move(record));
  return {};
}

}  // namespace slipstream::bench
