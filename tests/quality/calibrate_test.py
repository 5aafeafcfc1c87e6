"""slipstream calibrate from outside: what it chooses for two models, and what --kv makes of it.

Environment, set by CMake: SLIPSTREAM_BIN, SLIPSTREAM_FIXTURES.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
NEEDLE_MODEL = CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf"
OFFSET_MODEL = pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"]) / "qwen2.gguf"


def slipstream(data_home, *arguments):
    return subprocess.run([os.environ["SLIPSTREAM_BIN"], *[str(word) for word in arguments]],
                          env={**os.environ, "XDG_DATA_HOME": str(data_home)},
                          capture_output=True, text=True, check=False, timeout=1100)


class NeedleModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        cls.result = slipstream(cls.home, "calibrate", NEEDLE_MODEL, "--depth", "512", "--chunks",
                                "4", "-t", "1")
        assert cls.result.returncode == 0, cls.result.stderr
        (cls.path,) = (cls.home / "slipstream" / "calibration").glob("*.json")
        cls.profile = json.loads(cls.path.read_text())
        cls.evidence = cls.profile["evidence"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def tearDown(self):
        self.path.write_text(json.dumps(self.profile))

    def run_model(self, *arguments):
        return slipstream(self.home, "run", NEEDLE_MODEL, "-p", "Once upon a time", "-n", "4",
                          *arguments)

    def test_it_is_smaller_than_turbo8v4_and_finds_every_needle(self):
        self.assertLess(self.evidence["bytes_per_token"], self.evidence["bytes_per_token_turbo8v4"])
        taken = self.evidence["trials"][-1]
        self.assertEqual(taken["kv"], self.evidence["chosen"])
        self.assertGreaterEqual(taken["n_needles"], 9)  # of ten, which share a text
        self.assertEqual(taken["n_needles_found"], taken["n_needles"])
        self.assertLessEqual(taken["kl"], self.evidence["budget"])
        self.assertGreaterEqual(taken["same_top"], 0.9)

    def test_the_evidence_names_every_layer_and_adds_up(self):
        groups = self.evidence["probe"]["groups"]
        self.assertEqual([group["first_layer"] for group in groups], [0, 1, 2, 3])
        for group in groups:
            for side in ("keys", "values"):
                kl = [option["kl"] for option in group[side]]
                self.assertGreater(len(kl), 1)
                for wider, narrower in zip(kl, kl[1:]):
                    self.assertGreater(narrower, wider - 5e-6, "fewer bits cost more")
        for trial in self.evidence["trials"]:
            self.assertLess(abs(trial["kl"] - trial["kl_expected"]), 0.5 * trial["kl_expected"])
            by_divergence = bool(trial["objection"]) and "needles" not in trial["objection"]
            self.assertEqual(trial["n_needles"] == 0, by_divergence, trial)

    def test_layers_are_measured_on_half_of_the_chunks(self):
        self.assertEqual(self.evidence["probe"]["n_chunks"], 2)
        self.assertEqual(self.evidence["probe"]["n_tokens"], 2 * 255)

    def test_it_says_what_and_why(self):
        for words in (self.evidence["chosen"], "bytes per token", "Why: ", str(self.path)):
            self.assertIn(words, self.result.stdout)
        self.assertRegex(self.profile["model"]["fingerprint"], "^[0-9a-f]{64}$")
        for key in ("created", "slipstream", "llama_cpp", "ggml"):
            self.assertTrue(self.profile[key], key)
        self.assertTrue(self.profile["machine"]["cpu"])

    def test_keys_are_fitted_and_their_profile_lies_beside(self):
        keys = self.path.with_suffix(".keys")
        self.assertEqual(self.profile["keys"], keys.name)
        self.assertEqual(keys.read_bytes()[:8], b"SLIPKEYS")
        self.assertEqual(self.evidence["probe"]["key_fitting"]["n_layers"], 4)
        self.assertIn("Keys of 4 layers fitted from 4096 tokens.", self.result.stdout)
        self.assertIn("keys of 4 layers are fitted",
                      slipstream(self.home, "show", NEEDLE_MODEL).stdout)
        hidden = keys.rename(keys.with_suffix(".hidden"))
        try:
            self.assertIn("is missing", self.run_model().stderr)
        finally:
            hidden.rename(keys)

    def test_damaged_keys_are_a_warning(self):
        keys = self.path.with_suffix(".keys")
        whole = keys.read_bytes()
        keys.write_bytes(whole[:-1])
        try:
            result = self.run_model("--kv", "turbo4")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("is not a key profile", result.stderr)
        finally:
            keys.write_bytes(whole)

    def test_auto_takes_the_least_divergence_that_was_measured(self):
        measured = [self.evidence["probe"]["finest"], *self.evidence["trials"], *self.evidence["probe"]["schemes"]]
        best = min((m for m in measured if m["kv"].startswith("turbo")), key=lambda m: m["kl"])["kv"]
        self.assertIn(f"KV {best} |", self.run_model().stderr)
        changed = json.loads(json.dumps(self.profile))
        for scheme in changed["evidence"]["probe"]["schemes"]:
            if scheme["kv"] == "turbo4":
                scheme["kl"] = 0
        other = self.path.with_name("other.json")
        other.write_text(json.dumps(changed))
        self.addCleanup(other.unlink)
        self.assertIn("KV turbo4 |", self.run_model("--kv-profile", other).stderr)

    def test_show_lists_what_was_measured(self):
        shown = slipstream(self.home, "show", NEEDLE_MODEL).stdout
        self.assertIn(f"calibrated    the smallest it tolerates is --kv {self.evidence['chosen']}, ", shown)
        self.assertIn("--kv auto takes the first turbo scheme that fits", shown)
        for scheme in self.evidence["probe"]["schemes"]:
            self.assertRegex(shown, rf"--kv {scheme['kv']} +{scheme['kl']:.5f}, the same top token")

    def test_what_is_broken_is_refused_unless_forced(self):
        changed = json.loads(json.dumps(self.profile))
        for scheme in changed["evidence"]["probe"]["schemes"]:
            if scheme["kv"] == "turbo2":
                scheme["kl"] = 0.75
        self.path.write_text(json.dumps(changed))
        refused = self.run_model("--kv", "turbo2")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("turbo2 at a mean KL divergence of 0.750", refused.stderr)
        self.assertIn("--kv-force", refused.stderr)
        self.assertIn("KV turbo2 |", self.run_model("--kv", "turbo2", "--kv-force").stderr)
        self.assertIn("KV turbo3 |", self.run_model("--kv", "turbo3").stderr)

    def test_a_profile_that_cannot_be_used_is_a_warning(self):
        for text, expected in (
                ("{", "is damaged"),
                (json.dumps({**self.profile, "slipstream": "0.0.1"}), "calibrate again"),
                (json.dumps({**self.profile, "model": {"fingerprint": "00", "file": "x"}}),
                 "another model")):
            self.path.write_text(text)
            result = self.run_model()
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(expected, result.stderr)
            self.assertIn("KV turbo8v4 |", result.stderr)


class OwnKernels(unittest.TestCase):
    def test_all_are_read_by_them_and_a_note_says_so(self):
        with tempfile.TemporaryDirectory() as home:
            path = pathlib.Path(home) / "profile.json"
            result = slipstream(home, "calibrate", NEEDLE_MODEL, "--depth", "512", "--chunks", "1",
                                "--prompts", "on", "--out", path, "-t", "1")
            self.assertEqual(result.returncode, 0, result.stderr)
            evidence = json.loads(path.read_text())["evidence"]
        self.assertIn("Note: prompts were read by slipstream's own kernels", result.stdout)
        # With other kernels than f16's, even 8 bits would seem to diverge.
        self.assertLess(evidence["probe"]["finest"]["kl"], 0.001)
        self.assertLessEqual(evidence["trials"][-1]["kl"], evidence["budget"])


class KeysWithALargeOffset(unittest.TestCase):
    def test_they_keep_what_can_be_fitted_and_it_says_why(self):
        with tempfile.TemporaryDirectory() as home:
            path = pathlib.Path(home) / "profile.json"
            result = slipstream(home, "calibrate", OFFSET_MODEL, "--depth", "512", "--out", path,
                                "-t", "1")
            self.assertEqual(result.returncode, 0, result.stderr)
            evidence = json.loads(path.read_text())["evidence"]
        self.assertGreaterEqual(min(group["bits"]["keys"] for group in evidence["groups"]), 3)
        self.assertLessEqual(max(group["bits"]["values"] for group in evidence["groups"]), 4)
        self.assertLessEqual(evidence["trials"][-1]["kl"], evidence["budget"])
        self.assertIn("at least 3: they have a large offset", result.stdout)
        offset = evidence["probe"]["key_offset"]
        self.assertGreater(offset["kl_without_centre"], 10 * offset["kl_with_centre"])


if __name__ == "__main__":
    unittest.main()
