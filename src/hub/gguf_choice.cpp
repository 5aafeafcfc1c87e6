#include "hub/gguf_choice.h"

#include <algorithm>
#include <map>
#include <regex>

#include "base/format.h"
#include "hub/model_name.h"

namespace slipstream::hub {
namespace {

constexpr std::string_view kExtension = ".gguf";

bool has_extension(std::string_view path) {
  return path.size() > kExtension.size() &&
         upper_case(path.substr(path.size() - kExtension.size())) == ".GGUF";
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

std::string_view without_extension(std::string_view path) {
  return has_extension(path) ? path.substr(0, path.size() - kExtension.size()) : path;
}

bool is_language_model(std::string_view path) {
  const std::string name = upper_case(file_name(path));
  return has_extension(path) && !name.contains("MMPROJ") && !name.contains("IMATRIX");
}

bool is_quant(const std::string& word) {
  static const std::regex kQuant(
      "I?Q[1-9](_[A-Z0-9]+)*|TQ[1-9]_[0-9]|B?F16|F32|F64|FP[0-9]+|"
      "(MX|NV)FP4(_[A-Z0-9]+)*");
  return std::regex_match(word, kQuant);
}

std::string join_names(std::span<const Variant> variants) {
  constexpr std::size_t kShown = 40;
  std::string names;
  for (const Variant& variant : variants.first(std::min(kShown, variants.size()))) {
    names += format_text("{}{}", names.empty() ? "" : ", ", variant.name());
  }
  if (variants.size() > kShown) names += format_text(" and {} more", variants.size() - kShown);
  return names;
}

// Prefers equal names, then Unsloth's "dynamic" quants under the plain name, then file names.
std::optional<std::size_t> find_asked(std::span<const Variant> variants, const std::string& asked) {
  const auto find = [&](auto&& matches) -> std::optional<std::size_t> {
    const auto found = std::ranges::find_if(variants, matches);
    if (found == variants.end()) return std::nullopt;
    return static_cast<std::size_t>(found - variants.begin());
  };
  if (const auto idx = find([&](const Variant& v) { return v.quant == asked; })) return idx;
  if (const auto idx = find([&](const Variant& v) { return v.quant == "UD-" + asked; })) return idx;
  return find([&](const Variant& v) { return upper_case(file_name(v.stem)) == asked; });
}

}  // namespace

std::string quant_of(std::string_view path) {
  const std::optional<SplitName> split = parse_split(path);
  const std::string stem = upper_case(file_name(split ? split->stem : without_extension(path)));
  std::vector<std::string> words(1);
  for (const char c : stem) {
    if (c == '-' || c == '.') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  for (std::size_t i = words.size(); i-- > 0;) {  // the last match counts
    if (!is_quant(words[i])) continue;
    return i > 0 && words[i - 1] == "UD" ? "UD-" + words[i] : words[i];
  }
  return "";
}

std::optional<SplitName> parse_split(std::string_view path) {
  static const std::regex kSplit("(.+)-([0-9]{5})-of-([0-9]{5})\\.gguf", std::regex::icase);
  std::match_results<std::string_view::const_iterator> match;
  if (!std::regex_match(path.begin(), path.end(), match, kSplit)) return std::nullopt;
  const int part = std::stoi(match[2].str());
  const int n_parts = std::stoi(match[3].str());
  if (part < 1 || part > n_parts) return std::nullopt;
  return SplitName{.stem = match[1].str(), .part = part, .n_parts = n_parts};
}

std::string_view Variant::name() const {
  return quant.empty() ? file_name(stem) : std::string_view(quant);
}

std::vector<Variant> find_variants(std::span<const std::string> paths) {
  struct Part {
    int number;
    std::size_t idx;
  };
  struct Group {
    Variant variant;
    std::vector<Part> parts;
  };
  std::map<std::pair<std::string, int>, Group> groups;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!is_language_model(paths[i])) continue;
    const std::optional<SplitName> split = parse_split(paths[i]);
    const std::string stem = split ? split->stem : std::string(without_extension(paths[i]));
    Group& group = groups[{stem, split ? split->n_parts : 0}];
    group.variant.quant = quant_of(paths[i]);
    group.variant.stem = stem;
    group.variant.n_parts = split ? split->n_parts : 1;
    group.parts.push_back({.number = split ? split->part : 1, .idx = i});
  }
  std::vector<Variant> variants;
  for (auto& [key, group] : groups) {
    std::ranges::sort(group.parts, {}, &Part::number);
    for (const Part& part : group.parts) group.variant.parts.push_back(part.idx);
    variants.push_back(std::move(group.variant));
  }
  return variants;
}

Result<VariantChoice> choose_variant(std::span<const Variant> variants, std::string_view asked,
                                     std::string_view repo_id) {
  if (variants.empty()) {
    return fail(
        Code::kNotFound,
        format_text("{} has no model in GGUF: look for one whose name ends with -GGUF", repo_id));
  }
  if (!asked.empty()) {
    const std::optional<std::size_t> found = find_asked(variants, upper_case(asked));
    if (!found) {
      return fail(Code::kNotFound,
                  format_text("{} has no {}; it has {}", repo_id, asked, join_names(variants)));
    }
    const std::string& quant = variants[*found].quant;
    const auto n_same = std::ranges::count(variants, quant, &Variant::quant);
    std::string remark;
    if (!quant.empty() && n_same > 1 && quant == upper_case(asked)) {
      remark = format_text("{} files have the quant {}; taking {}", n_same, quant,
                           file_name(variants[*found].stem));
    }
    return VariantChoice{.variant_idx = *found, .remark = std::move(remark)};
  }
  if (variants.size() == 1) return VariantChoice{.variant_idx = 0, .remark = {}};
  std::size_t chosen = 0;
  for (const char* preferred : {"Q8_0", "Q4_K_M"}) {  // the best comes last
    chosen = find_asked(variants, preferred).value_or(chosen);
  }
  return VariantChoice{.variant_idx = chosen,
                       .remark = format_text("no quant was named: taking {} of {}",
                                             variants[chosen].name(), join_names(variants))};
}

Result<void> check_complete(const Variant& variant) {
  if (variant.parts.size() == static_cast<std::size_t>(variant.n_parts)) return {};
  return fail(Code::kCorrupt,
              format_text("{} has {} of its {} parts: choose another quant",
                          file_name(variant.stem), variant.parts.size(), variant.n_parts));
}

}  // namespace slipstream::hub
