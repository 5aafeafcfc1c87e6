"""What engine_benchmark's `stall` measures, of a packaged llama-server: the time between the tokens of
four streams, alone and while a long prompt is computed.

    server_stall.py MODEL [--depth 16384] [--threads 2] [--seconds-max 600]
"""

import argparse
import http.client
import json
import random
import socket
import subprocess
import threading
import time

STREAMS = 4


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Stream(threading.Thread):
    """One streamed completion; `times` are those at which its tokens came."""

    def __init__(self, port, n_prompt, n_tokens, seed):
        super().__init__(daemon=True)
        self.port, self.n_tokens = port, n_tokens
        self.times = []
        random_tokens = random.Random(seed)
        self.prompt = [100 + random_tokens.randrange(100) for _ in range(n_prompt)]
        self.start()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/completion", json.dumps(
            {"prompt": self.prompt, "n_predict": self.n_tokens, "stream": True, "ignore_eos": True,
             "temperature": 0}), {"Content-Type": "application/json"})
        for line in connection.getresponse():
            if line.startswith(b"data: ") and not json.loads(line[6:]).get("stop"):
                self.times.append(time.monotonic())

    def wait_tokens(self, n, seconds_max):
        end = time.monotonic() + seconds_max
        while len(self.times) < n and time.monotonic() < end:
            time.sleep(0.01)
        return len(self.times) >= n

    def gaps(self, first, last):
        pairs = zip(self.times, self.times[1:])
        return [after - before for before, after in pairs if first < after <= last]


def show(what, gaps):
    gaps = sorted(gaps)
    at = {name: gaps[int(share * (len(gaps) - 1))] * 1e3
          for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1))}
    print(what, f"gaps={len(gaps)}", *(f"{name}={value:.0f} ms" for name, value in at.items()))


def measure(port, depth, seconds_max):
    streams = [Stream(port, 16, 1900, seed) for seed in range(STREAMS)]
    for stream in streams:
        stream.wait_tokens(70, seconds_max)
    asked = time.monotonic()
    prompt = Stream(port, depth, 2, 99)
    done = prompt.wait_tokens(1, seconds_max)
    ended = time.monotonic()
    # A stream that got nothing at all has one gap, which is not over yet.
    beside = [gap for stream in streams
              for gap in stream.gaps(asked, ended) or [ended - stream.times[-1]]]
    show("undisturbed:", [gap for stream in streams for gap in stream.gaps(stream.times[5], asked)])
    show("beside the prompt:", beside)
    print(f"prompt of {depth}: {'first token' if done else 'given up'} after {ended - asked:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--depth", type=int, default=16384)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds-max", type=float, default=600)
    options = parser.parse_args()
    port = free_port()
    server = subprocess.Popen(
        ["llama-server", "-m", options.model, "--port", str(port), "-t", str(options.threads),
         "-np", str(STREAMS + 1), "--kv-unified", "-c", str(options.depth + 8192), "-fa", "on"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    break
            except OSError:
                pass
            if server.poll() is not None:
                raise SystemExit("llama-server ended")
            time.sleep(0.2)
        measure(port, options.depth, options.seconds_max)
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
