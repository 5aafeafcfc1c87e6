"""What HTTP costs: tokens per second and time to the first token, over HTTP and of the engine alone.

    overhead.py BUILD MODEL SMALL_MODEL [--kv f16] [--repeats 3] [--tokens 128]

BUILD is the build folder with `slipstream` and `engine_benchmark` in bin/. Both sides do the same work in
turns, on two threads, with as many cells and kept prefixes (a full cache costs attention more) and with
log-probabilities, by which tokens without text are counted: 8 streams that generate with MODEL, then 1,000
prompts of 64 tokens one after the other with SMALL_MODEL, whose own time hides less of what is added.
"""

import argparse
import http.client
import json
import pathlib
import random
import re
import statistics
import subprocess
import threading
import time

STREAMS = 8
PROMPT = 64


def engine(arguments, model, scenario, *options):
    done = subprocess.run([arguments.build / "bin/engine_benchmark", model, arguments.kv, scenario,
                           "--threads", "2", "--as-server", "--sequences", str(STREAMS),
                           *map(str, options)],
                          capture_output=True, text=True, check=True)
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", done.stdout)}


class Server:
    def __init__(self, arguments, model):
        self.process = subprocess.Popen(
            [arguments.build / "bin/slipstream", "serve", model, "--port", "0", "--threads",
             "2", "--kv", arguments.kv, "--ctx", "4096", "--parallel", str(STREAMS)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"event=serve\.ready .*:(\d+)", line):
                self.port = int(found[1])
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ask(self, connection, seed, n_prompt, n_tokens):
        """The times at which tokens came: log-probabilities are told for each, text is not."""
        rng = random.Random(seed)
        connection.request("POST", "/v1/completions", json.dumps({
            "prompt": [100 + rng.randrange(100) for _ in range(n_prompt)], "max_tokens": n_tokens,
            "temperature": 0, "ignore_eos": True, "stream": True, "logprobs": 0}))
        return [time.monotonic() for line in connection.getresponse()
                if line.startswith(b"data: {") and b'"tokens":["' in line]

    def aggregate(self, n_tokens):
        times = [[] for _ in range(STREAMS)]

        def run(i):
            times[i] = self.ask(http.client.HTTPConnection("127.0.0.1", self.port), i, 1, n_tokens)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(STREAMS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # The window in which every one of them generates.
        started, ended = max(t[0] for t in times), min(t[-1] for t in times)
        return sum(started < t <= ended for some in times for t in some) / (ended - started)

    def latency(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        latencies = []
        for seed in range(1000):
            asked = time.monotonic()
            latencies.append(self.ask(connection, seed, PROMPT, 1)[0] - asked)
        latencies.sort()
        return latencies[500] * 1e3, latencies[990] * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("model")
    parser.add_argument("small_model")
    parser.add_argument("--kv", default="f16")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128)
    arguments = parser.parse_args()
    alone, served, added = [], [], []
    for repeat in range(arguments.repeats):
        alone.append(engine(arguments, arguments.model, "aggregate", "--tokens", arguments.tokens,
                            "--depth", 1)["tokens_per_s"])
        with Server(arguments, arguments.model) as server:
            served.append(server.aggregate(arguments.tokens))
        inside = engine(arguments, arguments.small_model, "latency", "--depth", PROMPT)
        with Server(arguments, arguments.small_model) as server:
            p50, p99 = server.latency()
        added.append((p50 - inside["p50"], p99 - inside["p99"]))
        print(f"{repeat}: engine {alone[-1]:.1f} tokens/s, HTTP {served[-1]:.1f}; first token added "
              f"p50 {added[-1][0]:.2f} ms, p99 {added[-1][1]:.2f} ms", flush=True)
    print(f"HTTP / engine: {statistics.median(served) / statistics.median(alone):.3f}; added to the "
          f"first token: p50 {statistics.median(a[0] for a in added):.2f} ms, "
          f"p99 {statistics.median(a[1] for a in added):.2f} ms")


if __name__ == "__main__":
    main()
