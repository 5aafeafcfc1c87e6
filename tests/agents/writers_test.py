"""What the events of Messages and Responses cost beside those of chat completions: tokens per second to 8 clients.

The three APIs take turns, so that what else the machine does meets all of them, and their order changes from round to
round. What counts is the median over the rounds of the ratio to chat completions in the same round. The model is small:
the larger the share of the writers, the more of it would be seen. The clients read bytes and no more.
Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import pathlib
import socket
import statistics
import sys
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "server"))

from serving import Serving  # noqa: E402

N_CLIENTS = 8
N_TOKENS = 192
N_ROUNDS = 41
RATIO_MIN = 0.97
MESSAGES = [{"role": "user", "content": "We met amber lantern today. Tell me about it."}]
CHAT = "/v1/chat/completions"
# The fields that differ, and the last event of a stream.
APIS = {CHAT: ({"messages": MESSAGES, "max_tokens": N_TOKENS, "stream_options": {"include_usage": True}},
               f'"completion_tokens":{N_TOKENS},', b"data: [DONE]"),
        "/v1/messages": ({"messages": MESSAGES, "max_tokens": N_TOKENS},
                         f'"output_tokens":{N_TOKENS}', b"event: message_stop"),
        "/v1/responses": ({"input": MESSAGES, "max_output_tokens": N_TOKENS, "store": False},
                          f'"output_tokens":{N_TOKENS},', b"event: response.incomplete")}


class Writers(unittest.TestCase):
    def read_stream(self, path, seed):
        fields, _, _ = APIS[path]
        body = json.dumps({**fields, "stream": True, "ignore_eos": True, "seed": seed}).encode()
        head = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        pieces = []
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            client.sendall(head + body)
            while piece := client.recv(1 << 16):
                pieces.append(piece)
        return b"".join(pieces)

    def tokens_per_s(self, path):
        answers = [b""] * N_CLIENTS

        def run(i):
            answers[i] = self.read_stream(path, i)

        clients = [threading.Thread(target=run, args=(i,)) for i in range(N_CLIENTS)]
        begin = time.monotonic()
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        took_s = time.monotonic() - begin
        for answer in answers:
            self.assertIn(APIS[path][1].encode(), answer, answer[-2000:])
            self.assertIn(APIS[path][2], answer)
        return N_CLIENTS * N_TOKENS / took_s

    def test_the_new_writers_cost_no_more(self):
        self.server = Serving("--name", "needle", "--ctx", "8192", "--kv", "f16",
                              "--parallel", str(N_CLIENTS))
        self.addCleanup(lambda: self.assertEqual(self.server.stop(), 0))
        for path in APIS:
            self.tokens_per_s(path)  # so that every prompt is cached
        speeds = {path: [] for path in APIS}
        paths = list(APIS)
        for _ in range(N_ROUNDS):
            for path in paths:
                speeds[path].append(self.tokens_per_s(path))
            paths = paths[1:] + paths[:1]
        for path, some in speeds.items():
            ratios = [ours / chat for ours, chat in zip(some, speeds[CHAT])]
            low, _, high = statistics.quantiles(ratios, n=4)
            ratio = statistics.median(some) / statistics.median(speeds[CHAT])
            print(f"{path:22} {statistics.median(some):7.0f} tokens/s to {N_CLIENTS} clients, "
                  f"of chat completions {ratio:.3f} (in single rounds, quartiles {low:.3f} to {high:.3f})", flush=True)
            with self.subTest(path):
                self.assertGreaterEqual(ratio, RATIO_MIN)


if __name__ == "__main__":
    unittest.main()
