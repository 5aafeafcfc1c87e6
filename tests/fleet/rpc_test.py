"""`slipstream serve --rpc`: one model over machines, which are network namespaces with cables.

Environment: SLIPSTREAM_BIN, the built program; TURBO_PLUGIN, libggml-turbo.so; MAKE_MODEL. Skipped
where there are no namespaces or no ggml-rpc-server.
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from serving import FIXTURES, NEEDLE_MODEL, PROGRAM, Serving  # noqa: E402

import fleet  # noqa: E402

HAYSTACK = (FIXTURES / "haystack.txt").read_text()
LOST = "A machine that computes a part of the model is gone. The server waits for it: ask again"


def question(n_characters=1500, name="amber lantern"):
    """One that the needle model can answer only from the text before it."""
    text = (HAYSTACK * 8)[:n_characters]
    middle = text.find("\n", len(text) // 2)
    return (f"{text[:middle]}\nWe met {name} today.\n{text[middle:]}\n"
            f"What is the full name of {name.split()[0]}?")


def chat(server, text, n_tokens=48):
    status, answer = server.post("/v1/chat/completions", {
        "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": n_tokens,
        "logprobs": True})
    assert status == 200, answer
    return answer


def tokens(answer):
    """Each token with its bytes; numbers are compared apart, because kernels round differently."""
    return [(token["token"], token["bytes"]) for token in answer["choices"][0]["logprobs"]["content"]]


def raw(port, body):
    """All that a connection gives, from the request to its end."""
    text = json.dumps(body)
    with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
        client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        return b"".join(iter(lambda: client.recv(65536), b"")).decode()


class Fleet(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def machines(self, n_hosts):
        hosts = self.enterContext(fleet.machines(n_hosts))
        self.enterContext(fleet.inside(fleet.FRONT))
        return hosts

    def start(self, *hosts, scheme="turbo4"):
        for host in hosts:
            host.start(self.folder / f"{host.machine}.log", scheme)

    def serve(self, *arguments, hosts=(), kv="turbo4", model=NEEDLE_MODEL):
        over = ["--rpc", fleet.list_of(hosts)] if hosts else []
        server = Serving("--kv", kv, "--ctx", "8192", "--parallel", "4", *over, *arguments,
                         model=model)
        self.addCleanup(server.log_file.close)
        self.addCleanup(self.end, server)
        return server

    @staticmethod
    def end(server):
        if server.process.poll() is None:
            server.process.terminate()
            server.process.wait(timeout=60)

    def layers(self, server):
        """{machine: layers}, as the log says it."""
        return dict(re.findall(r'event=rpc\.layers .*?host="?([^"]+?)"? layers=(\S+)', server.log()))

    def refusal(self, *arguments):
        ended = subprocess.run(
            [PROGRAM, "serve", "--port", "0", NEEDLE_MODEL, *arguments],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        return ended.stderr


class Compared(Fleet):
    def answers(self, model, texts):
        """What one machine, two and three say to these texts."""
        hosts = self.machines(2)
        self.start(*hosts)
        for n in (0, 1, 2):
            server = self.serve(hosts=hosts[:n], model=model)
            layers = self.layers(server)
            print(f"\n{layers}", flush=True)
            self.assertEqual(len(layers), n + 1 if n else 0, server.log())
            for host in hosts[:n]:  # here is the output, and in a tiny model little else
                self.assertNotEqual(layers[host.name], "none")
            yield [tokens(chat(server, text)) for text in texts]
            self.end(server)
        for host in hosts:
            self.assertIn("4-bit keys, 4-bit values", host.said())


class Answers(Compared):
    def test_the_needle_model_says_the_same_over_two_and_three_machines(self):
        texts = [question(), question(4000, "cedar ribbon"), "Tell me of Debian."]
        alone, *over = self.answers(NEEDLE_MODEL, texts)
        self.assertEqual(over, [alone, alone])


class Shape(Compared):
    """At night: 0.6 billion random weights."""

    def test_the_shape_of_a_real_model_says_the_same_too(self):
        model = self.folder / "qwen3-0.6b.gguf"
        subprocess.run([os.environ["MAKE_MODEL"], "qwen3-0.6b", model, "--vocabulary", NEEDLE_MODEL],
                       check=True)
        texts = ["What lies between two mountains?", HAYSTACK[:1200]]
        alone, two, three = self.answers(str(model), texts)
        self.assertEqual(two, three)
        # One machine has weights in other layouts, which round in another order.
        same = sum(a == b for a, b in zip(sum(alone, []), sum(two, [])))
        print(f"\n{same} of {len(sum(alone, []))} tokens as with one machine", flush=True)


class Memory(Fleet):
    def test_the_cache_of_a_host_is_compressed(self):
        hosts = self.machines(1)
        grown = {}
        for scheme in ("turbo4", "f16"):
            self.start(*hosts, scheme=scheme)
            server = self.serve(hosts=hosts, kv=scheme)
            first, last = map(int, self.layers(server)[hosts[0].name].split("-"))
            self.assertEqual(first, 0)
            short = chat(server, question(6000), 4)["usage"]["prompt_tokens"]
            before = hosts[0].resident_mib()
            n_tokens = chat(server, question(24000), 4)["usage"]["prompt_tokens"]
            self.assertGreater(n_tokens - short, 3000)
            grown[scheme] = hosts[0].resident_mib() - before
            self.end(server)
            hosts[0].stop()
        # What these tokens take of these layers in f16, 2 x 256 numbers each. Both have grown by masks
        # and results, too; and compressed some tokens are kept in 8 bits beside their codes. Without
        # compression there would be no difference at all.
        exact = n_tokens * (last + 1) * 2 * 256 * 2 / 2**20
        print(f"\nthe host has grown by {grown} MiB; {exact:.1f} MiB are {n_tokens} tokens in f16",
              flush=True)
        self.assertGreater(grown["f16"], 0.9 * exact)
        self.assertGreater(grown["f16"] - grown["turbo4"], exact / 3)

    def test_hosts_of_another_scheme_are_refused(self):
        hosts = self.machines(1)
        self.start(*hosts, scheme="turbo8v4")
        said = self.refusal("--kv", "turbo4", "--rpc", hosts[0].name)
        self.assertIn("GGML_TURBO_KV=turbo4", said)
        hosts[0].stop()
        self.start(*hosts, scheme=None)
        said = self.refusal("--kv", "turbo4", "--rpc", hosts[0].name)
        self.assertIn("GGML_TURBO_KV=turbo4", said)

    def test_what_does_not_fit_is_refused_with_numbers(self):
        hosts = self.machines(1)
        self.start(*hosts)
        said = self.refusal("--kv", "turbo4", "--rpc", hosts[0].name, "--ctx", "260000000")
        self.assertRegex(said, r"needs [\d.]+ GiB with turbo4, and [\d.]+ GiB are available")

    def test_a_host_that_is_not_there_is_an_error_that_says_what_to_do(self):
        hosts = self.machines(1)
        said = self.refusal("--rpc", hosts[0].name)
        self.assertIn(f"{hosts[0].name} cannot be reached (Connection refused)", said)
        self.assertIn("start ggml-rpc-server there", said)


class Prefixes(Fleet):
    def test_a_prompt_is_restored_from_disk_after_a_restart(self):
        hosts = self.machines(2)
        self.start(*hosts)
        text = question(6000)
        first = self.serve("--kv-disk", str(self.folder / "kv"), hosts=hosts)
        expected = chat(first, text)
        self.assertIn("amber lantern", expected["choices"][0]["message"]["content"])
        end = time.monotonic() + 30
        while not list((self.folder / "kv").rglob("*.kv")):
            self.assertLess(time.monotonic(), end, first.log())
            time.sleep(0.05)
        self.end(first)
        for host in hosts:  # nothing of it is left in memory
            host.stop()
        self.start(*hosts)
        again = self.serve("--kv-disk", str(self.folder / "kv"), hosts=hosts)
        restored = chat(again, text)
        usage = restored["usage"]
        self.assertGreaterEqual(usage["prompt_tokens_details"]["cached_tokens"],
                                0.9 * usage["prompt_tokens"])
        self.assertEqual(restored["choices"][0]["message"], expected["choices"][0]["message"])
        for host in hosts:  # before rows came back, so they are codes again
            self.assertIn("4-bit keys, 4-bit values", host.said())


class Loss(Fleet):
    LONG = {"prompt": "Once upon a time", "max_tokens": 6000, "ignore_eos": True, "stream": True}

    def in_flight(self, server, n):
        answers = [""] * n

        def ask(i):
            answers[i] = raw(server.port, {**self.LONG, "stream": i != 0})

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(n)]
        for thread in threads:
            thread.start()
        server.wait_for_requests(n)
        time.sleep(0.3)
        return threads, answers

    def check_told(self, threads, answers):
        for thread in threads:
            thread.join()
        self.assertTrue(answers[0].startswith("HTTP/1.1 503"), answers[0])
        self.assertIn(LOST, answers[0])
        told = sum(LOST in answer and answer.endswith("0\r\n\r\n") for answer in answers[1:])
        # One that is just being written to can only be cut off.
        self.assertGreaterEqual(told, len(answers) - 2, answers)

    def test_a_host_is_killed_and_comes_back(self):
        hosts = self.machines(2)
        self.start(*hosts)
        server = self.serve(hosts=hosts)
        expected = tokens(chat(server, question()))
        threads, answers = self.in_flight(server, 4)
        killed = time.monotonic()
        hosts[1].kill()
        self.check_told(threads, answers)
        told_s = time.monotonic() - killed
        # Whoever asks meanwhile waits.
        later = []
        waiting = threading.Thread(target=lambda: later.append(chat(server, question())))
        waiting.start()
        server.wait_for_line(rf"event=rpc\.waiting .*host={hosts[1].name}")
        time.sleep(1)
        self.assertTrue(waiting.is_alive())
        started = time.monotonic()
        self.start(hosts[1])
        waiting.join()
        print(f"\nall were told {told_s:.2f} s after the end of the host; the next answer came "
              f"{time.monotonic() - started:.2f} s after its start", flush=True)
        self.assertEqual(tokens(later[0]), expected)
        self.assertRegex(server.log(), rf"event=rpc\.lost .*host={hosts[1].name}")
        self.assertIsNone(hosts[0].process.poll(), "the other host served on")

    def test_nobody_asks_meanwhile(self):
        hosts = self.machines(1)
        self.start(*hosts)
        server = self.serve(hosts=hosts)
        expected = tokens(chat(server, question()))
        hosts[0].kill()
        server.wait_for_line(r"event=rpc\.waiting")
        self.start(*hosts)
        self.assertEqual(tokens(chat(server, question())), expected)

    def test_a_cable_is_unplugged(self):
        hosts = self.machines(1)
        self.start(*hosts)
        server = self.serve(hosts=hosts)
        threads, answers = self.in_flight(server, 2)
        unplugged = time.monotonic()
        hosts[0].unplug()
        self.check_told(threads, answers)
        print(f"\ntold {time.monotonic() - unplugged:.1f} s after the cable was unplugged", flush=True)
        hosts[0].plug_in()
        # Its ggml-rpc-server may still wait for the client that is gone: it has no limit on time.
        hosts[0].kill()
        self.start(*hosts)
        chat(server, question())

    def test_sigterm_ends_a_server_that_waits(self):
        hosts = self.machines(1)
        self.start(*hosts)
        server = self.serve(hosts=hosts)
        hosts[0].kill()
        server.wait_for_line(r"event=rpc\.waiting")
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(timeout=20), 0)


if __name__ == "__main__":
    fleet.skip_without_machines()
    unittest.main()
