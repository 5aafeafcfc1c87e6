"""Four replicas, 200 conversations of 8 turns with 20 shared system prompts: routing by prefix against round
robin and least connections; and one replica killed, one drained, while they talk. At night.

    replicas_load_test.py --measure OUT.json    the three policies, recorded for the simulation
    replicas_load_test.py --steps OUT.json      times of one replica's steps

Environment: SLIPSTREAM_BIN, the built program. Skipped without haproxy.
"""

import asyncio
import collections
import dataclasses
import json
import pathlib
import signal
import sys
import threading
import time
import unittest

import conversations
import fleet
import load
import replicas

N_REPLICAS = 4
SHAPE = conversations.Shape()
SERVER = ("--kv", "turbo4", "--ctx", "32768", "--parallel", "8")


@dataclasses.dataclass
class Summary:
    requests: int
    prompt_tokens: int
    cached_share: float
    first_p50_ms: float
    first_p99_ms: float
    seconds: float
    by_replica: dict
    problems: dict


def summary_of(results):
    good = [asked for asked in results if not asked.problem]
    firsts = [asked.first_s * 1e3 for asked in good if asked.is_stream]
    prompt_tokens = sum(asked.prompt_tokens for asked in good)
    return Summary(
        requests=len(results), prompt_tokens=prompt_tokens,
        cached_share=round(sum(asked.cached_tokens for asked in good) / prompt_tokens, 4),
        first_p50_ms=round(conversations.percentile(firsts, 0.5), 1),
        first_p99_ms=round(conversations.percentile(firsts, 0.99), 1),
        seconds=round(max(asked.sent_s + asked.total_s for asked in results), 1),
        by_replica=dict(sorted(collections.Counter(asked.replica for asked in good).items())),
        problems=dict(collections.Counter(asked.problem for asked in results if asked.problem)))


class Replicas:
    """Fresh servers and a balancer."""

    def __init__(self, policy, n_replicas=N_REPLICAS):
        self.servers, self.front = [], None
        try:
            for _ in range(n_replicas):
                self.servers.append(replicas.serve(*SERVER))
            self.front = replicas.Balancer([replicas.address_of(server) for server in self.servers], policy)
        except BaseException:
            self.stop()
            raise

    def run(self, shape=SHAPE, **how):
        return asyncio.run(load.run(self.front.port, conversations.trace(shape), shape, **how))

    def stop(self):
        if self.front:
            self.front.stop()
        for server in self.servers:
            replicas.end(server)


def measure(policy, shape=SHAPE):
    four = Replicas(policy)
    try:
        return summary_of(four.run(shape))
    finally:
        four.stop()


def report(policy, summary):
    print(f"{policy:11} cached {summary.cached_share:.1%} of {summary.prompt_tokens} prompt tokens, first token "
          f"p50 {summary.first_p50_ms:.0f} ms, p99 {summary.first_p99_ms:.0f} ms, {summary.seconds:.0f} s, "
          f"{summary.by_replica} {summary.problems}", flush=True)


class Load(unittest.TestCase):
    def test_prefixes_are_found_more_often_than_with_round_robin(self):
        prefix, turns = (measure(policy) for policy in ("prefix", "roundrobin"))
        report("prefix", prefix)
        report("roundrobin", turns)
        for summary in (prefix, turns):
            self.assertEqual((summary.problems, summary.requests), ({}, SHAPE.n_conversations * SHAPE.n_turns))
        self.assertGreater(prefix.cached_share, turns.cached_share + 0.1)
        self.assertLess(max(prefix.by_replica.values()), 0.5 * prefix.requests)

    def test_one_is_killed_and_one_drained(self):
        four = Replicas("prefix")
        self.addCleanup(four.stop)
        happened = {}  # what: (replica, when)

        def busiest():
            rows = four.front.statistics()
            left = [i for i in range(N_REPLICAS) if replicas.NAMES[i] not in {name for name, _ in happened.values()}]
            return max(left, key=lambda i: int(rows[i]["scur"]))

        def end_one(what, how):
            i = busiest()
            happened[what] = replicas.NAMES[i], time.monotonic()
            four.servers[i].process.send_signal(how)

        begun = time.monotonic()
        shape = dataclasses.replace(SHAPE, n_conversations=60, n_turns=6, window_s=30.0)
        results = four.run(shape, whole_every=3, events=[(8, lambda: end_one("killed", signal.SIGKILL)),
                                                         (20, lambda: end_one("drained", signal.SIGTERM))])
        summary = summary_of(results)
        report("two gone", summary)
        (killed, killed_at), (drained, drained_at) = happened["killed"], happened["drained"]
        self.assertEqual(four.servers[replicas.NAMES.index(drained)].process.wait(timeout=60), 0)
        lost = [asked for asked in results if asked.problem]
        print(f"{len(lost)} streams of the killed one were cut", flush=True)
        for asked in lost:  # what it was streaming, when it ended, and nothing else
            self.assertEqual((asked.problem, asked.is_stream, asked.replica), ("cut", True, killed), asked)
            self.assertAlmostEqual(begun + asked.sent_s + asked.total_s, killed_at, delta=2)
        self.assertEqual(len(results) - len(lost), shape.n_conversations * shape.n_turns)
        after = [asked.replica for asked in results if begun + asked.sent_s > drained_at + 3]
        self.assertGreater(len(after), 50)
        self.assertEqual(set(after) & {killed, drained}, set())


class Cable(unittest.TestCase):
    """A machine that is gone without closing its connections."""

    def test_what_it_had_not_answered_goes_to_another(self):
        if reason := fleet.why_not():
            self.skipTest(reason)
        hosts = self.enterContext(fleet.machines(2))
        addresses = []
        for host in hosts:
            with fleet.inside(host.machine):
                server = replicas.serve("--ctx", "32768", "--host", host.address)
            self.addCleanup(replicas.end, server)
            addresses.append(f"{host.address}:{server.port}")
        with fleet.inside(fleet.FRONT):
            front = replicas.Balancer(addresses)
            self.addCleanup(front.stop)
            body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
            _, first, _ = front.post("/v1/chat/completions", body)
            threading.Timer(0.5, hosts[replicas.NAMES.index(first)].unplug).start()
            started = time.monotonic()
            status, name, _ = front.post("/v1/chat/completions",
                                         {**body, "max_tokens": 3000, "ignore_eos": True})
            print(f"answered by another one {time.monotonic() - started:.1f} s after it was asked, of which its 3000 "
                  "tokens are a part", flush=True)
            self.assertEqual(status, 200)
            self.assertNotEqual(name, first)


async def stream_alone(port, n_words, n_tokens, *seed):
    """(first token's time, prompt tokens, time of a token, cached)"""
    asked = load.Asked(0, 0, is_stream=True, sent_s=0)
    await load.ask(port, [{"role": "user", "content": load.words(n_words, *seed)}], n_tokens, asked)
    assert not asked.problem, asked
    return asked.first_s, asked.prompt_tokens, (asked.total_s - asked.first_s) / (n_tokens - 1), asked.cached_tokens


def measure_steps():
    """Of one replica that nobody else asks: prompts by length, all cached, and answers together. Its cache is full,
    as in the run: what a step costs depends on how many cells are in use."""
    four = Replicas("prefix", n_replicas=1)
    port = four.front.port
    try:
        for i in range(32):
            asyncio.run(stream_alone(port, 600, 8, "others", i))
        prompts = [[n, first] for repeat in range(5) for words in (60, 150, 300, 600, 1200)
                   for first, n, _, _ in [asyncio.run(stream_alone(port, words, 2, words, repeat))]]
        cached = [asyncio.run(stream_alone(port, 600, 2, 600, 0))[0] for _ in range(20)]

        async def together(n):
            return await asyncio.gather(*(stream_alone(port, 800, 200, 800, 0) for _ in range(n)))

        answers = [[n, conversations.percentile([one[2] for one in asyncio.run(together(n))], 0.5)]
                   for n in (1, 2, 4, 8) for _ in range(3)]
        return {"prompts": prompts, "cached_first_s": conversations.percentile(cached, 0.5), "answers": answers}
    finally:
        four.stop()


def main():
    replicas.skip_without_haproxy()
    if len(sys.argv) == 3 and sys.argv[1] in ("--measure", "--steps"):
        if sys.argv[1] == "--steps":
            found = measure_steps()
        else:
            found = {}
            for policy in ("prefix", "roundrobin", "leastconn"):
                summary = measure(policy)
                report(policy, summary)
                found[policy] = dataclasses.asdict(summary)
        pathlib.Path(sys.argv[2]).write_text(json.dumps(found, indent=1) + "\n")
    else:
        unittest.main()


if __name__ == "__main__":
    main()
