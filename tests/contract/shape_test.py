"""A fixture of a named shape is a model to stock llama.cpp: it loads, generates and is measured.

Usage: shape_test.py SHAPE (one ctest for each)
"""

import json
import math
import sys
import unittest

import stock

SHAPE = sys.argv.pop()
PROMPT = "We met amber lantern today."
N_TOKENS = 16


class Shape(unittest.TestCase):
    def test_llama_server_generates_the_same_text_twice(self):
        with stock.server(stock.model(SHAPE), "-c", 512, "-np", 1) as server:
            texts = [server.post("/completion", {
                "prompt": PROMPT, "n_predict": N_TOKENS, "temperature": 0, "ignore_eos": True,
                "cache_prompt": False, "return_tokens": True}) for _ in range(2)]
        tokens = texts[0]["tokens"]
        self.assertEqual(len(tokens), N_TOKENS)
        # Not one token over and over: what follows depends on what came before.
        self.assertGreater(len(set(tokens)), N_TOKENS // 2, tokens)
        self.assertEqual(tokens, texts[1]["tokens"])

    def test_llama_bench_measures_it(self):
        stdout, _ = stock.run("llama-bench", "-m", stock.model(SHAPE), "-p", 32, "-n", 8, "-r", 1,
                              "-o", "json", *stock.THREADS)
        results = json.loads(stdout)
        self.assertEqual([(r["n_prompt"], r["n_gen"]) for r in results], [(32, 0), (0, 8)])
        for result in results:
            self.assertGreater(result["avg_ts"], 0)

    def test_llama_perplexity_is_finite_past_the_sliding_window(self):
        perplexity = stock.perplexity(stock.model(SHAPE), "-f", stock.HAYSTACK, "-c", 256,
                                      "--chunks", 2, "-fa", "on")
        self.assertTrue(math.isfinite(perplexity), perplexity)
        # It knows nothing, so it must not seem to: worse than guessing among its 2,048 tokens.
        self.assertGreater(perplexity, 2048)


if __name__ == "__main__":
    unittest.main()
