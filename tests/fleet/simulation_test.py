"""The simulation of replicas: its parts against what they promise, and its small case against the real run."""

import dataclasses
import json
import unittest

import balancing
import conversations
import recorded
import simulation

SHAPE = dataclasses.replace(conversations.Shape(), n_conversations=60, n_turns=4, window_s=20.0)
STEPS = recorded.Steps(step_s=0.01, answer_s=0.002, answer_depth_s=1e-6, prompt_s=0.001, prompt_depth_s=1e-7,
                       overhead_s=0.003)


def simulated(policy, n_replicas=4, shape=SHAPE, capacity=10**6, **how):
    return simulation.Simulation(policy, n_replicas, STEPS, shape, capacity, parallel=8, **how)


class Balancing(unittest.TestCase):
    def test_shares_add_up_to_the_bound(self):
        for n in (2, 3, 4, 7, 64):
            ring = balancing.Ring(n, factor=150)
            for i in range(n):
                ring.served[i] = 5
            self.assertEqual(sum(ring.slots(i) for i in range(n)), (150 * (5 * n + 1) + 99) // 100)

    def test_a_popular_key_fills_nobody_beyond_its_share(self):
        ring = balancing.Ring(4, factor=150)
        used = set()
        for i in range(400):
            server = ring.choose("popular", i, True)
            self.assertLess(ring.served[server], ring.slots(server))
            ring.served[server] += 1
            used.add(server)
        self.assertLessEqual(max(ring.served), 151)
        self.assertEqual(len(used), 3)  # two full shares of a half more, and the rest

    def test_an_idle_ring_sends_a_key_to_one_server_and_keys_to_all(self):
        ring = balancing.Ring(8)
        places = {key: ring.place(key) for key in range(400)}
        self.assertEqual(places, {key: ring.place(key) for key in places})
        self.assertEqual(set(places.values()), set(range(8)))

    def test_one_server_more_takes_keys_and_moves_no_others(self):
        before, after = balancing.Ring(8), balancing.Ring(9)
        moved = [key for key in range(2000) if before.place(key) != after.place(key)]
        self.assertTrue(moved)
        self.assertEqual({after.place(key) for key in moved}, {8})
        self.assertLess(len(moved), 2000 * 2 / 9)

    def test_later_turns_follow_the_first(self):
        policy = balancing.ByPrefix(4)
        first = policy.choose("key", "conversation", True)
        policy.served[first] = 1000
        self.assertEqual(policy.choose("key", "conversation", False), first)
        self.assertNotEqual(policy.choose("key", "another", True), first)

    def test_the_fewest_connections_in_turns(self):
        policy = balancing.LeastConnections(3)
        self.assertEqual([policy.choose("", "", True) for _ in range(4)], [0, 1, 2, 0])
        policy.served[:] = [2, 1, 2]
        self.assertEqual(policy.choose("", "", True), 1)


class Caching(unittest.TestCase):
    def test_a_system_prompt_counts_once_and_the_oldest_leave(self):
        cache = simulation.Cache(capacity=1000)
        some = [conversations.Conversation(i, i % 2, 0.0, ()) for i in range(6)]
        for conversation in some:
            cache.keep(conversation, 300, system_size=100)
            self.assertLessEqual(cache.n_tokens, 1000)
            kept = cache.kept.values()
            self.assertEqual(cache.n_tokens, sum(n for _, n in kept) + 100 * len({system for system, _ in kept}))
        self.assertEqual(cache.find(some[5], 100), 300)
        self.assertEqual(cache.find(some[0], 100), 100)  # its own have left, its system prompt is there


class Runs(unittest.TestCase):
    def test_one_request_takes_what_its_steps_take(self):
        shape = dataclasses.replace(SHAPE, n_conversations=1, n_turns=1)
        one = simulated("roundrobin", 1, shape)
        one.run()
        request, = one.done
        pieces = STEPS.step_s, STEPS.prompt(512, 0), STEPS.step_s, STEPS.prompt(request.prompt - 512, 512)
        self.assertAlmostEqual(request.first_s, sum(pieces) + STEPS.overhead_s, places=9)
        self.assertEqual((request.cached, request.answered), (0, request.answer))

    def test_a_seed_is_a_run(self):
        self.assertEqual(simulated("prefix").run(), simulated("prefix").run())
        self.assertNotEqual(simulated("prefix").run(), simulated("prefix", seed=2).run())

    def test_everybody_is_answered_whatever_the_policy(self):
        for policy in balancing.POLICIES:
            run = simulated(policy)
            run.run()
            self.assertEqual(len(run.done), SHAPE.n_conversations * SHAPE.n_turns)
            self.assertEqual(run.policy.served, [0] * 4)

    def test_one_replica_finds_the_same_whatever_the_policy(self):
        found = {simulated(policy, 1).run().cached_share for policy in balancing.POLICIES}
        self.assertEqual(len(found), 1)

    def test_cores_that_are_shared_make_steps_longer(self):
        alone, shared = simulated("prefix").run(), simulated("prefix", n_cores=1).run()
        self.assertGreater(shared.first_p50_ms, alone.first_p50_ms)


class AgainstTheRealRun(unittest.TestCase):
    """Of the policies that replicas_load_test.py measured. Times of first tokens differ, and docs/scaling.md says why."""

    def test_what_is_found_is_within_fifteen_percent(self):
        said = {}
        for policy, found in json.loads(recorded.MEASURED.read_text()).items():
            said[policy] = simulation.real_run(policy)
            self.assertLess(abs(said[policy].prompt_tokens / found["prompt_tokens"] - 1), 0.05, policy)
            self.assertLess(abs(said[policy].cached_share / found["cached_share"] - 1), 0.15, policy)
        self.assertLess(4 * said["prefix"].first_p50_ms, min(said["roundrobin"].first_p50_ms,
                                                            said["leastconn"].first_p50_ms))


if __name__ == "__main__":
    unittest.main()
