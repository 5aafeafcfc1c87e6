"""A trace of conversations, from a seed: who asks when, behind which system prompt, and how much.

The real run (replicas_load_test.py) makes texts of it, the simulation (simulation.py) only counts.
"""

import bisect
import dataclasses
import itertools
import random


@dataclasses.dataclass(frozen=True)
class Shape:
    """What is asked: sizes are words of a text, or tokens where there is no text."""
    n_conversations: int = 200
    n_turns: int = 8
    n_systems: int = 20
    system_size: int = 600
    user_size: int = 40
    answer_tokens: int = 24
    window_s: float = 120.0  # in which conversations begin
    think_s: float = 2.0     # between an answer and the next question, in the mean


@dataclasses.dataclass(frozen=True)
class Turn:
    user_size: int
    answer_tokens: int
    think_s: float  # before it


@dataclasses.dataclass(frozen=True)
class Conversation:
    number: int
    system: int
    start_s: float
    turns: tuple


def trace(shape, seed=1):
    """Conversations in the order of their starts. System prompts are as popular as words of a language:
    the second half as often as the first, the third a third as often."""
    rng = random.Random(seed)
    popular = list(itertools.accumulate(1 / rank for rank in range(1, shape.n_systems + 1)))
    made = []
    for start in sorted(rng.uniform(0, shape.window_s) for _ in range(shape.n_conversations)):
        system = bisect.bisect(popular, rng.uniform(0, popular[-1] * (1 - 1e-9)))
        turns = tuple(Turn(user_size=rng.randint(shape.user_size // 2, shape.user_size * 3 // 2),
                           answer_tokens=rng.randint(shape.answer_tokens // 2, shape.answer_tokens * 3 // 2),
                           think_s=rng.expovariate(1 / shape.think_s) if turn else 0.0)
                      for turn in range(shape.n_turns))
        made.append(Conversation(len(made), system, start, turns))
    return made


def percentile(values, share):
    """The smallest value that at least this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]
