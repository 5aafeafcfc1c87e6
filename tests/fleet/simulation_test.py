"""The simulation of replicas: its parts against what they promise, and its small case against the real run."""

import dataclasses
import json
import unittest

import balancing
import conversations
import machine
import recorded
import replica
import simulation

SHAPE = dataclasses.replace(conversations.Shape(), n_conversations=60, n_turns=4, window_s=20.0)
STEPS = recorded.Steps(step_s=0.01, answer_s=0.002, answer_depth_s=1e-6, pieces=((0, 0.0), (100, 0.1), (512, 0.3)),
                       prompt_depth_s=1e-7, request_s=0.003)


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
    SOME = [conversations.Conversation(i, i % 2, 0.0, ()) for i in range(6)]

    def test_a_system_prompt_counts_once_and_the_oldest_leave(self):
        cache = replica.Cache(capacity=1000, system_size=100)
        for conversation in self.SOME:
            for n_tokens in (50, 150, 300):
                cache.hold(conversation, n_tokens, n_tokens < 300)
                held = cache.kept.values()
                self.assertLessEqual(cache.n_tokens, 1000)
                self.assertEqual(cache.n_tokens, sum(max(0, n - 100) for _, n, _ in held)
                                 + cache.systems[0] + cache.systems[1])
        self.assertEqual(cache.n_running, 0)
        self.assertEqual(cache.find(self.SOME[5]), 300)
        self.assertEqual(cache.find(self.SOME[0]), 100)  # its own have left, its system prompt is there

    def test_what_is_computed_now_stays(self):
        cache = replica.Cache(capacity=500, system_size=0)
        for conversation in self.SOME[:4]:
            cache.hold(conversation, 200, True)
        self.assertEqual((cache.n_tokens, cache.n_running), (800, 800))
        cache.hold(self.SOME[0], 200, False)
        self.assertEqual((cache.n_tokens, cache.n_running, cache.find(self.SOME[0])), (600, 600, 0))

    def test_others_find_a_system_prompt_as_far_as_it_is_computed(self):
        cache = replica.Cache(capacity=1000, system_size=100)
        cache.hold(self.SOME[0], 60, True)
        self.assertEqual((cache.find(self.SOME[2]), cache.find(self.SOME[1])), (60, 0))


class Machines(unittest.TestCase):
    def ends(self, n_cores, works, n_beside=0):
        """When threads end of which the i-th comes at second i."""
        clock, found = machine.Clock(), {}
        shared = machine.Machine(clock, n_cores, n_beside)
        for i, work_s in enumerate(works):
            clock.at(float(i), shared.compute, work_s, lambda now, i=i: found.update({i: round(now, 9)}))
        clock.run()
        self.assertAlmostEqual(shared.busy_s, sum(works))
        return [found[i] for i in range(len(works))]

    def test_threads_share_cores_evenly(self):
        self.assertEqual(self.ends(1, [1.0, 3.0]), [1.0, 4.0])
        self.assertEqual(self.ends(1, [3.0, 1.0]), [4.0, 3.0])
        self.assertEqual(self.ends(2, [3.0, 3.0]), [3.0, 4.0])
        # From second 2 on, three of them on two cores; the first has one second left.
        self.assertEqual(self.ends(2, [3.0, 3.0, 3.0]), [3.5, 4.5, 5.5])

    def test_programs_beside_have_their_share(self):
        self.assertEqual(self.ends(2, [1.0], n_beside=1), [1.0])
        self.assertEqual(self.ends(2, [1.0], n_beside=3), [2.0])
        self.assertEqual(self.ends(2, [2.0, 2.0], n_beside=1), [2.5, 3.5])


class Control(unittest.TestCase):
    """As prefill_control_test.cpp has it."""

    def test_a_piece_takes_about_three_quarters_of_a_step(self):
        control = replica.PrefillControl(512)
        control.observe(0, 1, 0.040)
        for _ in range(200):
            n = control.n_tokens_max()
            control.observe(n, 1, 0.040 + 0.002 * n)
        self.assertAlmostEqual(control.n_tokens, 15, delta=2)

    def test_now_and_then_a_step_is_without_prompts(self):
        control = replica.PrefillControl(512)
        control.observe(0, 1, 0.040)
        for _ in range(32):
            self.assertGreater(control.n_tokens_max(), 0)
            control.observe(control.n_tokens_max(), 1, 0.04)
        self.assertEqual(control.n_tokens_max(), 0)

    def test_it_never_stops(self):
        control = replica.PrefillControl(512)
        control.observe(0, 1, 0.001)
        for _ in range(20):
            control.observe(control.n_tokens_max(), 1, 1.0)
        self.assertEqual(control.n_tokens_max(), 2)


class Steps(unittest.TestCase):
    def test_weights_are_found_again(self):
        rows = [(a, b, 2 * a + 3 * b) for a, b in ((1.0, 2.0), (2.0, 1.0), (3.0, 5.0))]
        for weight, expected in zip(recorded.fit(rows), (2, 3)):
            self.assertAlmostEqual(weight, expected)

    def test_pieces_lie_on_lines_between_recorded_ones(self):
        self.assertAlmostEqual(STEPS.piece(50), 0.05)
        self.assertAlmostEqual(STEPS.piece(100), 0.1)
        self.assertAlmostEqual(STEPS.piece(306), 0.2)
        self.assertAlmostEqual(STEPS.piece(924), 0.5)  # beyond the last one, too
        self.assertAlmostEqual(STEPS.step([10, 20], [(50, 100), (50, 0)]),
                               0.01 + 0.004 + 30e-6 + 0.1 + 1e-7 * (50 * 125 + 50 * 25))


class Runs(unittest.TestCase):
    def test_one_request_takes_what_its_steps_take(self):
        shape = dataclasses.replace(SHAPE, n_conversations=1, n_turns=1)
        one = simulated("roundrobin", 1, shape)
        one.run()
        request, = one.done
        steps = STEPS.step([], [(512, 0)]), STEPS.step([], [(request.prompt - 512, 512)])
        self.assertAlmostEqual(request.first_s, STEPS.request_s + sum(steps), places=9)
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
    """Of the policies that replicas_load_test.py measured. Programs of others ran beside it, and how many was not
    recorded; docs/scaling.md says what that explains and what not."""

    def test_what_is_found_agrees_and_first_tokens_lie_between_a_quiet_and_a_crowded_machine(self):
        for policy, found in json.loads(recorded.MEASURED.read_text()).items():
            quiet, crowded = (simulation.real_run(policy, n_beside=n) for n in (0, 6))
            for said in (quiet, crowded):
                self.assertLess(abs(said.prompt_tokens / found["prompt_tokens"] - 1), 0.05, policy)
                self.assertLess(abs(said.cached_share / found["cached_share"] - 1), 0.15, policy)
            for name in ("first_p50_ms", "first_p99_ms"):
                self.assertLess(getattr(quiet, name), found[name], policy)
                self.assertLess(found[name], getattr(crowded, name), policy)


if __name__ == "__main__":
    unittest.main()
