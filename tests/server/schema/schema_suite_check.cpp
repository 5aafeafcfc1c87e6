// The JSON-Schema-Test-Suite against our grammars: schema_suite_check FOLDER [--narrower]
//
// Of every schema that we accept, each valid instance must match the grammar in some order of its
// keys, and no invalid one may in any. Formats leave out rare spellings (--narrower): there a valid
// instance that does not match is only counted. Prints a table and, last, how many schemas were
// accepted; fails if an instance is judged wrongly.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "server/schema/json_spellings.h"
#include "server/schema/schema_matcher.h"
#include "server/schema/schema_to_grammar.h"

namespace {

using Json = nlohmann::ordered_json;

struct Tally {
  int n_schemas = 0;
  int n_accepted = 0;
  int n_instances = 0;
  int n_narrower = 0;
  int n_wrong = 0;

  void operator+=(const Tally& other) {
    n_schemas += other.n_schemas;
    n_accepted += other.n_accepted;
    n_instances += other.n_instances;
    n_narrower += other.n_narrower;
    n_wrong += other.n_wrong;
  }
};

void print_row(const std::string& name, const Tally& tally) {
  std::printf("%-28s %8d %9d %8d %10d %9d %6d\n", name.c_str(), tally.n_schemas, tally.n_accepted,
              tally.n_schemas - tally.n_accepted, tally.n_instances, tally.n_narrower,
              tally.n_wrong);
}

bool matches(const std::string& grammar, const Json& value) {
  return std::ranges::any_of(slipstream::spellings_of(value), [&grammar](const std::string& text) {
    return slipstream::SchemaMatcher::matches(grammar, text);
  });
}

Tally check_schema(const Json& group, bool narrower) {
  Tally tally{.n_schemas = 1};
  const auto grammar = slipstream::grammar_of_schema(group.at("schema"));
  if (!grammar && !grammar.error().message.ends_with("no value meets it")) return tally;
  tally.n_accepted = 1;
  for (const Json& test : group.at("tests")) {
    const bool valid = test.at("valid");
    // Without a grammar there is no answer at all.
    const bool matched = grammar && matches(*grammar, test.at("data"));
    ++tally.n_instances;
    if (matched == valid) continue;
    if (valid && narrower) {
      ++tally.n_narrower;
      continue;
    }
    ++tally.n_wrong;
    std::printf("WRONG: %s: %s\n  schema   %s\n  instance %s is %s\n",
                group.at("description").dump().c_str(), test.at("description").dump().c_str(),
                group.at("schema").dump().c_str(), test.at("data").dump().c_str(),
                valid ? "valid and does not match" : "invalid and matches");
  }
  return tally;
}

Tally check_file(const std::filesystem::path& path, bool narrower) {
  Tally tally;
  std::ifstream file(path);
  for (const Json& group : Json::parse(file)) tally += check_schema(group, narrower);
  return tally;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const bool narrower = argc > 2 && std::string_view(argv[2]) == "--narrower";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    // format.json says that formats demand nothing; ours do.
    const std::string name = entry.path().filename();
    if (entry.path().extension() == ".json" && name != "format.json") files.push_back(entry);
  }
  std::ranges::sort(files);
  std::printf("%-28s %8s %9s %8s %10s %9s %6s\n", "", "schemas", "accepted", "refused", "instances",
              "narrower", "wrong");
  Tally all;
  for (const std::filesystem::path& file : files) {
    const Tally tally = check_file(file, narrower);
    print_row(file.stem(), tally);
    all += tally;
  }
  print_row("all", all);
  std::printf("accepted %d of %d\n", all.n_accepted, all.n_schemas);
  return all.n_wrong == 0 && all.n_instances > 0 ? 0 : 1;
}
