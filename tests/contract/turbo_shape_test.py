"""Our device in stock llama.cpp, on a fixture of a named shape: exact where nothing is compressed,
close where it is.

Usage: turbo_shape_test.py SHAPE (one ctest for each)
"""

import json
import pathlib
import sys
import tempfile
import unittest

import stock

SHAPE = sys.argv.pop()
# One thread: stock's own results vary with the order in which threads add.
TEXT = ["-f", stock.HAYSTACK, "-c", "512", "--chunks", "2", "-t", "1"]
# Mean KL divergence allowed to turbo4 and turbo8: about twice what was measured. docs/compatibility.md
# is made from the same file.
SHAPES = json.loads(pathlib.Path(__file__).with_name("shape_bounds.json").read_text())
TURBO4_MAX, TURBO8_MAX = SHAPES["bounds"].get(SHAPE, SHAPES["bounds"]["default"])
PRODUCTS_MAX = 1e-3
NOT_COMPRESSED = SHAPES["not_compressed"]


class TurboShape(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.stock = cls.folder / "stock"
        stock.logits(stock.model(SHAPE), cls.stock, *TEXT)

    def test_nothing_compressed_is_bit_identical_to_stock(self):
        for scheme in ("f16", "turbo0v0"):
            ours = self.folder / scheme
            stock.logits(stock.model(SHAPE), ours, *TEXT, scheme=scheme)
            self.assertEqual(ours.read_bytes(), self.stock.read_bytes(), scheme)

    def test_own_products_are_close_to_stock(self):
        # Compared with stock's plain kernels: its repacked ones are far from them for qwen35.
        plain = self.folder / "plain"
        stock.logits(stock.model(SHAPE), plain, *TEXT, "--no-repack")
        mean, same = stock.kl_divergence(stock.model(SHAPE), plain, *TEXT, "--no-repack",
                                         scheme="f16", prompts="on")
        print(f"{SHAPE}: own products KL {mean:.2g}, same top {same:.4f}")
        self.assertLess(mean, PRODUCTS_MAX)
        self.assertGreater(same, 0.97)

    def test_four_bits_are_close_and_really_four_bits(self):
        mean, same = stock.kl_divergence(stock.model(SHAPE), self.stock, *TEXT, scheme="turbo4")
        if SHAPE in NOT_COMPRESSED:
            self.assertEqual(same, 1)
            self.assertAlmostEqual(mean, 0, places=5)
        else:
            self.assertLess(mean, TURBO4_MAX)
            self.assertGreater(mean, 1e-5)

    def test_eight_bits_are_closer(self):
        mean, same = stock.kl_divergence(stock.model(SHAPE), self.stock, *TEXT, scheme="turbo8")
        self.assertLess(mean, TURBO8_MAX)
        self.assertGreater(same, 0.97)


if __name__ == "__main__":
    unittest.main()
