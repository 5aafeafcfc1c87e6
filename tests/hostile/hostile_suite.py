"""The hostile suite: every kind of request at every size up to the limit, against the real process.

    hostile_suite.py [--model GGUF | --n-vocab N] [--limit BYTES] [--kinds WORDS] [--table FILE] [--no-bounds]
                     [--seconds N]

1. Each kind alone, on a server of its own, in sizes that double from 1 KB to the limit of a body: time, CPU time and
   peak memory of each request. Nothing may grow faster than size^1.2. What is accepted may not take more than 2 s of
   one core, its computing included, and no request more than 16 bytes of memory for each byte of its body.
2. Connections: pipelined, slow, half closed and abandoned ones, up to 1,024 at a time.
3. All of it at once while 8 good clients stream: they must lose nothing, and the gaps between their tokens may at
   the 99th percentile be twice those without the rest.

--no-bounds leaves out those on time and memory: a sanitizer takes both. --n-vocab makes a model with so many tokens.
Environment: SLIPSTREAM_BIN, the program; MAKE_MODEL, the program that makes fixtures.
"""

import argparse
import contextlib
import http.client
import json
import math
import multiprocessing
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "server"))

from kinds import CHAT, KINDS, USER, dumped  # noqa: E402
from serving import NEEDLE_MODEL, Serving  # noqa: E402

BODY_BYTES_MAX = 32 << 20
EXPONENT_MAX = 1.2
ACCEPTED_CPU_MAX = 2.0
BYTES_PER_BYTE_MAX = 16
# The text of the last one, which may be there until its connection has ended, and the KV cells of what was accepted.
KEPT_BYTES_MAX = BODY_BYTES_MAX + (32 << 20)
# Shorter ones are noise, and so is the memory of small bodies.
SECONDS_MEASURED_MIN = 0.03
MEMORY_MEASURED_MIN = 1 << 20
TICKS_PER_SECOND = 100
GAP_RATIO_MAX = 2.0
STREAM_TOKENS = 128


class Watched(Serving):
    """A server whose time and memory are looked at from outside."""

    def __init__(self, model, *arguments):
        # A small index, and room for attachments.
        self.folder = tempfile.TemporaryDirectory(prefix="slipstream-hostile-")
        root = pathlib.Path(self.folder.name).resolve()
        (root / "docs").mkdir()
        for i in range(50):
            (root / "docs" / f"{i}.txt").write_text("".join(f"Page {i} has w{i * j} words.\n" for j in range(40)))
        super().__init__("--ctx", "4096", "--parallel", "16", "--mcp", "--mcp-project", str(root / "docs"), "--index",
                         str(root / "index.db"), "--attachments", str(root / "attached"), *arguments, model=model)

    def stop(self, *how):
        status = super().stop(*how)
        self.folder.cleanup()
        return status

    def proc(self, name):
        return pathlib.Path(f"/proc/{self.process.pid}/{name}")

    def cpu_seconds(self):
        fields = self.proc("stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def measure(self, route, body):
        self.forget_peak()
        before, cpu = self.memory("VmRSS"), self.cpu_seconds()
        started = time.monotonic()
        status, _, headers = self.ask("POST", route, body)
        seconds = time.monotonic() - started
        return {"status": status, "seconds": seconds, "cpu": self.cpu_seconds() - cpu, "bytes": len(body),
                "memory": self.memory("VmHWM") - before, "retry": "Retry-After" in headers}


def sizes_up_to(limit):
    sizes = []
    size = 1 << 10
    while size < limit:
        sizes.append(size)
        size *= 2
    return [*sizes, limit]


def body_of(make, size, limit):
    """As `size` says, but never past the limit: what escapes or names add is taken off."""
    body = make(size)
    while len(body) > limit:
        size = int(size * 0.98 * limit / len(body))
        body = make(size)
    return body


def exponent(results):
    """By how much time grows with size, from the largest sizes; None where nothing takes long enough to tell.

    What is accepted and what is refused are looked at apart: a refusal is another way through the server.
    """
    slopes = []
    for is_accepted in (True, False):
        points = [(math.log(r["bytes"]), math.log(r["seconds"])) for r in results
                  if r["seconds"] >= SECONDS_MEASURED_MIN and (r["status"] < 300) == is_accepted][-4:]
        if len(points) >= 3:
            slopes.append(statistics.linear_regression(*zip(*points)).slope)
    return max(slopes, default=None)


def measure_kind(name, model, limit, n_tries):
    route, make = KINDS[name]
    server = Watched(model, *(("--context-overflow", "rescue") if name.startswith("rescue") else ()))
    server.post(CHAT, {"messages": [USER], "max_tokens": 1})
    baseline = server.memory("VmRSS")
    results = []
    for size in sizes_up_to(limit):
        body = body_of(make, size, limit)
        tries = [server.measure(route, body) for _ in range(n_tries)]
        best = min(tries, key=lambda r: r["seconds"])
        best["memory"] = max(r["memory"] for r in tries)
        best["cpu"] = min(r["cpu"] for r in tries)
        results.append(best)
    results[-1]["kept"] = server.memory("VmRSS") - baseline
    assert server.stop() == 0, f"{name}: the server did not end well"
    return results


def complaints_about(name, results, checks_bounds):
    found = []
    grows = exponent(results)
    if checks_bounds and grows is not None and grows > EXPONENT_MAX:
        found.append(f"{name}: time grows with size^{grows:.2f}")
    for r in results:
        where = f"{name}, {r['bytes']} bytes"
        if not (200 <= r["status"] < 300 or 400 <= r["status"] < 500 or (r["status"] == 503 and r["retry"])):
            found.append(f"{where}: {r['status']}")
        if checks_bounds and r["status"] < 300 and r["cpu"] > ACCEPTED_CPU_MAX:
            found.append(f"{where}: accepted, and took {r['cpu']:.2f} s of CPU")
        if checks_bounds and r["bytes"] >= MEMORY_MEASURED_MIN and r["memory"] > BYTES_PER_BYTE_MAX * r["bytes"]:
            found.append(f"{where}: {r['memory'] / r['bytes']:.1f} bytes of memory per byte")
    if checks_bounds and results[-1]["kept"] > KEPT_BYTES_MAX:
        found.append(f"{name}: {results[-1]['kept'] >> 20} MB are kept")
    return found


def row(name, results):
    at = {r["bytes"].bit_length() - 1: r for r in results}
    last = results[-1]

    def ms(bits):
        near = min(at, key=lambda b: abs(b - bits))
        return f"{1000 * at[near]['seconds']:.0f}"

    grows = exponent(results)
    per_byte = max((r["memory"] / r["bytes"] for r in results if r["bytes"] >= MEMORY_MEASURED_MIN), default=0)
    accepted = max((r["bytes"] for r in results if r["status"] < 300), default=0)
    return (f"| {name} | {accepted / 1024:.0f} KB | {last['status']} | {ms(10)} | {ms(16)} | {ms(20)} | "
            f"{1000 * last['seconds']:.0f} | {max(r['cpu'] for r in results):.2f} | "
            f"{'-' if grows is None else f'{grows:.2f}'} | {per_byte:.1f} | "
            f"{max(r['memory'] for r in results) >> 20} MB | {last['kept'] >> 20} MB |")


HEAD = ("| kind | accepted up to | at the limit | 1 KB, ms | 64 KB | 1 MB | limit | CPU, s | exponent | memory per byte | at most | kept |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|")


# Connections

def request_bytes(body, length=None):
    return (f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n"
            ).encode() + body


SMALL = dumped({"messages": [USER], "max_tokens": 1})


def abandoned(sockets):
    for client in sockets:
        client.sendall(request_bytes(SMALL))
        client.close()


def half_closed(sockets):
    for client in sockets:
        client.sendall(request_bytes(SMALL))
        client.shutdown(socket.SHUT_WR)


def pipelined(sockets):
    for client in sockets:
        client.sendall(request_bytes(SMALL) * 8)


def slow_header(sockets):
    for client in sockets:
        client.sendall(b"POST / HTTP/1.1\r\nX: ")


def slow_body(sockets):
    for client in sockets:
        client.sendall(request_bytes(b"{", BODY_BYTES_MAX))


WAYS = (abandoned, half_closed, pipelined, slow_header, slow_body)


def seconds_of_health(server):
    started = time.monotonic()
    assert server.ask("GET", "/health")[0] == 200
    return time.monotonic() - started


def seconds_until_answered(server):
    """A full queue may refuse a good request for a moment, not for long."""
    started = time.monotonic()
    while (status := server.post(CHAT, {"messages": [USER], "max_tokens": 1})[0]) in (429, 503):
        assert time.monotonic() - started < 60, "abandoned requests fill the queue for a minute"
        time.sleep(0.05)
    assert status == 200, status
    return time.monotonic() - started


def measure_connections(model, checks_bounds):
    """Rows of a table, and what is wrong."""
    rows, found = [], []
    for way in WAYS:
        server = Watched(model)
        server.post(CHAT, {"messages": [USER], "max_tokens": 1})
        baseline = server.memory("VmRSS")
        times = []
        for n in (1, 16, 256, 1024):
            sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(n)]
            with contextlib.suppress(ConnectionError):
                way(sockets)
            times.append(max(seconds_of_health(server) for _ in range(5)))
            for client in sockets:
                client.close()
        waited = seconds_until_answered(server)
        rows.append(f"| {way.__name__.replace('_', ' ')} | " + " | ".join(f"{1000 * t:.0f}" for t in times)
                    + f" | {1000 * waited:.0f} | {(server.memory('VmRSS') - baseline) / (1 << 20):.0f} |")
        if checks_bounds and times[-1] > 2:
            found.append(f"{way.__name__}: /health takes {times[-1]:.1f} s")
        if server.stop() != 0:
            found.append(f"{way.__name__}: the server did not end well")
    return rows, found


# Good clients beside

def attack(port, limit, end, seed):
    """Requests of all kinds and sizes, one after the other, until `end`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(19)  # what it costs the client itself is not the server's
    rng = random.Random(seed)
    bodies = {}
    while time.monotonic() < end:
        name = rng.choice(list(KINDS))
        size = rng.choice(sizes_up_to(limit))
        route, make = KINDS[name]
        if (name, size) not in bodies:
            bodies.clear()  # one at a time: making them takes memory, too
            bodies[name, size] = body_of(make, size, limit)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("POST", route, bodies[name, size])
            if rng.random() < 0.8:
                connection.getresponse().read()
        connection.close()


def stream(port, seconds):
    return subprocess.Popen([sys.executable, HERE / "good_clients.py", str(port), str(seconds), str(STREAM_TOKENS)],
                            stdout=subprocess.PIPE, text=True)


def percentile(gaps, share):
    return sorted(gaps)[int(share * (len(gaps) - 1))]


def measure_good_clients(model, limit, seconds, checks_bounds):
    server = Watched(model)
    alone = json.loads(stream(server.port, seconds).communicate()[0])
    attackers = [multiprocessing.Process(target=attack, args=(server.port, limit, time.monotonic() + seconds + 1, seed))
                 for seed in range(2)]
    streams = stream(server.port, seconds)
    for attacker in attackers:
        attacker.start()
    beside = json.loads(streams.communicate()[0])
    for attacker in attackers:
        attacker.join()
    rows = []
    for name, seen in (("alone", alone), ("beside hostile ones", beside)):
        rows.append(f"| {name} | {seen['n_whole']} | {len(seen['failures'])} | "
                    f"{percentile(seen['gaps'], 0.5):.1f} | {percentile(seen['gaps'], 0.99):.1f} | {max(seen['gaps']):.0f} |")
    found = [f"a good client: {failure}" for failure in alone["failures"] + beside["failures"]]
    ratio = percentile(beside["gaps"], 0.99) / percentile(alone["gaps"], 0.99)
    if checks_bounds and ratio > GAP_RATIO_MAX:
        found.append(f"good clients wait {ratio:.1f} times as long between tokens at the 99th percentile")
    if server.stop() != 0:
        found.append("the server did not end well")
    return rows, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=NEEDLE_MODEL)
    parser.add_argument("--n-vocab", type=int)
    parser.add_argument("--limit", type=int, default=BODY_BYTES_MAX)
    parser.add_argument("--kinds", default="", help="only those with this in their name")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--no-bounds", action="store_true")
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.n_vocab:
            arguments.model = f"{folder}/model.gguf"
            subprocess.run([os.environ["MAKE_MODEL"], "qwen3", arguments.model, "--vocabulary", NEEDLE_MODEL,
                            "--n-vocab", str(arguments.n_vocab)], check=True, stdout=subprocess.DEVNULL)
        return run(arguments)


def run(arguments):
    checks_bounds = not arguments.no_bounds
    lines, found = [HEAD], []

    def say(line):
        lines.append(line)
        print(line, flush=True)

    print(HEAD)
    for name in KINDS:
        if arguments.kinds not in name:
            continue
        # The fastest of three counts; where nobody looks at time, one will do.
        results = measure_kind(name, arguments.model, arguments.limit, 3 if checks_bounds else 1)
        found += complaints_about(name, results, checks_bounds)
        say(row(name, results))
    if not arguments.kinds:
        rows, wrong = measure_connections(arguments.model, checks_bounds)
        found += wrong
        say("\n| connections: /health, ms, beside | 1 | 16 | 256 | 1,024 | then a good answer after, ms | memory kept, MB |\n|---|---|---|---|---|---|---|")
        for line in rows:
            say(line)
        rows, wrong = measure_good_clients(arguments.model, arguments.limit, arguments.seconds, checks_bounds)
        found += wrong
        say("\n| good clients | answers | failures | gap p50, ms | p99 | largest |\n|---|---|---|---|---|---|")
        for line in rows:
            say(line)
    if arguments.table:
        arguments.table.write_text("\n".join(lines) + "\n")
    for complaint in found:
        print(f"WRONG: {complaint}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
