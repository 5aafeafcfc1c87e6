#include "bench/quality/work/facts.h"

#include <algorithm>
#include <random>

#include "base/format.h"
#include "bench/quality/name_words.h"

namespace slipstream::quality {
namespace {

constexpr std::size_t kPlaces = 3;
// Tokens of text among the facts, by turns. The facts themselves take up to 200.
constexpr std::array<std::size_t, 2> kHayTokens = {256, 512};

// Where one key is.
struct Whereabouts {
  std::string key;
  std::string owner;
  std::string town;
  std::string land;
};

class FactMaker {
 public:
  explicit FactMaker(const Hay& hay) : hay_(hay) {}

  // `asks_for` is the member that is asked for: &Whereabouts::town or &Whereabouts::land.
  WorkTask make(std::size_t n_hay, std::string Whereabouts::* asks_for) {
    const std::vector<Whereabouts> all = draw_places();
    const bool asks_for_land = asks_for == &Whereabouts::land;
    const std::string text = planted(facts_of(all, asks_for_land), n_hay);
    const std::string question =
        format_text("In which {} is the {} key?", asks_for_land ? "land" : "town", all.front().key);
    std::vector<std::string> others;
    for (std::size_t i = 1; i < all.size(); ++i) others.push_back(all[i].*asks_for);
    const std::string right = all.front().*asks_for;
    return {.message = format_text("{}\n{} Answer with the name only.", text, question),
            .beginning = format_text("{}\nQuestion: {}\nAnswer:", text, question),
            .right = right,
            .judge = [right, others = std::move(others)](const std::string& answer) {
              return judge_name(answer, right, others);
            }};
  }

 private:
  // All words are different.
  std::vector<Whereabouts> draw_places() {
    std::vector<std::string_view> words(kNameWords.begin(), kNameWords.end());
    const auto draw = [&] {
      const auto at = words.begin() + static_cast<std::ptrdiff_t>(random_() % words.size());
      std::string word(*at);
      words.erase(at);
      return word;
    };
    std::vector<Whereabouts> all(kPlaces);
    for (Whereabouts& one : all) {
      for (const auto member :
           {&Whereabouts::key, &Whereabouts::owner, &Whereabouts::town, &Whereabouts::land}) {
        one.*member = draw();
      }
    }
    return all;
  }

  std::vector<std::string> facts_of(const std::vector<Whereabouts>& all, bool with_lands) {
    std::vector<std::string> facts;
    for (const Whereabouts& one : all) {
      facts.push_back(format_text("The {} key is in the house of {}.", one.key, one.owner));
      facts.push_back(format_text("The house of {} is in the town of {}.", one.owner, one.town));
      if (!with_lands) continue;
      facts.push_back(format_text("The town of {} is in the land of {}.", one.town, one.land));
    }
    // std::shuffle differs between libraries.
    for (std::size_t i = facts.size(); i > 1; --i) std::swap(facts[i - 1], facts[random_() % i]);
    return facts;
  }

  // The facts, evenly among n_hay tokens of text.
  std::string planted(const std::vector<std::string>& facts, std::size_t n_hay) {
    std::string text;
    for (const std::string& fact : facts) {
      text += format_text("{}\n{}\n", hay_(random_(), n_hay / facts.size()), fact);
    }
    return text;
  }

  const Hay& hay_;
  std::mt19937 random_{13};  // used without distributions, which differ between libraries
};

}  // namespace

std::vector<WorkTask> make_facts(int n_tasks, const Hay& hay) {
  FactMaker maker(hay);
  std::vector<WorkTask> tasks;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n_tasks); ++i) {
    tasks.push_back(
        maker.make(kHayTokens[i % 2], i / 2 % 2 == 0 ? &Whereabouts::town : &Whereabouts::land));
  }
  return tasks;
}

Mark judge_name(const std::string& answer, const std::string& right,
                const std::vector<std::string>& others) {
  const bool has_right = answers(answer, right);
  const bool has_other =
      std::ranges::any_of(others, [&](const std::string& other) { return answers(answer, other); });
  return {.valid = has_right || has_other, .right = has_right && !has_other};
}

}  // namespace slipstream::quality
