#include "bench/quality/plain_text.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>

#include "base/format.h"

namespace slipstream::quality {
namespace {

using Words = std::array<std::string_view, 16>;

constexpr Words kPeople = {
    "the teacher",     "a young doctor",    "the old sailor", "our neighbour",
    "the night guard", "a travelling cook", "the librarian",  "her brother",
    "the mayor",       "a quiet student",   "the gardener",   "my aunt",
    "the postman",     "a retired judge",   "the clockmaker", "his daughter"};
constexpr Words kPlaces = {
    "the market",        "the upper village", "the station",     "a small museum",
    "the north gate",    "the hospital",      "the town hall",   "the empty theatre",
    "the workshop",      "a narrow street",   "the school",      "the reading room",
    "the ferry landing", "the old mill",      "the post office", "the printing house"};
constexpr Words kThings = {
    "a wooden box",   "the accounts",     "three letters",      "a broken clock",
    "the spare keys", "an unsigned note", "a map of the coast", "the evening paper",
    "two chairs",     "a heavy book",     "the rent",           "a pair of glasses",
    "the list",       "some warm soup",   "a photograph",       "the missing page"};
constexpr Words kTimes = {
    "in the morning",         "after the rain",         "before supper",
    "on the first of May",    "late in the evening",    "at half past nine",
    "every other week",       "during the long strike", "when the shops were shut",
    "a year later",           "shortly before noon",    "on a cold Thursday",
    "that same night",        "while it snowed",        "without any hurry",
    "as soon as it was light"};
constexpr Words kDeeds = {"carried",  "forgot",     "looked for", "counted",   "hid",   "sold",
                          "repaired", "brought",    "described",  "asked for", "found", "lost",
                          "paid for", "wrapped up", "copied",     "gave away"};
constexpr Words kReasons = {"nobody else had offered to",
                            "the answer could not wait any longer",
                            "it had been promised years before",
                            "the weather was about to turn",
                            "there was nothing left to lose",
                            "the numbers did not agree",
                            "somebody had to begin",
                            "the road would be closed on Friday",
                            "the first attempt had failed",
                            "it seemed the polite thing to do",
                            "a rule is a rule",
                            "the other way was twice as long",
                            "everyone was watching",
                            "it cost less than a cup of tea",
                            "the lamps had already gone out",
                            "an old habit is hard to break"};
constexpr Words kThoughts = {"A plan that needs good luck is not yet a plan",
                             "What is measured twice is seldom wrong",
                             "People remember the end of a story better than its middle",
                             "It is easier to ask a question than to ask the right one",
                             "Most mistakes are made in a hurry and found at leisure",
                             "A short answer may have taken a long time",
                             "The cheapest repair is the one that is done early",
                             "Nobody reads the instructions until something smokes",
                             "Two people who agree on everything need not talk",
                             "A list that is never shortened is no list but a wish",
                             "The second half of any work takes longer than the first",
                             "Good news travels on foot",
                             "Whoever keeps the keys also keeps the secrets",
                             "Silence can be an answer, but it is a poor record",
                             "An honest loss is worth more than a borrowed victory",
                             "What everybody knows is often what nobody has checked"};
constexpr std::array<std::string_view, 12> kForms = {
    "P D T W, because R.",
    "W P D T at L.",
    "At L P had already D T, but R.",
    "\"Who D T?\" asked P. \"It was P, W,\" somebody said.",
    "H.",
    "H, and so P went to L W.",
    "P and P met at L; one of them D T, the other D T.",
    "Since R, P stayed at L and D T.",
    "N people stood at L W, and P D T for each of them.",
    "It took P N days to come back from L, where R.",
    "If P had not D T W, P would have waited at L for N hours.",
    "P wrote down N reasons: the first was that R, the last that R."};

class Prose {
 public:
  std::string paragraph() {
    std::string text;
    const auto n_sentences = 3 + random_() % 5;
    for (std::size_t i = 0; i < n_sentences; ++i) text += (i == 0 ? "" : " ") + sentence();
    return text + "\n\n";
  }

 private:
  template <std::size_t n>
  std::string_view pick(const std::array<std::string_view, n>& words) {
    return words[random_() % n];  // not a distribution: those differ between libraries
  }

  // A single capital letter is replaced by a word from its list.
  std::string sentence() {
    const std::string_view form = pick(kForms);
    std::string text;
    for (std::size_t i = 0; i < form.size(); ++i) {
      const auto is_letter = [&](std::size_t at) {
        return at < form.size() &&
               ((form[at] >= 'a' && form[at] <= 'z') || (form[at] >= 'A' && form[at] <= 'Z'));
      };
      const bool alone = !is_letter(i + 1) && (i == 0 || !is_letter(i - 1));
      if (alone) {
        text += word_for(form[i]);
      } else {
        text += form[i];
      }
    }
    if (text.front() >= 'a' && text.front() <= 'z') text.front() -= 'a' - 'A';
    return text;
  }

  std::string word_for(char letter) {
    switch (letter) {
      case 'P': return std::string(pick(kPeople));
      case 'L': return std::string(pick(kPlaces));
      case 'T': return std::string(pick(kThings));
      case 'W': return std::string(pick(kTimes));
      case 'D': return std::string(pick(kDeeds));
      case 'R': return std::string(pick(kReasons));
      case 'H': return std::string(pick(kThoughts));
      case 'N': return std::to_string(2 + random_() % 60);
      default: return {letter};
    }
  }

  std::mt19937 random_{20261116};
};

}  // namespace

std::string plain_text(std::size_t n_bytes) {
  Prose prose;
  std::string text;
  while (text.size() < n_bytes) text += prose.paragraph();
  return text;
}

Result<std::string> text_or_ours(const std::string& path) {
  if (path.empty()) return plain_text(kPlainTextBytes);
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(errno, format_text("cannot open {}", path));
  return std::string(std::istreambuf_iterator(file), std::istreambuf_iterator<char>());
}

}  // namespace slipstream::quality
