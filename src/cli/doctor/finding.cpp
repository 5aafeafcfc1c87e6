#include "cli/doctor/finding.h"

#include <algorithm>
#include <string_view>

#include "base/format.h"

namespace slipstream::doctor {
namespace {

std::string_view mark(Status status) {
  switch (status) {
    case Status::kGood: return "ok";
    case Status::kNote: return "note";
    case Status::kMissing: return "MISSING";
  }
  return "?";
}

std::string summary(std::span<const Finding> findings) {
  const auto n_with = [&](Status status) {
    return std::ranges::count(findings, status, &Finding::status);
  };
  if (const auto n_missing = n_with(Status::kMissing); n_missing > 0) {
    return format_text("Not ready: {} missing. Each has its remedy above.\n", n_missing);
  }
  if (const auto n_notes = n_with(Status::kNote); n_notes > 0) {
    return format_text("Ready. {} {} above would make it better.\n", n_notes,
                       n_notes == 1 ? "note" : "notes");
  }
  return "Ready.\n";
}

}  // namespace

std::string format_report(std::span<const Finding> findings) {
  std::string report;
  for (const Finding& finding : findings) {
    report += format_text("{:<8} {:<18} {}\n", mark(finding.status), finding.topic, finding.value);
    if (!finding.advice.empty()) report += format_text("{:<27} -> {}\n", "", finding.advice);
  }
  return report + "\n" + summary(findings);
}

}  // namespace slipstream::doctor
