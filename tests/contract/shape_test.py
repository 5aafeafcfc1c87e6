"""A fixture of a named shape is a model to stock llama.cpp: it loads, generates and is measured.

Usage: shape_test.py SHAPE (one ctest for each)
"""

import json
import math
import re
import sys
import unittest

import stock

SHAPE = sys.argv.pop()
PROMPT = "We met amber lantern today."
N_TOKENS = 16


class Shape(unittest.TestCase):
    def generate(self):
        stdout, _ = stock.run("llama-completion", "-m", stock.model(SHAPE), "-p", PROMPT,
                              "-n", N_TOKENS, "-c", 512, "--temp", 0, "-no-cnv", "--ignore-eos",
                              "--no-warmup", *stock.THREADS)
        return stdout

    def test_generates_the_same_text_twice(self):
        first = self.generate()
        self.assertTrue(first.startswith(PROMPT), first)
        continuation = first[len(PROMPT):].strip()
        self.assertGreater(len(continuation), N_TOKENS)
        # Not one token over and over: what follows depends on what came before.
        self.assertGreater(len(set(continuation)), 5, continuation)
        self.assertEqual(first, self.generate())

    def test_llama_bench_measures_it(self):
        stdout, _ = stock.run("llama-bench", "-m", stock.model(SHAPE), "-p", 32, "-n", 8, "-r", 1,
                              "-o", "json", *stock.THREADS)
        results = json.loads(stdout)
        self.assertEqual([(r["n_prompt"], r["n_gen"]) for r in results], [(32, 0), (0, 8)])
        for result in results:
            self.assertGreater(result["avg_ts"], 0)

    def test_llama_perplexity_is_finite_past_the_sliding_window(self):
        _, stderr = stock.run("llama-perplexity", "-m", stock.model(SHAPE), "-f", stock.HAYSTACK,
                              "-c", 256, "--chunks", 2, "-fa", "on", *stock.THREADS)
        perplexity = float(re.search(r"Final estimate: PPL = (\S+)", stderr)[1])
        self.assertTrue(math.isfinite(perplexity), perplexity)
        # It knows nothing, so it must not seem to: worse than guessing among its 2,048 tokens.
        self.assertGreater(perplexity, 2048)


if __name__ == "__main__":
    unittest.main()
