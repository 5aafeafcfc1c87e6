"""Recorded step times: what the simulation knows of a machine.

needle(): of the tests' model, from recorded/steps.json (replicas_load_test.py --steps).
qwen(): of the shape of Qwen3-0.6B with turbo4 on two cores with AMX, from docs/benchmarks.md.
"""

import bisect
import dataclasses
import json
import pathlib
import statistics

import conversations

FOLDER = pathlib.Path(__file__).resolve().parent / "recorded"
MEASURED = FOLDER / "measured.json"
STEPS = FOLDER / "steps.json"


@dataclasses.dataclass(frozen=True)
class Steps:
    """Seconds of a core. A step costs step_s whatever is in it."""
    step_s: float
    answer_s: float          # for each answer in it
    answer_depth_s: float    # for each token that an answer has behind it
    pieces: tuple            # (tokens of prompts in it, seconds for them), ascending, from (0, 0)
    prompt_depth_s: float    # for each token of a prompt, and each before it
    # Outside of the engine, for a request: the server's other threads, HAProxy, the client.
    request_s: float
    piece_max: int = 512

    def piece(self, n):
        """Between two recorded sizes a straight line."""
        i = min(bisect.bisect_left(self.pieces, (n,)), len(self.pieces) - 1)
        (n0, s0), (n1, s1) = self.pieces[i - 1], self.pieces[i]
        return s0 + (n - n0) * (s1 - s0) / (n1 - n0)

    def step(self, depths, pieces):
        """With an answer at each of these depths, and pieces of prompts: (tokens, tokens before them)."""
        n_tokens = sum(n for n, _ in pieces)
        return (self.step_s + len(depths) * self.answer_s + sum(depths) * self.answer_depth_s
                + (self.piece(n_tokens) if n_tokens else 0.0)
                + self.prompt_depth_s * sum(n * (before + n / 2) for n, before in pieces))


def fit(rows):
    """Least squares: [(*factors, value)] -> a weight for each factor."""
    n = len(rows[0]) - 1
    matrix = [[sum(row[i] * row[j] for row in rows) for j in range(n + 1)] for i in range(n)]
    for i in range(n):
        for j in range(n):
            if j != i:
                factor = matrix[j][i] / matrix[i][i]
                matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i])]
    return [matrix[i][n] / matrix[i][i] for i in range(n)]


def needle():
    """What was recorded of a replica alone: prompts of five lengths, and answers together. Of a piece of one token
    is taken what an answer costs, and between there and the shortest prompt a straight line."""
    found = json.loads(STEPS.read_text())
    # By the relative error, so that short steps count as long ones do.
    step_s, answer_s = fit([(1 / s, n / s, 1.0) for n, s in found["answers"]])
    cost = [(n, first - found["cached_first_s"]) for n, first in found["prompts"]]
    by_length = zip(*[iter(sorted(cost))] * (len(cost) // N_LENGTHS))
    middle = [(statistics.mean(n for n, _ in many), statistics.median(s for _, s in many)) for many in by_length]
    # Longer ones are read in equal pieces: what they cost more is the depth.
    _, half_depth_s = fit([(n / s, n * n / s, 1.0) for n, s in middle if n > Steps.piece_max])
    pieces = [(n, s - half_depth_s * n * n) for n, s in middle if n < Steps.piece_max]
    return Steps(step_s=step_s, answer_s=answer_s, answer_depth_s=0.0, pieces=((0, 0.0), (1, answer_s), *pieces),
                 prompt_depth_s=2 * half_depth_s, request_s=found["cached_first_s"] - step_s - answer_s)


def qwen():
    """docs/benchmarks.md: a token 33.6 ms at depth 0 and 43.3 at 8K; eight together at 1K 70.9 (shared);
    a prompt 379 tokens/s at 0 and 190 at 8K."""
    depth_s = (1 / 23.07 - 1 / 29.73) / 8192
    answer_s = (8 / 112.92 - 8 * 1024 * depth_s - 1 / 29.73) / 7
    step_s = 1 / 29.73 - answer_s
    prompt_depth_s = (1 / 190 - 1 / 379) / 8192
    return Steps(step_s=step_s, answer_s=answer_s, answer_depth_s=depth_s,
                 pieces=((0, 0.0), (512, 512 / 379 - step_s - 512 * 256 * prompt_depth_s)),
                 prompt_depth_s=prompt_depth_s, request_s=0.005)


def real_shape():
    """The shape of the real run in tokens; what a word and a message cost was counted there."""
    real = conversations.Shape()
    return dataclasses.replace(real, system_size=round(real.system_size * TOKENS_A_WORD),
                               user_size=round(real.user_size * TOKENS_A_WORD) + TOKENS_A_TURN)


N_LENGTHS = 5  # of the recorded prompts
TOKENS_A_WORD = 1.77
TOKENS_A_TURN = 25
