"""Clients that want nothing but answers: streams that run all the time, and what they saw.

    good_clients.py PORT SECONDS MODEL_TOKENS

Prints JSON: the gaps between the tokens of a stream in milliseconds, and how many answers were whole. It is a
process of its own, so that what a hostile client does in Python costs these nothing.
"""

import http.client
import json
import sys
import threading
import time

N_CLIENTS = 8


class Client(threading.Thread):
    def __init__(self, port, end, n_tokens, seed):
        super().__init__()
        self.port, self.end, self.n_tokens, self.seed = port, end, n_tokens, seed
        self.gaps, self.n_whole, self.failures = [], 0, []

    def run(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
            while time.monotonic() < self.end:
                self.stream(connection)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.failures.append(repr(error))

    def stream(self, connection):
        connection.request("POST", "/v1/completions", json.dumps({
            "prompt": [100 + (self.seed * 17 + i * 31) % 1000 for i in range(48)], "max_tokens": self.n_tokens,
            "temperature": 0, "ignore_eos": True, "stream": True, "logprobs": 0}))
        response = connection.getresponse()
        if response.status != 200:
            self.failures.append(f"{response.status} {response.read()[:200]}")
            time.sleep(0.1)
            return
        n_tokens, last, is_done = 0, None, False
        for line in response:
            if line == b"data: [DONE]\n":
                is_done = True
            # Log-probabilities are told for each token, text is not.
            elif line.startswith(b"data: {") and (n := line.count(b'"token_logprobs":[') and
                                                 len(json.loads(line[6:])["choices"][0]["logprobs"]["tokens"])):
                now = time.monotonic()
                if last is not None:
                    self.gaps.append(1000 * (now - last))
                last = now
                n_tokens += n
        if is_done and n_tokens == self.n_tokens:
            self.n_whole += 1
        else:
            self.failures.append(f"{n_tokens} of {self.n_tokens} tokens, done: {is_done}")


def main():
    port, seconds, n_tokens = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    clients = [Client(port, time.monotonic() + seconds, n_tokens, seed) for seed in range(N_CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    print(json.dumps({"gaps": [gap for client in clients for gap in client.gaps],
                      "n_whole": sum(client.n_whole for client in clients),
                      "failures": [failure for client in clients for failure in client.failures]}))


if __name__ == "__main__":
    main()
