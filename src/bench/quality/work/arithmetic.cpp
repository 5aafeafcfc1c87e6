#include "bench/quality/work/arithmetic.h"

#include <algorithm>
#include <random>

#include "base/format.h"

namespace slipstream::quality {
namespace {

constexpr std::array<int, 4> kChainSteps = {2, 3, 4, 6};
constexpr int kValueMax = 99;

struct Chain {
  std::string text;
  char last = 'a';  // the name that is asked for
  int value = 0;    // its value
};

class ChainMaker {
 public:
  Chain make(int n_steps) {
    Chain chain{.text = {}, .value = draw(2, 20)};
    chain.text = format_text("a = {}.", chain.value);
    for (int i = 0; i < n_steps; ++i) add_step(chain);
    return chain;
  }

 private:
  int draw(int from, int to) {
    return from + static_cast<int>(random_() % static_cast<unsigned>(to - from + 1));
  }

  void add_step(Chain& chain) {
    char sign = "+-*"[draw(0, 2)];
    int operand = sign == '*' ? draw(2, 3) : draw(1, 9);
    if (sign == '*' && chain.value * operand > kValueMax) sign = '-';
    if (sign == '+' && chain.value + operand > kValueMax) sign = '-';
    if (sign == '-') operand = std::min(operand, chain.value);
    const char next = static_cast<char>(chain.last + 1);
    chain.text += format_text(" {} = {} {} {}.", next, chain.last, sign, operand);
    chain.value = sign == '+'   ? chain.value + operand
                  : sign == '-' ? chain.value - operand
                                : chain.value * operand;
    chain.last = next;
  }

  std::mt19937 random_{11};  // used without distributions, which differ between libraries
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::vector<WorkTask> make_arithmetic(int n_tasks, const Hay& hay) {
  ChainMaker chains;
  std::vector<WorkTask> tasks;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n_tasks); ++i) {
    const Chain chain = chains.make(kChainSteps[i / 2 % kChainSteps.size()]);
    const std::string stated = within_text(chain.text, i, hay);
    tasks.push_back(
        {.message = format_text("{}What is the value of {}? Answer with the number only.", stated,
                                chain.last),
         .beginning =
             format_text("{}Question: What is the value of {}?\nAnswer:", stated, chain.last),
         .right = format_text("{}", chain.value),
         .judge = [right = chain.value](const std::string& answer) {
           return judge_number(answer, right);
         }});
  }
  return tasks;
}

Mark judge_number(const std::string& answer, int right) {
  const auto last = std::ranges::find_if(answer.rbegin(), answer.rend(), is_digit);
  if (last == answer.rend()) return {};
  // "12.0" is 12, and "1.2" is not 2: a fraction belongs to its number.
  const auto is_of_number = [](char c) { return is_digit(c) || c == '.'; };
  const auto first = std::find_if_not(last, answer.rend(), is_of_number);
  std::string number(first.base(), last.base());
  number.erase(0, number.find_first_not_of('.'));
  if (const std::size_t point = number.find('.'); point != std::string::npos) {
    if (number.find_first_not_of(".0", point) != std::string::npos) return {.valid = true};
    number.resize(point);
  }
  const bool is_negative = first != answer.rend() && *first == '-';
  return {.valid = true, .right = !is_negative && number == format_text("{}", right)};
}

}  // namespace slipstream::quality
