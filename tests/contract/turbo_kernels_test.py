"""Every set of kernels gives the same answers, also beside ggml's own AMX kernels."""

import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

import stock

TEXT = ("-f", stock.HAYSTACK, "-c", 256, "--chunks", 4, "-t", 2)
KERNELS = ("amx", "avx512", "avx2") if os.uname().machine == "x86_64" else ("neon",)


class Kernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def divergence(self, model, scheme, kernels):
        base = self.folder / f"{model.stem}.logits"
        if not base.exists():
            stock.logits(model, base, *TEXT)
        with mock.patch.dict(os.environ, {"GGML_TURBO_KERNELS": kernels}):
            return stock.kl_divergence(model, base, *TEXT, scheme=scheme)[0]

    def test_every_set_is_as_close_to_f16(self):
        for scheme in ("turbo8", "turbo4"):
            found = [self.divergence(stock.NEEDLE_MODEL, scheme, name) for name in KERNELS]
            # They add floats in different orders, and nothing else differs.
            self.assertLess(max(found) - min(found), 0.02 * min(found), (scheme, found))

    def test_weights_on_amx_do_not_disturb_ours_nor_ours_them(self):
        """ggml configures a thread's AMX tiles once; our kernels use the same tiles in between."""
        model = self.folder / "quantised.gguf"
        subprocess.run([os.environ["MAKE_MODEL"], "qwen3", model, "--type", "q8_0", "--vocabulary",
                        stock.NEEDLE_MODEL], check=True, capture_output=True)
        self.assertLess(self.divergence(model, "turbo8", KERNELS[0]), 0.0005)

    def test_a_set_that_does_not_exist_is_named_and_the_program_runs_on(self):
        with mock.patch.dict(os.environ, {"GGML_TURBO_KERNELS": "mmx"}):
            stock.said("llama-completion", "-m", stock.NEEDLE_MODEL, "-n", 1, "-p", "x", "-no-cnv",
                       "-v", "-c", 256, scheme="turbo4",
                       patterns=["GGML_TURBO_KERNELS=mmx is not one of"])


if __name__ == "__main__":
    unittest.main()
