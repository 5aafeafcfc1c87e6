#!/usr/bin/env python3
"""Texts a second: `slipstream serve` against packaged llama-server with the same model, in turns.

    reading_speed.py MODEL [--threads 2] [--rounds 5] [--serve=--prompts=off]
    reading_speed.py MODEL --chat CHAT_MODEL      how much a chat and such requests cost each other

MODEL makes vectors, or ranks (then every text is a document). llama-server runs twice: as it is by default, and
with 32 slots and batches of 2,048 tokens, which is the best that was found for it. Texts are English sentences
of a fixed seed. Each round asks every server the same, in turns; medians of rounds, and the largest difference
of a number from llama-server's. Environment: SLIPSTREAM_BIN, the built program.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

TEXT = (pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "haystack.txt").read_text()
WORDS = re.findall(r"[A-Za-z]+[,.]?", TEXT)
# (name, texts of a request, requests at a time, words of a text)
KINDS = (("1 short text", 1, 1, (6, 14)), ("64 short texts", 64, 1, (6, 14)),
         ("8 requests of 1 short text", 1, 8, (6, 14)), ("8 requests of 16 short texts", 16, 8, (6, 14)),
         ("1 long text", 1, 1, (250, 330)), ("32 long texts", 32, 1, (250, 330)),
         ("64 mixed texts", 64, 1, (2, 330)))


class Server:
    def __init__(self, name, command, ready):
        self.name = name
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while not (found := re.search(ready, pathlib.Path(self.log.name).read_text())):
            assert self.process.poll() is None and time.monotonic() < end, pathlib.Path(self.log.name).read_text()
            time.sleep(0.05)
        self.port = int(found[1])

    def post(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        assert response.status == 200, answer
        return answer

    def stop(self):
        self.process.terminate()
        self.process.wait()


def some_texts(rng, n, words):
    texts = []
    for _ in range(n):
        begin = rng.randrange(len(WORDS) - words[1])
        texts.append(" ".join(WORDS[begin:begin + rng.randint(*words)]))
    return texts


def body_of(texts, ranks):
    if ranks:
        return "/v1/rerank", {"query": "what came today", "documents": texts}
    return "/v1/embeddings", {"input": texts}


def numbers_of(answer, ranks):
    if ranks:
        return [[one["relevance_score"]] for one in sorted(answer["results"], key=lambda one: one["index"])]
    return [one["embedding"] for one in answer["data"]]


def measure(server, requests, n_at_a_time, ranks):
    """(texts a second, tokens, numbers)"""
    with concurrent.futures.ThreadPoolExecutor(n_at_a_time) as pool:
        begun = time.monotonic()
        raw = list(pool.map(lambda texts: server.post(*body_of(texts, ranks)), requests))
        seconds = time.monotonic() - begun
    answers = [json.loads(text) for text in raw]
    return (sum(map(len, requests)) / seconds, sum(answer["usage"]["prompt_tokens"] for answer in answers),
            [row for answer in answers for row in numbers_of(answer, ranks)])


def chat_beside(arguments):
    """Tokens a second of a chat, and texts a second, each alone and both at a time."""
    server = Server("slipstream", [os.environ["SLIPSTREAM_BIN"], "serve", arguments.chat, "--name", "chat", "--model",
                                   f"reader={arguments.model}", "--pin", "reader", "--ctx", "4096", "--port", "0",
                                   "--threads", arguments.threads, *arguments.serve],
                    r"event=serve\.ready .*:(\d+)\n")
    texts = some_texts(random.Random(1), 256, (100, 200))
    n_tokens = 96

    def chat():
        begun = time.monotonic()
        server.post("/v1/completions", {"model": "chat", "prompt": "hello", "max_tokens": n_tokens, "ignore_eos": True})
        return n_tokens / (time.monotonic() - begun)

    def read():
        path, body = body_of(texts, arguments.ranks)
        begun = time.monotonic()
        server.post(path, {**body, "model": "reader"})
        return len(texts) / (time.monotonic() - begun)

    def both(work, other):
        """The rate of one while the other goes on."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            goes_on = True

            def keep_on():
                while goes_on:
                    other()
            beside = pool.submit(keep_on)
            time.sleep(0.3)
            rate = work()
            goes_on = False
            beside.result()
        return rate

    rates = {"chat alone": [], "chat beside": [], "texts alone": [], "texts beside": []}
    for round_number in range(arguments.rounds + 1):
        of_round = {"chat alone": chat(), "texts alone": read(), "chat beside": both(chat, read),
                    "texts beside": both(read, chat)}
        for name, rate in of_round.items():
            if round_number > 0:
                rates[name].append(rate)
    for name, all_rates in rates.items():
        print(f"{name}: {statistics.median(all_rates):.1f} a second")
    server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", default=[], action="append", help="a flag for slipstream serve")
    parser.add_argument("--ranks", action="store_true", help="the model ranks texts")
    parser.add_argument("--chat", metavar="CHAT_MODEL")
    arguments = parser.parse_args()
    if arguments.chat:
        chat_beside(arguments)
        return
    stock = ["llama-server", "-m", arguments.model, "--port", "0", "--offline", "--threads", arguments.threads,
             "--reranking" if arguments.ranks else "--embeddings"]
    listening = r"listening on http://.*:(\d+)\n"
    servers = [
        Server("slipstream", [os.environ["SLIPSTREAM_BIN"], "serve", arguments.model, "--port", "0", "--threads",
                              arguments.threads, *arguments.serve], r"event=serve\.ready .*:(\d+)\n"),
        Server("llama-server", stock, listening),
        Server("llama-server, 32 slots", [*stock, "--parallel", "32", "--kv-unified", "--ctx-size", "16384",
                                          "--batch-size", "2048", "--ubatch-size", "2048"], listening)]
    names = [server.name for server in servers]
    print(f"| {pathlib.Path(arguments.model).stem} | tokens of a text | {' | '.join(names)} | ratio |")
    print("|---" * (len(servers) + 3) + "|")
    largest = 0
    for kind, n_texts, n_at_a_time, words in KINDS:
        rates = {name: [] for name in names}
        for round_number in range(arguments.rounds + 1):
            rng = random.Random(round_number)
            n_requests = max(n_at_a_time * 4, 16 if words[1] < 20 and n_texts == 1 else 2)
            requests = [some_texts(rng, n_texts, words) for _ in range(n_requests)]
            first = None
            for i in range(len(servers)):
                server = servers[(round_number + i) % len(servers)]
                rate, n_tokens, rows = measure(server, requests, n_at_a_time, arguments.ranks)
                if round_number > 0:  # the first warms up
                    rates[server.name].append(rate)
                first = first or rows
                largest = max(largest, *(abs(a - b) for x, y in zip(first, rows, strict=True)
                                         for a, b in zip(x, y, strict=True)))
        medians = [statistics.median(rates[name]) for name in names]
        per_text = n_tokens / (n_requests * n_texts)
        print(f"| {kind} | {per_text:.0f} | {' | '.join(f'{rate:.1f}' for rate in medians)} | "
              f"{medians[0] / medians[1]:.2f}x / {medians[0] / medians[2]:.2f}x |", flush=True)
    print(f"\nlargest difference of a number: {largest:.1e}")
    for server in servers:
        server.stop()


if __name__ == "__main__":
    main()
