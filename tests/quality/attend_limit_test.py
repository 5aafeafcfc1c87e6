"""Limits on what a query reads (attend=N). slipstream calibrate --attend finds one that the model
bears and refuses a smaller one; eval and calibrate notice that the choice of what to read is broken.

attend_limit_test.py near: in the gate. attend_limit_test.py all: calibrate with the broken plugin, too.
Environment, set by CMake: SLIPSTREAM_BIN, SLIPSTREAM_BUILD, TURBO_PLUGIN.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import eval_run

DEPTH = 2048
LIMITS = [0, 512, 1024]  # 0: all is read
BROKEN = eval_run.BROKEN_PLUGINS / "libggml-turbo-broken_choice.so"


def slipstream(home, *arguments):
    return subprocess.run([os.environ["SLIPSTREAM_BIN"], *[str(word) for word in arguments]],
                          env={**os.environ, "XDG_DATA_HOME": str(home)},
                          capture_output=True, text=True, check=False, timeout=1100)


class Calibration(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.path = self.home / "profile.json"

    def calibrate(self, *arguments):
        """(its evidence of limits, all its evidence, what it printed)"""
        result = slipstream(self.home, "calibrate", eval_run.NEEDLE_MODEL, "--attend", "--depth",
                            f"512,{DEPTH}", "--budget", "0.016", "--chunks", "1",
                            "--layers-together", "4", "--prompts", "off", "-t", "1", "--out",
                            self.path, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        evidence = json.loads(self.path.read_text())["evidence"]
        print(result.stdout, flush=True)
        return evidence["attend"], evidence, result.stdout

    def run_model(self, n_context):
        result = slipstream(self.home, "run", eval_run.NEEDLE_MODEL, "-p", "Once", "-n", "2",
                            "--ctx", n_context, "--kv-profile", self.path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr


class Near(Calibration):
    def test_the_smallest_that_suffices_is_found(self):
        attend, evidence, stdout = self.calibrate()
        tried = attend["trials"]
        self.assertEqual([one["attend"] for one in tried], LIMITS)
        everything, too_few, enough = tried
        self.assertEqual(everything["kv"], evidence["chosen"])
        self.assertEqual(attend["chosen"], f"{evidence['chosen']},attend=1024")
        self.assertEqual(enough["objection"], "")
        self.assertNotEqual(too_few["objection"], "")
        for one in tried:
            self.assertEqual([at["depth"] for at in one["at"]], [512, DEPTH])
        # Nothing is left out of a short text, and what is left out of a long one shows.
        for one in (too_few, enough):
            self.assertEqual(one["at"][0]["kl"], everything["at"][0]["kl"])
            self.assertGreater(one["at"][1]["kl_decoded"], everything["at"][1]["kl_decoded"])
        self.assertGreater(too_few["at"][1]["kl"], enough["at"][1]["kl"])
        self.assertLessEqual(max(max(at["kl"], at["kl_decoded"]) for at in enough["at"]),
                             evidence["budget"])
        asked = sum(at["n_needles"] for at in enough["at"])
        self.assertGreaterEqual(asked, 15)
        self.assertEqual(sum(at["n_needles_found"] for at in enough["at"]), asked)
        for words in (f"measured to a depth of {DEPTH} tokens: nothing is known beyond",
                      "A smaller limit, 512, was tried", f"KL at {DEPTH}", attend["chosen"]):
            self.assertIn(words, stdout)
        self.assertIn(f"KV {attend['chosen']} |", self.run_model(DEPTH))
        self.assertNotIn("attend=", self.run_model(2 * DEPTH))

    def test_a_depth_at_which_nothing_could_be_left_out_is_refused(self):
        result = slipstream(self.home, "calibrate", eval_run.NEEDLE_MODEL, "--attend", "--depth",
                            "512", "--out", self.path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("at a --depth of 1024 or more", result.stderr)
        self.assertFalse(self.path.exists())

    # The divergence of the prompt alone would pass: a prompt reads twice as many tokens.
    def test_eval_does_not_call_a_broken_choice_fine(self):
        kv = "turbo4,attend=1024"
        status, report, stdout, stderr = eval_run.run(
            "--kv", kv, "--tasks", "divergence,needles", "--needle-kinds", "several,paraphrased",
            "--depth", DEPTH, "--chunks", "1", "--fail-on", "visible-loss", "--plugin", BROKEN)
        self.assertIsNotNone(report, stderr)
        self.assertEqual(status, 1, stdout)
        self.assertGreaterEqual(eval_run.scheme(report, "f16")["needles"]["n_right"], 9)
        self.assertLessEqual(eval_run.scheme(report, kv)["needles"]["n_right"], 7)
        figures = eval_run.figures(report, kv, DEPTH)
        self.assertEqual(figures["decoded"]["n_tokens"], 128)
        self.assertGreater(figures["decoded"]["kl_mean"], 0.02)
        self.assertLess(figures["divergence"]["kl_mean"], 0.02)


class All(Near):
    def test_no_limit_is_taken_where_the_choice_is_broken(self):
        attend, evidence, stdout = self.calibrate("--plugin", BROKEN)
        self.assertEqual(attend["chosen"], "")
        self.assertEqual([one["attend"] for one in attend["trials"]], LIMITS)
        self.assertNotEqual(evidence["chosen"], "f16")
        self.assertIn("All tokens have to be read", stdout)
        self.assertNotIn("attend=", self.run_model(DEPTH))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], {"near": "Near", "all": "All"}[sys.argv[1]], *sys.argv[2:]])
