"""Replicas that share prefixes, simulated step by step from recorded step times.

    simulation.py                      the run of replicas_load_test.py, against what was measured
    simulation.py --curve OUT.svg      2 to 64 replicas of the shape of Qwen3-0.6B, and the picture of it

A replica is one engine: each step computes a token of every answer in progress and a piece of a prompt. Its
cache holds conversations, the least recently used leave. What a step takes is recorded (Steps).
"""

import dataclasses
import json
import pathlib
import sys

import balancing
import chart
import conversations
import machine
import recorded
import replica


@dataclasses.dataclass
class Outcome:
    cached_share: float
    first_p50_ms: float
    first_p99_ms: float
    prompt_tokens: int
    busiest: float  # its share of the requests, times the number of replicas
    busy: float     # share of the time in which a core computes, in the mean
    seconds: float  # until the last answer


class Simulation:
    """n_cores: all replicas share a machine of so many, each computes with one thread, and so do HAProxy and the
    clients; None: each has a machine of its own. n_beside: programs of others that always compute there."""

    def __init__(self, policy, n_replicas, steps, shape, capacity, parallel, n_cores=None, seed=1, factor=None,
                 n_beside=0):
        options = {} if factor is None else {"factor": factor}
        self.clock = machine.Clock()
        self.policy = balancing.POLICIES[policy](n_replicas, **options)
        self.replicas = [replica.Replica(steps, shape.system_size, capacity, parallel) for _ in range(n_replicas)]
        if n_cores:
            self.machines = [machine.Machine(self.clock, n_cores, n_beside)] * n_replicas
        else:
            self.machines = [machine.Machine(self.clock, 1) for _ in range(n_replicas)]
        self.steps, self.shape = steps, shape
        self.done = []
        self.counts = [0] * n_replicas
        for conversation in conversations.trace(shape, seed):
            self.clock.at(conversation.start_s, self.ask, conversation, 0, shape.system_size)

    def ask(self, now, conversation, turn, history):
        """The client sends a turn. What it costs until the engine has it is computed beside the engines."""
        asked = conversation.turns[turn]
        request = replica.Request(conversation, turn, now, history + asked.user_size, asked.answer_tokens)
        index = self.policy.choose(conversation.system, conversation.number, turn == 0)
        self.policy.served[index] += 1
        self.counts[index] += 1
        self.machines[index].compute(now, self.steps.request_s, self.enqueue, index, request)

    def enqueue(self, now, index, request):
        self.replicas[index].waiting.append(request)
        if not self.replicas[index].is_busy:
            self.step(now, index)

    def step(self, now, index):
        here = self.replicas[index]
        seconds, answers, pieces = here.plan()
        here.is_busy = bool(here.running)
        if here.is_busy:
            self.machines[index].compute(now, seconds, self.end_step, index, answers, pieces, now)

    def end_step(self, now, index, answers, pieces, begun_s):
        begun, ended = self.replicas[index].commit(answers, pieces, now - begun_s)
        for request in begun:
            request.first_s = now - request.sent_s
        for request in ended:
            self.policy.served[index] -= 1
            self.done.append(request)
            turn = request.turn + 1
            if turn < len(request.conversation.turns):
                self.clock.at(now + request.conversation.turns[turn].think_s, self.ask, request.conversation, turn,
                              request.prompt + request.answer)
        self.step(now, index)

    def run(self):
        end_s = self.clock.run()
        firsts = [request.first_s * 1e3 for request in self.done]
        prompt_tokens = sum(request.prompt for request in self.done)
        machines = list(dict.fromkeys(self.machines))
        return Outcome(sum(request.cached for request in self.done) / prompt_tokens,
                       conversations.percentile(firsts, 0.5), conversations.percentile(firsts, 0.99),
                       prompt_tokens, max(self.counts) * len(self.counts) / len(self.done),
                       sum(m.busy_s for m in machines) / end_s / sum(m.n_cores for m in machines), end_s)


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
    row("policy", "programs beside", "cached: measured / simulated", "p50 ms", "p99 ms", "seconds")
    for policy, found in measured.items():
        for n_beside in (0, 1, 2, 3, 4, 5, 6):
            said = real_run(policy, n_beside=n_beside)
            row(policy, n_beside, f"{found['cached_share']:.1%} / {said.cached_share:.1%}",
                f"{found['first_p50_ms']:.0f} / {said.first_p50_ms:.0f}",
                f"{found['first_p99_ms']:.0f} / {said.first_p99_ms:.0f}", f"{found['seconds']:.0f} / {said.seconds:.0f}")


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
