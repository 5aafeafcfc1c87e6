"""Ollama's API: as its own npm client meets it, and line by line.

Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_BUILD, where to install the client.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import npm_packages
from serving import FIXTURES, NEEDLE_MODEL, Serving

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hub"))
from hub_server import Hub, Repo  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "ollama"
INSTALLED = pathlib.Path(os.environ.get("SLIPSTREAM_BUILD", "/tmp")) / "ollama_client"
KEY = "a-key-of-the-test"
ARGUMENTS = ("--name", "needle", "--ctx", "4096", "--kv", "f16")
QUESTION = {"model": "needle", "messages": [{"role": "user", "content": "We met amber lantern today. Who is amber?"}],
            "options": {"temperature": 0, "num_predict": 8}}


class OllamaCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="slipstream-ollama-")
        self.addCleanup(folder.cleanup)
        self.hub = Hub()
        self.addCleanup(self.hub.stop)
        self.hub.repos["org/needle-GGUF"] = Repo({"needle-Q8_0.gguf": pathlib.Path(NEEDLE_MODEL).read_bytes()})
        environment = {"HF_HOME": folder.name, "HF_ENDPOINT": self.hub.endpoint, "no_proxy": "*", "HF_HUB_CACHE": "",
                       "HF_TOKEN": "", "HF_HUB_OFFLINE": ""}
        patch = unittest.mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def serve(self, *arguments):
        server = Serving(*ARGUMENTS, *arguments)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        return server


class OllamaClient(OllamaCase):
    def test_the_npm_client(self):
        npm_packages.install(HERE, INSTALLED)
        shutil.copy(HERE / "ollama_test.mjs", INSTALLED)  # beside what it imports
        urls = {name: f"http://127.0.0.1:{self.serve(*arguments).port}" for name, arguments in (
            ("SERVER_URL", ("--hub", "--embeddings", "512")), ("KEYED_URL", ("--api-key", KEY)))}
        node = subprocess.run(["node", "--test", "--test-timeout=60000", "--test-reporter=spec", "ollama_test.mjs"],
                              cwd=INSTALLED, check=False, capture_output=True, text=True, timeout=280,
                              env={**os.environ, **urls, "KEY": KEY, "FIXTURES": str(FIXTURES)})
        print(f"\n{node.stdout}{node.stderr}", flush=True)
        self.assertEqual(node.returncode, 0)


class Lines(OllamaCase):
    def refused(self, server, status, words, path, body):
        found, answer = server.post(path, body)
        self.assertEqual(found, status, answer)
        self.assertEqual(set(answer), {"error"})
        self.assertIn(words, answer["error"])

    def test_a_stream_is_lines_of_json_and_the_default(self):
        server = self.serve()
        status, text, headers = server.ask("POST", "/api/chat", QUESTION)
        self.assertEqual((status, headers["Content-Type"]), (200, "application/x-ndjson"))
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertGreater(len(lines), 2)
        self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
        self.assertRegex(lines[0]["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")
        whole = server.post("/api/chat", {**QUESTION, "stream": False})[1]
        said = "".join(line["message"]["content"] for line in lines)
        self.assertEqual(said, whole["message"]["content"])

    def test_what_it_says_is_what_openais_api_says(self):
        server = self.serve()
        said = server.post("/api/chat", {**QUESTION, "stream": False})[1]
        same = server.post("/v1/chat/completions", {"messages": QUESTION["messages"], "temperature": 0, "max_tokens": 8})[1]
        self.assertEqual(said["message"]["content"], same["choices"][0]["message"]["content"])
        self.assertEqual(said["prompt_eval_count"], same["usage"]["prompt_tokens"])

    def test_wrong_bodies_are_refused_in_ollamas_form(self):
        server = self.serve()
        chat = "/api/chat"
        for words, body in (("'messages'", {"messages": 7}), ("messages[0].role", {"messages": [{"role": "robot", "content": "a"}]}),
                            ("messages[0].content", {"messages": [{"role": "user", "content": [1]}]}),
                            ("tool_calls", {"messages": [{"role": "assistant", "tool_calls": [{}]}]}),
                            ("'tools[0]'", {**QUESTION, "tools": [{"type": "function"}]}),
                            ("'format'", {**QUESTION, "format": "xml"}), ("'keep_alive'", {**QUESTION, "keep_alive": "5 minutes"}),
                            ("options.temperature", {**QUESTION, "options": {"temperature": "warm"}}),
                            ("options.num_predict", {**QUESTION, "options": {"num_predict": -3}}),
                            ("'options'", {**QUESTION, "options": 7}), ("'think'", {**QUESTION, "think": "hard"}),
                            ("logprobs", {**QUESTION, "logprobs": True})):
            self.refused(server, 400, words, chat, {"model": "needle", **body})
        for words, body in (("'template'", {"template": "{{ .Prompt }}"}), ("'context'", {"context": [1, 2]}),
                            ("'images'", {"images": ["aGk="]}), ("'raw'", {"raw": True, "system": "a"})):
            self.refused(server, 400, words, "/api/generate", {"model": "needle", "prompt": "a", **body})
        self.refused(server, 400, "--embeddings", "/api/embed", {"model": "needle", "input": "a"})
        self.refused(server, 400, "'model'", "/api/show", {})
        self.refused(server, 404, "nothing", "/api/show", {"model": "nothing"})
        self.refused(server, 404, "--hub", "/api/pull", {"model": "org/needle-GGUF:Q8_0"})
        self.refused(server, 400, "JSON", chat, "{")
        self.assertEqual(server.ask("GET", chat)[0], 405)

    def test_durations(self):
        server = self.serve()
        for keep in ("5m", "1h30m", "-1", -1, 0, 300, "300ms", "0"):
            status, answer = server.post("/api/generate", {"model": "needle", "prompt": "", "keep_alive": keep})
            self.assertEqual(status, 200, (keep, answer))
            self.assertEqual(answer["done_reason"], "unload" if keep in (0, "0") else "load")
        for keep in ("m", "5x", "", "1h-2m", True, "nan", "inf", "1e400"):
            self.refused(server, 400, "keep_alive", "/api/generate", {"model": "needle", "prompt": "", "keep_alive": keep})

    def test_the_model_of_the_command_line_stays_whoever_wants_it_gone(self):
        server = self.serve("--hub")
        server.post("/api/generate", {"model": "needle", "prompt": "", "keep_alive": 0})
        self.assertEqual(server.post("/api/chat", {**QUESTION, "stream": False})[0], 200)
        self.assertEqual(len(server.ask("GET", "/api/ps")[1]["models"]), 1)
        self.assertNotIn("event=serve.unload", server.log())

    def test_a_stream_begins_while_its_model_is_loaded(self):
        server = self.serve("--hub")
        _, text, headers = server.ask("POST", "/api/pull", {"name": "org/needle-GGUF"})
        self.assertEqual(headers["Content-Type"], "application/x-ndjson")
        self.assertEqual(json.loads(text.splitlines()[-1]), {"status": "success"})
        status, text, headers = server.ask("POST", "/api/chat", {**QUESTION, "model": "org/needle-GGUF:Q8_0"})
        self.assertEqual((status, headers["Content-Type"]), (200, "application/x-ndjson"))
        self.assertTrue(json.loads(text.splitlines()[-1])["done"])

    def test_every_route_wants_the_key(self):
        server = self.serve("--api-key", KEY, "--hub")
        for method, path in (("POST", "chat"), ("POST", "generate"), ("POST", "embed"), ("POST", "embeddings"),
                             ("POST", "show"), ("POST", "pull"), ("GET", "tags"), ("GET", "ps"), ("GET", "version"),
                             ("POST", "create"), ("DELETE", "delete")):
            status, answer, _ = server.ask(method, f"/api/{path}", "{}" if method == "POST" else None)
            self.assertEqual(status, 401, path)
            self.assertIsInstance(answer["error"], str)
        self.assertEqual(self.hub.requests, [])


if __name__ == "__main__":
    unittest.main()
