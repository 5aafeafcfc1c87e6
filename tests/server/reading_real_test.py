"""all-MiniLM-L6-v2, which tests/fixtures/real/fetch.py gets, against packaged llama-server: vectors of batches of
texts of all lengths, and a reranker of random weights that reads MiniLM's tokens, with [CLS] and [SEP].

Environment: SLIPSTREAM_BIN, the built program; MAKE_MODEL, the program.
"""

import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

from reading_test import CLOSE, Case
from serving import LlamaServing, Serving

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
WORDS = re.findall(r"[A-Za-z]+[,.]?", (FIXTURES / "haystack.txt").read_text())
N_CONTEXT = 512


def mixed_texts(n, seed):
    """Of 1 to about 330 words."""
    rng = random.Random(seed)
    texts = []
    for _ in range(n):
        begin = rng.randrange(len(WORDS) - 340)
        texts.append(" ".join(WORDS[begin:begin + int(math.exp(rng.uniform(0, math.log(330))))]))
    return texts


class MiniLm(Case):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([sys.executable, FIXTURES / "real" / "fetch.py", "minilm"], capture_output=True,
                              text=True, check=False)
        if done.returncode == 77:
            raise unittest.SkipTest("minilm is not here, and cannot be fetched")
        assert done.returncode == 0, done.stderr
        cls.model = done.stdout.strip()

    def longest_text(self, server):
        """A text of as many tokens as the model reads."""
        text = "river " * N_CONTEXT
        while (n := server.post("/tokenize", {"prompt": text})[1]["count"]) > N_CONTEXT:
            text = text[:-6 * (n - N_CONTEXT)]
        self.assertEqual(n, N_CONTEXT)
        return text

    def compare_vectors(self, *arguments):
        ours = self.start(Serving, "--name", "minilm", *arguments, model=self.model)
        stock = self.start(LlamaServing, "--embeddings", model=self.model)
        longest = self.longest_text(ours)
        self.refused(ours, "/v1/embeddings", {"input": ["a", longest + " river"]}, "input", "at most 512")
        largest, closest = 0, 1
        for n in (1, 8, 64):
            inputs = [longest, *mixed_texts(n - 1, n)] if n > 1 else [longest]
            answer, expected = (server.post("/v1/embeddings", {"input": inputs, "model": name})[1]
                                for server, name in ((ours, "minilm"), (stock, "needle")))
            self.assertEqual(answer["usage"], expected["usage"])
            for one, other in zip(answer["data"], expected["data"], strict=True):
                pairs = list(zip(one["embedding"], other["embedding"], strict=True))
                largest = max(largest, *(abs(a - b) for a, b in pairs))
                closest = min(closest, sum(a * b for a, b in pairs))
        print(f"\n{' '.join(arguments)}: at most {largest:.1e} from llama-server's numbers, cosine at least {closest:.6f}")
        self.assertLess(largest, CLOSE)
        return ours

    def test_vectors_are_llama_servers(self):
        server = self.compare_vectors()
        def vector(text):
            return server.post("/v1/embeddings", {"input": text})[1]["data"][0]["embedding"]
        question, answer, other = map(vector, ("a wading bird in a stream", "The heron stands in the river.",
                                               "The invoice is due at the end of the month."))
        self.assertGreater(math.sumprod(question, answer), math.sumprod(question, other) + 0.2)

    def test_ranks_are_llama_servers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ranker.gguf")
            subprocess.run([os.environ["MAKE_MODEL"], "bert-rank", path, "--vocabulary", self.model], check=True)
            ours = self.start(Serving, "--name", "ranker", model=path)
            stock = self.start(LlamaServing, "--reranking", model=path)
            for n in (1, 8, 64):
                body = {"query": "where does the heron wait", "documents": mixed_texts(n, n)}
                answer, expected = (server.post("/v1/rerank", body)[1] for server in (ours, stock))
                self.assertEqual(answer["usage"], expected["usage"])
                ranks, theirs = ({one["index"]: one["relevance_score"] for one in whole["results"]}
                                 for whole in (answer, expected))
                for i in range(n):
                    self.assertAlmostEqual(ranks[i], theirs[i], delta=CLOSE)


if __name__ == "__main__":
    unittest.main()
