#include "bench/quality/work/work_report.h"

#include <algorithm>

namespace slipstream::quality {
namespace {

Json json_of_answer(const WorkAnswer& answer) {
  return {{"expected", answer.expected},
          {"answer", answer.answer},
          {"valid", answer.valid},
          {"right", answer.right}};
}

}  // namespace

Json work_of(const std::vector<WorkAnswer>& answers, const std::vector<WorkAnswer>& base) {
  Json all;
  for (const std::string_view kind : kWorkKinds) {
    int n = 0;
    int n_valid = 0;
    int n_right = 0;
    int n_same = 0;
    int n_base_right = 0;
    int n_kept = 0;
    Json list = Json::array();
    for (std::size_t i = 0; i < std::min(answers.size(), base.size()); ++i) {
      const WorkAnswer& answer = answers[i];
      if (answer.kind != kind) continue;
      ++n;
      n_valid += answer.valid ? 1 : 0;
      n_right += answer.right ? 1 : 0;
      n_same += answer.answer == base[i].answer ? 1 : 0;
      n_base_right += base[i].right ? 1 : 0;
      n_kept += base[i].right && answer.right ? 1 : 0;
      list.push_back(json_of_answer(answer));
    }
    if (n == 0) continue;
    all[std::string(kind)] = {{"n", n},
                              {"n_valid", n_valid},
                              {"n_right", n_right},
                              {"n_same", n_same},
                              {"n_base_right", n_base_right},
                              {"n_kept", n_kept},
                              {"answers", std::move(list)}};
  }
  return all;
}

}  // namespace slipstream::quality
