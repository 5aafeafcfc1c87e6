"""Names in a text of which a part has left the cache: by which policy they are lost, and that neither the choice by
query nor rescue loses them (docs/decisions/028-eviction-arms.md).

Environment, set by CMake: SLIPSTREAM_BUILD, TURBO_PLUGIN.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["SLIPSTREAM_BUILD"]) / "bin" / "evictions"
MODEL = CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf"
DEPTH, KEPT, N_TEXTS = 2048, 512, 3
N = 10 * N_TEXTS
POLICIES = ["recency", "random", "mass", "mass, by head", "window", "window, by head", "tri", "tri, by head"]


def evictions(*arguments):
    return subprocess.run([PROGRAM, MODEL, *map(str, arguments), "-t", "1"], capture_output=True, text=True,
                          check=False, timeout=1100)


class Arms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            result = evictions("--depth", DEPTH, "--kept", KEPT, "--texts", N_TEXTS, "--plugin",
                               os.environ["TURBO_PLUGIN"], "--out", folder)
            assert result.returncode == 0, result.stderr
            print(result.stdout, flush=True)
            cls.files = sorted(path.name for path in pathlib.Path(folder).iterdir())
            cls.report = json.loads((pathlib.Path(folder) / "evictions.json").read_text())

    def cell(self, arm, is_rescued=False):
        cell, = [one for one in self.report["cells"] if (one["arm"], one["is_rescued"]) == (arm, is_rescued)]
        self.assertEqual((cell["depth"], cell["n"]), (DEPTH, N))
        return cell

    def n_right(self, arm, is_rescued=False):
        return self.cell(arm, is_rescued)["n_right"]

    def test_everything_is_written(self):
        self.assertEqual(self.files, [f"evictions-{DEPTH}.svg", "evictions.json", "evictions.md"])

    # One measured by its own program, the other as slipstream eval does.
    def test_f16_is_f16(self):
        self.assertGreaterEqual(self.n_right("all"), 0.8 * N)
        self.assertLessEqual(abs(self.n_right("all") - self.n_right("f16, all kept")), 1)

    def test_the_choice_by_query_finds_what_all_find(self):
        self.assertGreaterEqual(self.n_right("turbo4,attend"), self.n_right("turbo4, all kept") - 2)

    def test_recency_loses_all_but_the_end(self):
        positions = {one["position"]: one["n_right"] for one in self.cell("recency")["by_position"]}
        self.assertEqual(sum(positions[early] for early in (0, 0.25, 0.5)), 0)
        self.assertGreaterEqual(positions[1], 0.8 * N / 5)

    def test_every_policy_loses_what_a_choice_by_query_finds(self):
        for arm in POLICIES:
            self.assertLess(self.n_right(arm), self.n_right("turbo4,attend") - N // 5, arm)

    def test_rescue_finds_what_left(self):
        for arm in [*POLICIES, "leave"]:
            self.assertGreaterEqual(self.cell(arm, True)["n_found"], N * (0.95 if arm != "leave" else 0.6), arm)
        self.assertGreaterEqual(self.n_right("leave", True), 0.8 * N)
        self.assertGreaterEqual(self.n_right("leave", True), 2 * self.n_right("leave"))


class Refused(unittest.TestCase):
    def test_a_budget_that_no_policy_can_keep(self):
        result = evictions("--depth", DEPTH, "--kept", 64, "--no-schemes")
        self.assertEqual(result.returncode, 1)
        self.assertIn("64 tokens are fewer than the 132", result.stderr)

    def test_a_depth_that_the_model_was_not_trained_for(self):
        result = evictions("--depth", 65536, "--kept", 512, "--no-schemes")
        self.assertEqual(result.returncode, 1)
        self.assertIn("the model was trained for", result.stderr)


if __name__ == "__main__":
    unittest.main()
