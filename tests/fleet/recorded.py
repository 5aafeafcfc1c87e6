"""Recorded step times: what the simulation knows of a machine.

needle(): of the tests' model, from recorded/steps.json (replicas_load_test.py --steps).
qwen(): of the shape of Qwen3-0.6B with turbo4 on two cores with AMX, from docs/benchmarks.md.
"""

import dataclasses
import json
import pathlib

import conversations

FOLDER = pathlib.Path(__file__).resolve().parent / "recorded"
MEASURED = FOLDER / "measured.json"
STEPS = FOLDER / "steps.json"


@dataclasses.dataclass(frozen=True)
class Steps:
    """Seconds. A step costs step_s whatever is in it."""
    step_s: float
    answer_s: float          # for each answer in it
    answer_depth_s: float    # for each token that an answer has behind it
    prompt_s: float          # for each token of a prompt
    prompt_depth_s: float    # and for each token before it
    overhead_s: float        # of a request, outside the engine
    piece_max: int = 512

    def answers(self, n, depth):
        return self.step_s + n * self.answer_s + depth * self.answer_depth_s

    def prompt(self, n, depth):
        return n * (self.prompt_s + (depth + n / 2) * self.prompt_depth_s)

    def piece(self, answers_s, depth):
        """Tokens of prompts for a step: beside answers it takes about twice as long as without."""
        if answers_s <= self.step_s:
            return self.piece_max
        return max(16, min(self.piece_max, int(answers_s / self.prompt(1, depth))))


def line(points):
    """Least squares: (at nothing, for each)"""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    slope = (sum((x - mean_x) * (y - mean_y) for x, y in points)
             / sum((x - mean_x) ** 2 for x, _ in points))
    return mean_y - slope * mean_x, slope


def needle():
    found = json.loads(STEPS.read_text())
    step_s, answer_s = line(found["answers"])
    # Above what a prompt costs that is cached, by its length.
    cost = [(n, (first - found["cached_first_s"]) / n) for n, first in found["prompts"]]
    prompt_s, slope = line(cost)
    return Steps(step_s=max(step_s, 0.0), answer_s=answer_s, answer_depth_s=0.0, prompt_s=prompt_s,
                 prompt_depth_s=2 * max(slope, 0.0), overhead_s=found["cached_first_s"] - step_s - answer_s)


def qwen():
    """docs/benchmarks.md: a token 33.6 ms at depth 0 and 43.3 at 8K; eight together at 1K 70.9 (shared);
    a prompt 379 tokens/s at 0 and 190 at 8K."""
    prompt_s, slow_s = 1 / 379.0, 1 / 190.0
    depth_s = (1 / 23.07 - 1 / 29.73) / 8192
    answer_s = (8 / 112.92 - 8 * 1024 * depth_s - 1 / 29.73) / 7
    return Steps(step_s=1 / 29.73 - answer_s, answer_s=answer_s, answer_depth_s=depth_s, prompt_s=prompt_s,
                 prompt_depth_s=(slow_s - prompt_s) / 8192, overhead_s=0.005)


def real_shape():
    """The shape of the real run in tokens; what a word and a message cost was counted there."""
    real = conversations.Shape()
    return dataclasses.replace(real, system_size=round(real.system_size * TOKENS_A_WORD),
                               user_size=round(real.user_size * TOKENS_A_WORD) + TOKENS_A_TURN)


TOKENS_A_WORD = 1.77
TOKENS_A_TURN = 25
