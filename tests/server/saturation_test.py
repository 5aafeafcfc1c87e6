"""The threads of HTTP answer while the workers are full of the most expensive requests that are accepted.

Environment: SLIPSTREAM_BIN, the built program.
"""

import http.client
import json
import multiprocessing
import os
import socket
import statistics
import threading
import time
import unittest

from serving import Serving

BODY_BYTES_MAX = 32 << 20
BODIES_BYTES_MAX = 256 << 20  # of all connections
TEXT_BYTES_MAX = 16 << 20
SECONDS = 8
CHAT = {"messages": [{"role": "user", "content": "Who is amber?"}], "max_tokens": 4}


def long_text(n_bytes=TEXT_BYTES_MAX):
    """To be split into tokens."""
    words = "We met amber lantern today, and 1234 others (see page 17). "
    return json.dumps({"prompt": words * (n_bytes // len(words))})


def many_values():
    """Nearly as many as JSON may have."""
    return '{"prompt":"x","max_tokens":1,"unknown":[' + "[],{}," * 3_900_000 + "0]}"


def many_names():
    """Members of one object."""
    names = ",".join(f'"k{i:07}":0' for i in range((BODY_BYTES_MAX - 1000) // 13))
    return '{"messages":[{"role":"user","content":"x"}],"max_tokens":1,"unknown":{%s}}' % names


def many_messages():
    """For the template."""
    messages = [{"role": ("user", "assistant")[i % 2], "content": "x"} for i in range(200_000)]
    return json.dumps({"messages": messages, "max_tokens": 1})


EXPENSIVE = (("/tokenize", long_text), ("/v1/completions", many_values), ("/v1/chat/completions", many_names),
             ("/v1/chat/completions", many_messages))


def keep_asking(port, path, make_body, is_over, n_answers):
    """A client of its own process: what it costs itself is not the server's."""
    os.nice(19)
    body = make_body().encode()
    assert len(body) <= BODY_BYTES_MAX, len(body)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    while not is_over.is_set():
        try:
            connection.request("POST", path, body)
            response = connection.getresponse()
            response.read()
        except OSError:  # refused while it was sending
            connection.close()
            continue
        with n_answers.get_lock():
            n_answers.value += 1


class Saturation(unittest.TestCase):
    def setUp(self):
        self.server = Serving("--ctx", "4096")
        self.addCleanup(lambda: self.assertEqual(self.server.stop(), 0))

    def saturate(self):
        """Two clients with each expensive request."""
        is_over = multiprocessing.Event()
        n_answers = multiprocessing.Value("i", 0)
        clients = [multiprocessing.Process(target=keep_asking, daemon=True,
                                           args=(self.server.port, path, make, is_over, n_answers))
                   for path, make in EXPENSIVE for _ in range(2)]
        for client in clients:
            client.start()

        def end():
            is_over.set()
            for client in clients:
                client.join(timeout=120)
        self.addCleanup(end)
        # A request that costs nothing waits: the workers are busy.
        end = time.monotonic() + 60
        while True:
            started = time.monotonic()
            self.server.post("/tokenize", {"prompt": "x"})
            if time.monotonic() - started > 0.2:
                return n_answers
            self.assertLess(time.monotonic(), end, "the workers are never busy")

    def times(self, path, seconds):
        """Of requests over a connection that stays, and over new ones."""
        kept = self.server.connection(timeout_s=30)
        taken = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for connection in (kept, self.server.connection(timeout_s=30)):
                started = time.perf_counter()
                connection.request("GET", path)
                response = connection.getresponse()
                response.read()
                taken.append(time.perf_counter() - started)
                self.assertEqual(response.status, 200)
                if connection is not kept:
                    connection.close()
            time.sleep(0.01)
        kept.close()
        return sorted(taken)

    def test_health_metrics_and_files_are_answered(self):
        n_answers = self.saturate()
        for path in ("/health", "/metrics", "/v1/models", "/"):
            n_before = n_answers.value
            taken = self.times(path, SECONDS)
            print(f"{path}: median {statistics.median(taken) * 1e3:.1f} ms, "
                  f"99 % {taken[len(taken) * 99 // 100] * 1e3:.1f} ms, longest {taken[-1] * 1e3:.1f} ms of "
                  f"{len(taken)}; {n_answers.value - n_before} expensive requests meanwhile", flush=True)
            self.assertGreater(len(taken), 100)
            self.assertLess(taken[-1], 0.05, path)

    def test_an_answer_that_streams_goes_on(self):
        """Its events do not wait for a worker: seconds would lie between them."""
        connection = self.server.connection()
        connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": "Once", "max_tokens": 4000, "ignore_eos": True, "stream": True}))
        stream = connection.getresponse()
        stream.readline()
        self.saturate()
        gaps, last = [], time.monotonic()
        end = last + SECONDS
        while time.monotonic() < end and (line := stream.readline()) and b"[DONE]" not in line:
            if line.startswith(b"data"):
                gaps.append(time.monotonic() - last)
                last = time.monotonic()
        connection.close()
        gaps.sort()
        print(f"between events: median {statistics.median(gaps) * 1e3:.1f} ms, 99 % "
              f"{gaps[len(gaps) * 99 // 100] * 1e3:.1f} ms, longest {gaps[-1] * 1e3:.1f} ms of {len(gaps)}", flush=True)
        self.assertGreater(len(gaps), 50)
        self.assertLess(gaps[-1], 0.5)


class Bounds(unittest.TestCase):
    def test_one_request_more_than_may_wait_is_refused(self):
        server = Serving("--threads-http", "1", "--queue", "2")
        self.addCleanup(server.stop)
        body = long_text(2 << 20)
        answers = []
        asking = [threading.Thread(target=lambda: answers.append(server.ask("POST", "/tokenize", body)))
                  for _ in range(6)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        statuses = sorted(status for status, _, _ in answers)
        self.assertEqual(statuses[0], 200, statuses)
        self.assertEqual(statuses[-1], 503, statuses)
        for status, answer, headers in answers:
            if status == 503:
                self.assertEqual(headers["Retry-After"], "1")
                self.assertIn("waiting to be read", answer["error"]["message"])
        self.assertEqual(server.post("/v1/chat/completions", CHAT)[0], 200)

    def test_bodies_together_are_bounded(self):
        """Twenty clients that send nearly all of the largest body, and then nothing."""
        server = Serving()
        self.addCleanup(server.stop)
        before = server.memory("VmHWM")
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY_BYTES_MAX}\r\n\r\n"
        piece = b" " * (1 << 20)
        refusals = []

        def send():
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
                client.sendall(head.encode())
                try:
                    for _ in range(31):
                        client.sendall(piece)
                    refusals.append(client.recv(4096))
                except OSError:
                    refusals.append(b"")

        clients = [threading.Thread(target=send) for _ in range(20)]
        for client in clients:
            client.start()
        end = time.monotonic() + 60
        while not refusals:
            # Ordinary requests need no room.
            self.assertEqual(server.post("/v1/chat/completions", CHAT)[0], 200)
            self.assertLess(time.monotonic(), end)
        grown = server.memory("VmHWM") - before
        print(f"20 bodies of 32 MiB: {grown >> 20} MiB", flush=True)
        for client in clients:
            client.join()
        self.assertLess(grown, BODIES_BYTES_MAX + (48 << 20))
        refused = [text for text in refusals if text.startswith(b"HTTP/1.1 503")]
        self.assertGreaterEqual(len(refused), 10, refusals)
        self.assertIn(b"Retry-After: 1", refused[0])
        self.assertIn(b"as many large requests as it may", refused[0])
        # All of it is given back.
        body = json.dumps({"prompt": "x", "max_tokens": 1, "unknown": " " * (31 << 20)})
        self.assertEqual(server.post("/v1/completions", body)[0], 200)


if __name__ == "__main__":
    unittest.main()
