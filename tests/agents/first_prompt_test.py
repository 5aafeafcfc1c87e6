"""A first prompt of 20,000 tokens that takes longer than the server may be silent: nobody gives up.

The SDKs of Anthropic and OpenAI ask through their own streams (first_prompt.mjs), Claude Code and Codex with a long task.
The model has as many layers as it takes for the prompt to last on this machine. Runs at night: npm fetches the clients.
Environment: as of agents_test.py.
"""

import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "server"))

import agents_test  # noqa: E402
import npm_packages  # noqa: E402
from scripted_proxy import ScriptedProxy  # noqa: E402
from serving import NEEDLE_MODEL, Serving  # noqa: E402

SDKS = agents_test.BUILD / "clients"
N_PROMPT = 20000
N_LINES = 2000  # of the SDKs' prompts: more tokens than that
N_CONTEXT = 40960
SILENCE_S = 15  # after which the server sends a ping
LASTS_S = 25
HEADERS_S_MAX = 0.1
N_HEADERS = 9  # prompts whose headers are timed; the median counts
# Of the agents' tasks: they have fewer tokens of their own.
FILLER = {"claude": 1200, "codex": 1300}
PING = {"claude": r"^event: ping$", "codex": r"^event: response\.in_progress$"}


class FirstPrompt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        agents_test.install()
        npm_packages.install(HERE.parent / "server" / "clients", SDKS)
        shutil.copy(HERE / "first_prompt.mjs", SDKS)
        folder = tempfile.TemporaryDirectory(prefix="slipstream-slow-")
        cls.addClassCleanup(folder.cleanup)
        cls.path = str(pathlib.Path(folder.name, "slow.gguf"))

    def serve(self, n_layers):
        subprocess.run([os.environ["MAKE_MODEL"], "qwen3", self.path, "--vocabulary", NEEDLE_MODEL,
                        "--layers", str(n_layers)], check=True)
        return Serving("--name", agents_test.MODEL, "--ctx", str(N_CONTEXT), "--kv", "turbo8",
                       model=self.path)

    def prompt_s(self, server, token):
        begin = time.monotonic()
        status, answer = server.post("/v1/completions", {"prompt": [token] * N_PROMPT, "max_tokens": 1})
        self.assertEqual(status, 200, answer)
        return time.monotonic() - begin

    def serve_slowly(self):
        """As many layers as make a prompt last."""
        n_layers = 2
        server = self.serve(n_layers)
        took_s = min(self.prompt_s(server, token) for token in (300, 301))  # others may be busy, too
        self.assertEqual(server.stop(), 0)
        n_layers = math.ceil(n_layers * LASTS_S / took_s)
        print(f"{N_PROMPT} tokens take {took_s:.1f} s with 2 layers: {n_layers} layers", flush=True)
        server = self.serve(n_layers)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        return server

    def check(self, name, n_prompt, headers_s, took_s, n_pings):
        print(f"{name:10} {n_prompt:6} tokens in {took_s:5.1f} s; headers after {1000 * headers_s:5.1f} ms, "
              f"pings {n_pings}", flush=True)
        self.assertGreaterEqual(n_prompt, N_PROMPT)
        self.assertGreater(took_s, SILENCE_S, "too fast to show anything")
        self.assertGreaterEqual(n_pings, math.floor(took_s / SILENCE_S) - 1)
        self.assertGreaterEqual(n_pings, 1)

    def check_agent(self, server, name):
        with tempfile.TemporaryDirectory() as folder:
            home, work = pathlib.Path(folder, "home"), pathlib.Path(folder, "work")
            for path in (home, work):
                path.mkdir()
            proxy = ScriptedProxy(server.port, [agents_test.ANSWER])
            self.addCleanup(proxy.close)
            agent = agents_test.AGENTS[name](home, f"http://127.0.0.1:{proxy.port}", "note.txt")
            task = " ".join([agents_test.TASK, *(f"Line {i} of {name} is long." for i in range(FILLER[name]))])
            ran = subprocess.run(
                [task if part == agents_test.TASK else part for part in agent["command"]], cwd=work,
                check=False, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL,
                env={"PATH": f"{agents_test.BIN}:{os.environ['PATH']}", "HOME": str(home),
                     **agent["environment"]})
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn(agents_test.ANSWER, ran.stdout)
        self.assertEqual([turn["status"] for turn in proxy.turns], [200], "it asked once")
        turn = proxy.turns[0]
        n_pings = len(re.findall(PING[name], turn["answer"], re.M)) - (name == "codex")  # the first is none
        self.check(name, turn["usage"][0], turn["headers_s"], turn["took_s"], n_pings)

    def test_headers_come_at_once(self):
        """Clients leave when they have them: each prompt is new, and the engine is idle."""
        server = self.serve(2)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        for path, field in (("/v1/messages", "messages"), ("/v1/responses", "input"),
                            ("/v1/chat/completions", "messages")):
            times = [self.headers_s(server, path, field, f"{len(path)} {i}") for i in range(N_HEADERS)]
            print(f"{path:22} headers after {', '.join(f'{1000 * t:.0f}' for t in times)} ms", flush=True)
            with self.subTest(path):
                self.assertLessEqual(statistics.median(times), HEADERS_S_MAX)

    def headers_s(self, server, path, field, name):
        text = "\n".join(f"{name} line {k} is long." for k in range(N_LINES))
        body = json.dumps({field: [{"role": "user", "content": text}], "max_tokens": 4, "stream": True})
        connection = server.connection()
        connection.connect()
        begin = time.monotonic()
        connection.request("POST", path, body)
        response = connection.getresponse()
        took_s = time.monotonic() - begin
        self.assertEqual(response.status, 200)
        response.close()
        connection.close()
        while server.n_requests():
            time.sleep(0.05)
        return took_s

    def test_nobody_gives_up(self):
        server = self.serve_slowly()
        node = subprocess.run(["node", "first_prompt.mjs", f"http://127.0.0.1:{server.port}", str(N_LINES)],
                              cwd=SDKS, check=False, capture_output=True, text=True, timeout=900)
        self.assertEqual(node.returncode, 0, node.stderr)
        for seen in map(json.loads, node.stdout.splitlines()):
            with self.subTest(seen["api"]):
                self.check(seen["api"], seen["n_prompt"], seen["headers_ms"] / 1000, seen["took_s"],
                           seen["n_pings"])
                self.assertLess(seen["longest_silence_s"], SILENCE_S + 5)
        for name in FILLER:
            with self.subTest(name):
                self.check_agent(server, name)


if __name__ == "__main__":
    unittest.main()
