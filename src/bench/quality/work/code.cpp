#include "bench/quality/work/code.h"

#include <algorithm>
#include <ranges>

#include "base/format.h"

namespace slipstream::quality {
namespace {

constexpr int kFunctionTokensMax = 96;
constexpr std::string_view kFence = "```";

struct Function {
  std::string_view name;
  std::string_view beginning;
  std::string_view assertions;
};

constexpr std::array<Function, 12> kFunctions = {
    {{"add", "def add(a, b):\n    \"\"\"Return the sum of a and b.\"\"\"\n",
      "assert add(2, 3) == 5\nassert add(-1, 1) == 0"},
     {"is_even", "def is_even(n):\n    \"\"\"Return True if n is even, else False.\"\"\"\n",
      "assert is_even(4) is True\nassert is_even(7) is False\nassert is_even(0) is True"},
     {"reverse", "def reverse(text):\n    \"\"\"Return the text in reverse order.\"\"\"\n",
      "assert reverse('abc') == 'cba'\nassert reverse('') == ''"},
     {"factorial",
      "def factorial(n):\n    \"\"\"Return the factorial of n, a number from 0 on.\"\"\"\n",
      "assert factorial(0) == 1\nassert factorial(1) == 1\nassert factorial(5) == 120"},
     {"largest",
      "def largest(numbers):\n    \"\"\"Return the largest number of a list that is not "
      "empty.\"\"\"\n",
      "assert largest([3, 9, 2]) == 9\nassert largest([-5, -7]) == -5"},
     {"count_vowels",
      "def count_vowels(text):\n    \"\"\"Return how many of the letters a, e, i, o, u are in the "
      "text.\"\"\"\n",
      "assert count_vowels('hello') == 2\nassert count_vowels('xyz') == 0"},
     {"average",
      "def average(numbers):\n    \"\"\"Return the mean of a list of numbers, or 0 if it is "
      "empty.\"\"\"\n",
      "assert average([1, 2, 3]) == 2\nassert average([]) == 0"},
     {"is_palindrome",
      "def is_palindrome(text):\n    \"\"\"Return True if the text reads the same backwards, else "
      "False.\"\"\"\n",
      "assert is_palindrome('level') is True\nassert is_palindrome('ab') is False"},
     {"celsius",
      "def celsius(fahrenheit):\n    \"\"\"Convert a temperature from Fahrenheit to "
      "Celsius.\"\"\"\n",
      "assert abs(celsius(212) - 100) < 1e-6\nassert abs(celsius(32)) < 1e-6"},
     {"clamp",
      "def clamp(x, low, high):\n    \"\"\"Return x, or low if x is less, or high if x is "
      "more.\"\"\"\n",
      "assert clamp(5, 0, 3) == 3\nassert clamp(-1, 0, 3) == 0\nassert clamp(2, 0, 3) == 2"},
     {"without_duplicates",
      "def without_duplicates(items):\n    \"\"\"Return the items as a list without duplicates, in "
      "the same order.\"\"\"\n",
      "assert without_duplicates([3, 1, 3, 2, 1]) == [3, 1, 2]\nassert without_duplicates([]) == "
      "[]"},
     {"fibonacci",
      "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number. fibonacci(0) is 0, "
      "fibonacci(1) is 1.\"\"\"\n",
      "assert fibonacci(0) == 0\nassert fibonacci(1) == 1\nassert fibonacci(10) == 55"}}};

// What ends a continued function, as HumanEval has it.
std::vector<std::string> function_ends() {
  return {"\ndef ", "\nclass ", "\n#", "\nif ", "\nprint", "\n```"};
}

bool is_inside(std::string_view line) {
  return line.empty() || line.starts_with(' ') || line.starts_with('\t');
}

// What stands in the first block of Markdown; all of the text if there is none.
std::string_view without_fence(std::string_view text) {
  const std::size_t fence = text.find(kFence);
  if (fence == std::string_view::npos) return text;
  const std::size_t line = text.find('\n', fence);
  if (line == std::string_view::npos) return {};
  text.remove_prefix(line + 1);
  return text.substr(0, text.find(kFence));  // an answer that breaks off has no second one
}

WorkTask make_function(const Function& function, std::size_t idx, const Hay& hay,
                       const std::shared_ptr<const Sandbox>& sandbox) {
  const std::string stated = format_text(
      "Here is the beginning of a function in Python:\n```python\n{}```", function.beginning);
  return {.message = format_text("{}Write the whole function {} in Python. Answer with code only.",
                                 within_text(stated, idx, hay), function.name),
          // Nothing may stand between a function's lines: the text comes before it.
          .beginning = format_text("{}{}", within_text({}, idx, hay), function.beginning),
          .stops = function_ends(),
          .right = std::string(function.assertions),
          .n_tokens_max = kFunctionTokensMax,
          .judge = [&function, sandbox](const std::string& answer) {
            return judge_function(*sandbox, function_in(answer, function.name, function.beginning),
                                  function.assertions);
          }};
}

}  // namespace

std::vector<WorkTask> make_code(int n_tasks, const Hay& hay,
                                const std::shared_ptr<const Sandbox>& sandbox) {
  std::vector<WorkTask> tasks;
  const std::size_t n = std::min(static_cast<std::size_t>(n_tasks), 2 * kFunctions.size());
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t round = i / kFunctions.size();  // the second time it is the other way round
    tasks.push_back(make_function(kFunctions[i % kFunctions.size()], i + round, hay, sandbox));
  }
  return tasks;
}

std::string function_in(const std::string& answer, std::string_view name,
                        std::string_view beginning) {
  const std::string_view code = without_fence(answer);
  const std::string head = format_text("def {}(", name);
  const bool is_whole = code.contains(head);
  std::string function;
  bool has_begun = !is_whole;
  for (const auto part : std::views::split(code, '\n')) {
    const std::string_view line(part);
    if (!has_begun) {
      has_begun = line.starts_with(head);
    } else if (!is_inside(line) && (is_whole || !function.empty())) {
      break;  // after the function
    }
    if (has_begun) function += format_text("{}\n", line);
  }
  if (is_whole) return function;
  // A chat model may leave out the indentation.
  if (!is_inside(function.substr(0, 1))) {
    std::string indented;
    for (const auto part : std::views::split(code, '\n')) {
      indented += format_text("    {}\n", std::string_view(part));
    }
    function = std::move(indented);
  }
  return format_text("{}{}", beginning, function);
}

Mark judge_function(const Sandbox& sandbox, const std::string& function,
                    std::string_view assertions) {
  // Ending with status 0 is no proof: a function may end the program. These words come last.
  constexpr std::string_view kDefined = "the function is defined";
  constexpr std::string_view kHeld = "all assertions held";
  const auto run = sandbox.run(format_text("{}\nprint('{}', flush=True)\n{}\nprint('{}')\n",
                                           function, kDefined, assertions, kHeld));
  if (!run) return {};
  return {.valid = run->out.contains(kDefined),
          .right = run->ended && run->out.ends_with(format_text("{}\n", kHeld))};
}

}  // namespace slipstream::quality
