"""Sequences saved as the compressed cache holds them: in this process, the next, and another one."""

import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"])
PROBE = pathlib.Path(os.environ["SLIPSTREAM_BUILD"]) / "bin" / "state_probe"
NEEDLE_MODEL = CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf"
N_VOCAB = 2048  # of the needle model
HAYSTACK = (CHECKOUT / "tests" / "fixtures" / "haystack.txt").read_text()
PROMPTS = [HAYSTACK[start:start + 1200] for start in (0, 400, 800)]
OTHER_TEXT = " ".join(f"--option-{i} {i * i}" for i in range(60))


def log_softmax(logits):
    peak = max(logits)
    total = peak + math.log(sum(math.exp(x - peak) for x in logits))
    return [x - total for x in logits]


def kl_divergence(base, other):
    """The mean over tokens, of two files of f32 logits."""
    base, other = base.read_bytes(), other.read_bytes()
    assert len(base) == len(other)
    n_tokens = len(base) // (4 * N_VOCAB)
    total = 0.0
    for i in range(n_tokens):
        p, q = (log_softmax(struct.unpack_from(f"{N_VOCAB}f", data, i * 4 * N_VOCAB))
                for data in (base, other))
        total += sum(math.exp(a) * (a - b) for a, b in zip(p, q))
    return total / n_tokens


class EngineState(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.prompt = self.folder / "prompt"
        self.prompt.write_text(PROMPTS[0])

    def path(self, name):
        return self.folder / name

    def start(self, scheme, *arguments, model=NEEDLE_MODEL):
        command = [PROBE, model, "--plugin", os.environ["TURBO_PLUGIN"], "--kv", scheme, "--prompt",
                   self.prompt, *arguments]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=600, check=False)

    def run_probe(self, scheme, *arguments, model=NEEDLE_MODEL):
        """The tokens that a process of its own generates."""
        result = self.start(scheme, *arguments, model=model)
        self.assertEqual(result.returncode, 0, result.stderr[-3000:])
        return json.loads(result.stdout)

    def check_next_process_goes_on(self, scheme, model=NEEDLE_MODEL, same_cells=True,
                                   with_copies=False):
        """Codes, scales and centres are those of the process that was never interrupted; so are its
        tokens, if it had no copies in 8 bits beside coarser codes: those are not saved. With them
        every process that restores the state goes on in the same way."""
        first, second = self.path("first"), self.path("second")
        expected = self.run_probe(scheme, "--save", first, model=model)
        again = self.run_probe(scheme, "--restore", first, "--save", second, model=model)
        self.assertEqual(second.read_bytes(), first.read_bytes())
        if with_copies:
            expected = self.run_probe(scheme, "--restore", first, model=model)
        if same_cells:
            self.assertEqual(again, expected)

    def test_the_next_process_goes_on_token_for_token(self):
        for scheme in ("turbo8", "turbo8v4", "turbo4", "turbo3", "turbo2"):
            for number, prompt in enumerate(PROMPTS):
                with self.subTest(scheme=scheme, prompt=number):
                    self.prompt.write_text(prompt)
                    self.check_next_process_goes_on(scheme, with_copies=scheme != "turbo8")

    def test_the_same_process_goes_on_as_the_next_one_would(self):
        for scheme in ("turbo8", "turbo8v4", "turbo4"):
            with self.subTest(scheme=scheme):
                first, second = self.path("first"), self.path("second")
                self.run_probe(scheme, "--save", first)
                expected = self.run_probe(scheme, "--restore", first)
                self.assertEqual(self.run_probe(scheme, "--clear", "--save", second), expected)
                self.assertEqual(second.read_bytes(), first.read_bytes())
                # At other cells attention takes tokens in other groups, but the codes are the same.
                self.run_probe(scheme, "--move", "--save", second)
                self.assertEqual(second.read_bytes(), first.read_bytes())

    def test_a_saved_sequence_is_as_small_as_its_cache(self):
        self.run_probe("turbo4", "--plain", "--save", self.path("plain"), "--generate", 1)
        plain_size = self.path("plain").stat().st_size
        for scheme, at_least in (("turbo8", 1.85), ("turbo8v4", 2.45), ("turbo4", 3.7),
                                 ("turbo3", 4.8)):
            self.run_probe(scheme, "--save", self.path("packed"), "--generate", 1)
            ratio = plain_size / self.path("packed").stat().st_size
            self.assertGreaterEqual(ratio, at_least, scheme)

    def test_caches_that_are_not_compressed_pass_as_they_are(self):
        for scheme in ("f16", "q8_0", "q8_0/q4_0", "turbo0v4", "turbo4,0-1=f16,2=turbo8"):
            with self.subTest(scheme=scheme):
                self.check_next_process_goes_on(scheme, with_copies="turbo" in scheme)

    def test_two_buffers_latent_attention_and_recurrent_layers(self):
        for shape in ("gemma3", "gpt-oss", "deepseek2", "qwen35"):
            with self.subTest(shape=shape):
                # Of a sliding window libllama saves only what is still in it: it comes back at the
                # first cells.
                self.check_next_process_goes_on("turbo4", model=FIXTURES / f"{shape}.gguf",
                                                same_cells=shape in ("deepseek2", "qwen35"),
                                                with_copies=shape != "deepseek2")

    # The cache then has another centre, and rows are encoded a second time, as f16 rows are.
    def test_after_another_text_it_is_as_good_as_f16_rows(self):
        self.path("other").write_text(OTHER_TEXT)
        base, logits = self.path("base"), self.path("logits")
        for scheme, at_most in (("turbo8", 1e-4), ("turbo4", 0.002)):
            sums = {"plain": 0.0, "packed": 0.0}
            for prompt in PROMPTS:
                self.prompt.write_text(prompt)
                tokens = self.run_probe(scheme, "--logits", base)
                forced = ",".join(map(str, tokens))
                for name, flags in (("plain", ["--plain"]), ("packed", [])):
                    self.run_probe(scheme, "--save", self.path("state"), "--generate", 1, *flags)
                    self.run_probe(scheme, "--restore", self.path("state"), "--other",
                                   self.path("other"), "--force", forced, "--logits", logits,
                                   *flags)
                    sums[name] += kl_divergence(base, logits) / len(PROMPTS)
            # f16 rows have what was kept in 8 bits beside 4-bit codes; packed ones have the codes.
            if scheme == "turbo8":
                self.assertLess(sums["packed"], sums["plain"] * 1.1, scheme)
            self.assertLess(sums["packed"], at_most, scheme)

    # Shorter than a centre is taken from: restored like f16 rows, not bit by bit.
    def test_a_short_sequence_comes_back(self):
        self.prompt.write_text("We met amber lantern today.")
        self.run_probe("turbo8", "--save", self.path("state"))
        self.run_probe("turbo8", "--restore", self.path("state"))

    def test_what_does_not_fit_is_refused_and_the_sequence_is_empty(self):
        self.run_probe("turbo4", "--save", self.path("turbo4"), "--generate", 1)
        self.run_probe("f16", "--save", self.path("f16"), "--generate", 1)
        damaged = bytearray(self.path("turbo4").read_bytes())
        damaged[9] ^= 1
        self.path("damaged").write_bytes(damaged)
        for scheme, file, model, message in (
                ("turbo8", "turbo4", NEEDLE_MODEL, "saved from a cache of another shape"),
                ("turbo3", "turbo4", NEEDLE_MODEL, "saved from a cache of another shape"),
                ("turbo0v4", "turbo4", NEEDLE_MODEL, "cannot restore"),
                ("turbo4,3=f16", "turbo4", NEEDLE_MODEL, "cannot restore"),
                ("f16", "turbo4", NEEDLE_MODEL, "saved from a compressed KV cache"),
                ("q8_0", "f16", NEEDLE_MODEL, "cannot restore"),
                ("turbo4", "turbo4", FIXTURES / "gemma3.gguf", "cannot restore"),
                ("turbo4", "damaged", NEEDLE_MODEL, "not a saved sequence")):
            with self.subTest(scheme=scheme, file=file, model=model):
                result = self.start(scheme, "--restore", self.path(file), model=model)
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr[-3000:])
                self.assertIn(message, result.stderr)
                self.assertIn("the sequence ends at -1", result.stderr)
        # f16 rows are something that every scheme takes.
        self.run_probe("turbo8", "--restore", self.path("f16"))


if __name__ == "__main__":
    unittest.main()
