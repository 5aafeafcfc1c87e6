"""Replicas that share prefixes, simulated step by step from recorded step times.

    simulation.py                      the run of replicas_load_test.py, against what was measured
    simulation.py --curve OUT.svg      2 to 64 replicas of the shape of Qwen3-0.6B, and the picture of it

A replica is one engine: each step computes a token of every answer in progress and a piece of a prompt. Its
cache holds conversations, the least recently used leave. What a step takes is recorded (Steps).
"""

import collections
import dataclasses
import heapq
import itertools
import json
import pathlib
import sys

import balancing
import chart
import conversations
import recorded


@dataclasses.dataclass
class Request:
    conversation: object
    turn: int
    sent_s: float
    prompt: int
    answer: int
    depth: int = 0        # tokens that are computed
    cached: int = 0
    answered: int = 0
    first_s: float = 0.0


class Cache:
    """Tokens of conversations and of the system prompts they begin with."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.kept = collections.OrderedDict()  # conversation: (system, tokens behind its prompt)
        self.systems = collections.Counter()   # conversations of each
        self.n_tokens = 0

    def find(self, conversation, system_size):
        if conversation.number in self.kept:
            self.kept.move_to_end(conversation.number)
            return system_size + self.kept[conversation.number][1]
        return system_size if self.systems[conversation.system] else 0

    def keep(self, conversation, n_tokens, system_size):
        self.forget(conversation.number, system_size)
        self.kept[conversation.number] = (conversation.system, n_tokens - system_size)
        self.n_tokens += n_tokens - system_size + (0 if self.systems[conversation.system] else system_size)
        self.systems[conversation.system] += 1
        while self.n_tokens > self.capacity and len(self.kept) > 1:
            self.forget(next(iter(self.kept)), system_size)

    def forget(self, number, system_size):
        if number in self.kept:
            system, n_tokens = self.kept.pop(number)
            self.systems[system] -= 1
            self.n_tokens -= n_tokens + (0 if self.systems[system] else system_size)


class Replica:
    def __init__(self, steps, shape, capacity, parallel):
        self.steps, self.shape, self.parallel = steps, shape, parallel
        self.cache = Cache(capacity)
        self.waiting, self.reading, self.answering = collections.deque(), [], []
        self.is_busy = False

    def admit(self):
        while self.waiting and len(self.reading) + len(self.answering) < self.parallel:
            request = self.waiting.popleft()
            found = self.cache.find(request.conversation, self.shape.system_size)
            request.cached = request.depth = min(found, request.prompt - 1)
            self.reading.append(request)

    def plan(self):
        """The step's work in seconds, and the pieces of prompts in it."""
        answers = self.steps.answers(len(self.answering), sum(r.depth for r in self.answering))
        left = self.steps.piece(answers, self.reading[0].depth if self.reading else 0)
        pieces, work = [], answers
        for request in self.reading:
            n = min(left, request.prompt - request.depth)
            if n <= 0:
                break
            pieces.append((request, n))
            work += self.steps.prompt(n, request.depth)
            left -= n
        return work, pieces

    def commit(self, now, pieces):
        """What has ended with this step."""
        ended = []
        for request in self.answering:
            request.answered += 1
            request.depth += 1
        begun = []
        for request, n in pieces:
            request.depth += n
            if request.depth == request.prompt:
                self.reading.remove(request)
                request.first_s = now - request.sent_s + self.steps.overhead_s
                request.answered = 1
                begun.append(request)
                self.cache.keep(request.conversation, request.prompt, self.shape.system_size)
        self.answering += begun
        for request in [r for r in self.answering if r.answered >= r.answer]:
            self.answering.remove(request)
            self.cache.keep(request.conversation, request.depth, self.shape.system_size)
            ended.append(request)
        return ended


@dataclasses.dataclass
class Outcome:
    cached_share: float
    first_p50_ms: float
    first_p99_ms: float
    prompt_tokens: int
    busiest: float  # its share of the requests, times the number of replicas
    busy: float     # share of the time in which a replica computes, in the mean


class Simulation:
    """n_cores: the replicas share so many, each with one thread; None: each has a machine of its own."""

    def __init__(self, policy, n_replicas, steps, shape, capacity, parallel, n_cores=None, seed=1, factor=None):
        options = {} if factor is None else {"factor": factor}
        self.policy = balancing.POLICIES[policy](n_replicas, **options)
        self.replicas = [Replica(steps, shape, capacity, parallel) for _ in range(n_replicas)]
        self.steps, self.shape, self.n_cores = steps, shape, n_cores
        self.events, self.order = [], itertools.count()
        self.done, self.busy_s = [], 0.0
        self.counts = [0] * n_replicas
        for conversation in conversations.trace(shape, seed):
            self.at(conversation.start_s, self.ask, conversation, 0, shape.system_size)

    def at(self, time_s, what, *arguments):
        heapq.heappush(self.events, (time_s, next(self.order), what, arguments))

    def ask(self, now, conversation, turn, history):
        asked = conversation.turns[turn]
        request = Request(conversation, turn, now, history + asked.user_size, asked.answer_tokens)
        index = self.policy.choose(conversation.system, conversation.number, turn == 0)
        self.policy.served[index] += 1
        self.counts[index] += 1
        self.replicas[index].waiting.append(request)
        if not self.replicas[index].is_busy:
            self.step(now, index)

    def step(self, now, index):
        replica = self.replicas[index]
        replica.admit()
        replica.is_busy = bool(replica.reading or replica.answering)
        if replica.is_busy:
            work, pieces = replica.plan()
            if self.n_cores:
                work *= max(1.0, sum(r.is_busy for r in self.replicas) / self.n_cores)
            self.busy_s += work
            self.at(now + work, self.end_step, index, pieces)

    def end_step(self, now, index, pieces):
        for request in self.replicas[index].commit(now, pieces):
            self.policy.served[index] -= 1
            self.done.append(request)
            turn = request.turn + 1
            if turn < len(request.conversation.turns):
                self.at(now + request.conversation.turns[turn].think_s, self.ask, request.conversation, turn,
                        request.prompt + request.answer)
        self.step(now, index)

    def run(self):
        now = 0.0
        while self.events:
            now, _, what, arguments = heapq.heappop(self.events)
            what(now, *arguments)
        firsts = [request.first_s * 1e3 for request in self.done]
        prompt_tokens = sum(request.prompt for request in self.done)
        return Outcome(sum(request.cached for request in self.done) / prompt_tokens,
                       conversations.percentile(firsts, 0.5), conversations.percentile(firsts, 0.99),
                       prompt_tokens, max(self.counts) * len(self.counts) / len(self.done),
                       self.busy_s / now / len(self.replicas))


def real_run(policy, **how):
    """The run of replicas_load_test.py: sizes in tokens as they were there."""
    return Simulation(policy, 4, recorded.needle(), recorded.real_shape(), capacity=32768, parallel=8,
                      n_cores=2, **how).run()


# A company's chat or a small agent: 2,000 tokens in front, a question each half minute. Two system prompts and 24
# conversations in 15 minutes for each replica, which is then busy for half of the time.
CURVE = conversations.Shape(n_turns=8, system_size=2000, user_size=100, answer_tokens=100, think_s=30)


def curve_run(policy, n_replicas, each=24, **how):
    n = each * n_replicas
    shape = dataclasses.replace(CURVE, n_conversations=n, n_systems=2 * n_replicas, window_s=900.0)
    return Simulation(policy, n_replicas, recorded.qwen(), shape, capacity=40000, parallel=16, **how).run()


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def compare():
    measured = json.loads(recorded.MEASURED.read_text())
    row("policy", "cached: measured / simulated", "p50 ms", "p99 ms")
    for policy, found in measured.items():
        said = real_run(policy)
        row(policy, f"{found['cached_share']:.1%} / {said.cached_share:.1%}",
            f"{found['first_p50_ms']:.0f} / {said.first_p50_ms:.0f}",
            f"{found['first_p99_ms']:.0f} / {said.first_p99_ms:.0f}")


def draw(path):
    sizes = (2, 4, 8, 16, 32, 64)
    lines = {}
    row("replicas", "policy", "cached", "first token p50 s", "p99 s", "busy", "busiest, of its share")
    for policy in balancing.POLICIES:
        lines[policy] = []
        for n in sizes:
            said = curve_run(policy, n)
            lines[policy].append(said)
            row(n, policy, f"{said.cached_share:.1%}", f"{said.first_p50_ms / 1e3:.2f}", f"{said.first_p99_ms / 1e3:.1f}",
                f"{said.busy:.0%}", f"{said.busiest:.2f}x")
    pathlib.Path(path).write_text(chart.pair(
        sizes, {policy: [100 * said.cached_share for said in said_all] for policy, said_all in lines.items()},
        {policy: [said.first_p99_ms / 1e3 for said in said_all] for policy, said_all in lines.items()}))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--curve":
        draw(sys.argv[2])
    else:
        compare()
