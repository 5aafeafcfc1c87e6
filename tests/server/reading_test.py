"""/v1/embeddings and /v1/rerank against packaged llama-server on the same files, and their limits.

The rerankers have random weights (tests/fixtures/make_model): what they think of texts means nothing, but
depends on every token. Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_FIXTURES, made models.
"""

import math
import os
import pathlib
import random
import re
import tempfile
import threading
import time
import unittest

from serving import LlamaServing, Serving

FIXTURES = pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"])
BERT = str(FIXTURES / "bert-rank.gguf")  # reads 512 tokens
QWEN = str(FIXTURES / "qwen3-rank.gguf")
CLOSE = 1e-3
WORDS = "the heron stands in a river and waits for fish while bread is baked at home every morning".split()


def texts(n, seed=1, n_words_max=60):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=1 + rng.randrange(n_words_max))) for _ in range(n)]


class Case(unittest.TestCase):
    def start(self, kind, *arguments, **settings):
        server = kind(*arguments, **settings)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        return server

    def refused(self, server, path, body, param, words, status=400):
        found, answer = server.post(path, body)
        self.assertEqual(found, status, answer)
        self.assertEqual(answer["error"]["param"], param, answer)
        self.assertIn(words, answer["error"]["message"])

    def read_long(self, server, n, n_words_max):
        """A request of so many texts, in progress."""
        def read():
            self.assertEqual(server.post("/v1/embeddings", {"input": texts(n, n_words_max=n_words_max)})[0], 200)
        long = threading.Thread(target=read)
        long.start()
        while self.counter(server, "read_texts_waiting") == 0:
            self.assertTrue(long.is_alive())
            time.sleep(0.005)
        return long

    def counter(self, server, name):
        metrics = server.ask("GET", "/metrics")[1]
        return float(re.search(rf"^slipstream:{name}\{{.*?\}} (\S+)$", metrics, re.M)[1])


class Rerank(Case):
    def compare(self, model, *stock_arguments):
        ours = self.start(Serving, "--name", "ranker", model=model)
        stock = self.start(LlamaServing, "--reranking", *stock_arguments, model=model)
        largest = 0
        for n in (1, 8, 64):
            body = {"query": "where does the heron wait", "documents": texts(n, seed=n)}
            status, answer = ours.post("/v1/rerank", body)
            self.assertEqual(status, 200, answer)
            expected = stock.post("/v1/rerank", body)[1]
            self.assertEqual(answer["usage"], expected["usage"])
            ranks = {one["index"]: one["relevance_score"] for one in answer["results"]}
            theirs = {one["index"]: one["relevance_score"] for one in expected["results"]}
            self.assertEqual(sorted(ranks), list(range(n)))
            largest = max(largest, *(abs(ranks[i] - theirs[i]) for i in range(n)))
            self.assertEqual([one["index"] for one in answer["results"]],
                             sorted(ranks, key=ranks.get, reverse=True))
        self.assertGreater(len({round(rank, 4) for rank in ranks.values()}), 30)  # or nothing is compared
        print(f"\n{pathlib.Path(model).stem}: at most {largest:.1e} from llama-server's ranks")
        self.assertLess(largest, CLOSE)

    def test_ranks_of_bert_are_llama_servers(self):
        self.compare(BERT)

    def test_ranks_by_a_template_are_llama_servers(self):
        self.compare(QWEN, "--ctx-size", "2048", "--batch-size", "2048", "--ubatch-size", "2048")

    def test_what_may_be_asked(self):
        server = self.start(Serving, "--name", "ranker", model=BERT)
        body = {"query": "a heron", "documents": ["river", {"text": "bread"}, "heron"]}
        _, whole = server.post("/v2/rerank", body)
        self.assertEqual(whole["model"], "ranker")
        self.assertNotIn("document", whole["results"][0])
        order = [one["index"] for one in whole["results"]]
        for path in ("/v1/rerank", "/rerank", "/v1/reranking", "/reranking"):
            _, answer = server.post(path, {**body, "top_n": 2, "return_documents": True})
            self.assertEqual([one["index"] for one in answer["results"]], order[:2])
            for one in answer["results"]:
                self.assertEqual(one["document"]["text"], ("river", "bread", "heron")[one["index"]])
        self.assertEqual(len(server.post("/rerank", {**body, "top_n": 99})[1]["results"]), 3)
        _, plain = server.post("/rerank", {"query": "a heron", "texts": ["river", "bread", "heron"]})
        self.assertEqual([one["index"] for one in plain], order)
        self.assertEqual(plain[0]["score"], whole["results"][0]["relevance_score"])
        for change, param in (({"query": ""}, "query"), ({"query": 5}, "query"), ({"query": None}, "query"),
                              ({"documents": []}, "documents"), ({"documents": "heron"}, "documents"),
                              ({"documents": ["a", 5]}, "documents"), ({"documents": [{"title": "a"}]}, "documents"),
                              ({"top_n": 0}, "top_n"), ({"return_documents": "yes"}, "return_documents")):
            self.refused(server, "/v1/rerank", {**body, **change}, param, param)

    def test_nothing_is_cut_and_the_limits_hold_at_their_full_size(self):
        server = self.start(Serving, "--name", "ranker", model=BERT)
        n_query = server.post("/tokenize", {"prompt": "heron", "add_special_tokens": False})[1]["count"]
        word = " river"
        n_word = server.post("/tokenize", {"prompt": word, "add_special_tokens": False})[1]["count"]
        # Query and document with what is around them: as many tokens as fit, and one more.
        for n in range((512 - n_query) // n_word - 4, 512):
            status, answer = server.post("/v1/rerank", {"query": "heron", "documents": [word * n]})
            if status != 200:
                break
            n_tokens = answer["usage"]["prompt_tokens"]
        self.assertLessEqual(n_tokens, 512)
        self.assertGreater(n_tokens, 512 - n_word)
        self.assertEqual((status, answer["error"]["param"]), (400, "documents[0]"))
        self.assertEqual(answer["error"]["code"], "context_length_exceeded")
        self.assertIn("at most 512", answer["error"]["message"])
        self.refused(server, "/v1/rerank", {"query": word * 600, "documents": ["a"]}, "query", "at most 512")
        self.refused(server, "/v1/rerank", {"query": word * 10_000_00, "documents": ["a"]}, "query", "512")
        self.refused(server, "/v1/rerank", {"query": "a", "documents": ["a", "b" * 20_000_000]}, "documents[1]", "512")
        self.refused(server, "/v1/rerank", {"query": "a", "documents": ["a"] * 2049}, "documents", "2048")
        status, answer = server.post("/v1/rerank", {"query": "heron", "documents": texts(2048, n_words_max=4)})
        self.assertEqual(status, 200, answer)
        self.assertEqual(sorted(one["index"] for one in answer["results"]), list(range(2048)))

    def test_all_pairs_together_have_a_limit(self):
        server = self.start(Serving, "--name", "ranker", "--embeddings", "8192", model=QWEN)
        n_word = server.post("/tokenize", {"prompt": " river", "add_special_tokens": False})[1]["count"]
        long = " river" * (7000 // n_word)
        self.refused(server, "/v1/rerank", {"query": long, "documents": ["a"] * 2048}, "documents", "fewer documents")
        self.refused(server, "/v1/rerank", {"query": "a", "documents": [long] * 620}, "documents", "fewer documents")

    def test_each_model_says_what_it_is_for(self):
        server = self.start(Serving, "--name", "needle", "--model", f"ranker={BERT}", "--embeddings", "128")
        self.refused(server, "/v1/rerank", {"query": "a", "documents": ["b"]}, "model", "does not rank texts")
        asked = {"model": "ranker"}
        self.refused(server, "/v1/embeddings", {**asked, "input": "a"}, "model", "/v1/rerank")
        self.refused(server, "/v1/chat/completions",
                     {**asked, "messages": [{"role": "user", "content": "a"}]}, "model", "/v1/rerank")
        self.refused(server, "/v1/completions", {**asked, "prompt": "a", "stream": True}, "model", "/v1/rerank")
        self.assertEqual(server.post("/v1/rerank", {**asked, "query": "a", "documents": ["b"]})[0], 200)
        _, models, _ = server.ask("GET", "/v1/models")
        self.assertEqual([model["max_model_len"] for model in models["data"]][1], 128)
        self.assertEqual(server.post("/tokenize", {**asked, "prompt": "heron"})[1]["max_model_len"], 128)
        self.assertEqual(server.ask("GET", "/slots?model=ranker")[:2], (200, []))
        self.assertEqual(server.ask("GET", "/props?model=ranker")[1]["default_generation_settings"]["n_ctx"], 128)
        self.assertEqual(server.post("/api/show", {"model": "ranker"})[1]["capabilities"], [])


class Embeddings(Case):
    def test_vectors_of_a_model_that_writes_are_llama_servers(self):
        ours = self.start(Serving, "--embeddings", "512", "--ctx", "1024")
        stock = self.start(LlamaServing, "--embeddings", "--pooling", "mean", "--ctx-size", "2048",
                           "--batch-size", "512", "--ubatch-size", "512", "--parallel", "1")
        largest = 0
        for n in (1, 8, 64):
            body = {"input": texts(n, seed=n), "model": "needle"}
            vectors = [one["embedding"] for one in ours.post("/v1/embeddings", {**body, "model": None})[1]["data"]]
            theirs = [one["embedding"] for one in stock.post("/v1/embeddings", body)[1]["data"]]
            largest = max(largest, *(abs(a - b) for v, t in zip(vectors, theirs, strict=True)
                                     for a, b in zip(v, t, strict=True)))
        print(f"\nneedle-4m: at most {largest:.1e} from llama-server's vectors")
        self.assertLess(largest, CLOSE)

    def test_short_vectors_are_the_first_numbers_at_length_one(self):
        server = self.start(Serving, "--embeddings", "128", "--ctx", "1024")
        whole = server.post("/v1/embeddings", {"input": "heron"})[1]["data"][0]["embedding"]
        for n in (1, 100, len(whole)):
            status, answer = server.post("/v1/embeddings", {"input": "heron", "dimensions": n})
            self.assertEqual(status, 200, answer)
            short = answer["data"][0]["embedding"]
            self.assertEqual(len(short), n)
            length = math.hypot(*whole[:n])
            for a, b in zip(short, whole):
                self.assertAlmostEqual(a, b / length, places=5)
        for n in (0, -1, len(whole) + 1, "8"):
            self.refused(server, "/v1/embeddings", {"input": "heron", "dimensions": n}, "dimensions", "dimensions")
        short = server.post("/api/embed", {"input": "heron", "dimensions": 8})[1]["embeddings"][0]
        self.assertEqual(len(short), 8)

    def test_inputs_of_one_and_of_several_requests_share_batches(self):
        server = self.start(Serving, "--embeddings", "512", "--ctx", "1024")
        alone = server.post("/v1/embeddings", {"input": "heron"})[1]["data"][0]["embedding"]
        self.assertEqual(server.post("/v1/embeddings", {"input": ["heron"] * 64})[0], 200)
        self.assertLessEqual(self.counter(server, "read_batches_total"), 1 + 64 / 8)
        n_batches, n_texts = (self.counter(server, f"read_{name}_total") for name in ("batches", "texts"))
        self.assertEqual(n_texts, 65)
        long = self.read_long(server, 384, 30)
        answers = []
        ask = [threading.Thread(target=lambda: answers.append(server.post("/v1/embeddings", {"input": "heron"})))
               for _ in range(8)]
        for thread in ask:
            thread.start()
        for thread in ask:
            thread.join()
        # They did not wait for the long request.
        self.assertGreater(self.counter(server, "read_texts_waiting"), 0)
        long.join()
        for status, answer in answers:
            self.assertEqual(status, 200)
            for a, b in zip(answer["data"][0]["embedding"], alone):
                self.assertAlmostEqual(a, b, delta=CLOSE)
        n_batches = self.counter(server, "read_batches_total") - n_batches
        n_texts = self.counter(server, "read_texts_total") - n_texts
        self.assertEqual(n_texts, 384 + 8)
        self.assertLess(n_batches, n_texts / 4)

    def test_tokens_of_a_request_have_a_limit(self):
        server = self.start(Serving, "--embeddings", "4096", "--ctx", "1024")
        self.refused(server, "/v1/embeddings", {"input": [[5] * 2100] * 2000}, "input", "several requests")
        self.refused(server, "/v1/embeddings", {"input": ["a"] * 2049}, "input", "2048")
        self.refused(server, "/v1/embeddings", {"input": [[5] * 4097]}, "input", "at most 4096")
        self.refused(server, "/v1/embeddings", {"input": [[999_999]]}, "input", "does not know")

    def test_tokens_are_charged_to_the_key(self):
        keys = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "keys.json"
        keys.write_text('{"keys": [{"key": "k", "name": "ann", "tokens_per_minute": 50}]}')
        keys.chmod(0o600)
        server = self.start(Serving, "--keys", str(keys), "--name", "ranker", model=BERT)
        key = {"Authorization": "Bearer k"}
        body = {"query": "heron", "documents": texts(8)}
        self.assertEqual(server.post("/v1/rerank", body)[0], 401)
        self.assertEqual(server.post("/v1/rerank", body, key)[0], 200)
        self.assertEqual(server.post("/v1/rerank", body, key)[0], 429)


class Fairness(Case):
    def test_a_long_request_does_not_hold_up_chats(self):
        server = self.start(Serving, "--embeddings", "512", "--ctx", "2048")
        chat = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 32, "ignore_eos": True}
        def seconds():
            begun = time.monotonic()
            self.assertEqual(server.post("/v1/chat/completions", chat)[0], 200)
            return time.monotonic() - begun
        alone = min(seconds() for _ in range(3))
        long = self.read_long(server, 128, 160)
        beside = min(seconds() for _ in range(2))
        still_reads = self.counter(server, "read_texts_waiting") > 0
        print(f"\na chat takes {alone * 1e3:.0f} ms alone and {beside * 1e3:.0f} ms beside 128 texts")
        long.join()
        self.assertTrue(still_reads)


if __name__ == "__main__":
    unittest.main()
