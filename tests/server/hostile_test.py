"""What one client can do to `slipstream serve`, at the sizes that its limits allow.

Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_FIXTURES, the models of the build.
"""

import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time
import unittest

from serving import NEEDLE_MODEL, PROGRAM, Serving

BODY_BYTES_MAX = 32 << 20
CHAT = {"messages": [{"role": "user", "content": "Who is amber?"}], "max_tokens": 4}


def call_with(arguments):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {**CHAT, "messages": [{"role": "user", "content": "go"},
                                 {"role": "assistant", "content": None, "tool_calls": [call]}]}


class Bodies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving("--name", "needle", "--ctx", "2048")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def tearDown(self):
        self.assertEqual(self.server.post("/v1/chat/completions", CHAT)[0], 200, "it lives")

    def test_nesting_in_a_string_that_is_read_again(self):
        for depth in (200_000, 8_000_000, 200):
            body = json.dumps(call_with('{"a":' + "[" * depth + "]" * depth + "}"))
            status, answer = self.server.post("/v1/chat/completions", body)
            self.assertEqual(status, 400, depth)
            self.assertIn("nested more than 128 deep", answer["error"]["message"])

    def test_an_object_of_many_members(self):
        names = ",".join(f'"k{i}":0' for i in range(600_000))
        started = time.monotonic()
        status, _ = self.server.post("/v1/chat/completions",
                                     '{"messages":[{"role":"user","content":"x"}],"max_tokens":1,"x":{%s}}' % names)
        self.assertEqual(status, 200)
        self.assertLess(time.monotonic() - started, 10)

    def test_many_variables_for_the_template(self):
        status, answer = self.server.post("/v1/chat/completions", {
            **CHAT, "chat_template_kwargs": {f"v{i}": i for i in range(200_000)}})
        self.assertEqual((status, answer["error"]["param"]), (400, "chat_template_kwargs"))

    def test_more_values_than_any_request_has(self):
        body = '{"prompt":[' + "0," * 9_000_000 + "0]}"
        status, answer = self.server.post("/v1/completions", body)
        self.assertEqual(status, 400)
        self.assertIn("values", answer["error"]["message"])

    def test_memory_of_many_small_values(self):
        """At most 16 bytes for each byte of a body; tests/hostile has all kinds at all sizes."""
        n = 4 << 20
        many = {
            "messages": {"messages": [{"role": "user", "content": "x"}] * (n // 31)},
            "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * (n // 27)}]},
            "numbers": {**CHAT, "x": [0] * (n // 2)},
            "texts": {**CHAT, "stop": ["x"] * (n // 4)},
            "tools": {**CHAT, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}] * (n // 67)},
            "members": {**CHAT, "x": {f"k{i}": 0 for i in range(n // 11)}},
        }
        for name, body in many.items():
            # A member behind them: the body must not be copied to take it.
            body = json.dumps({**body, "n": 1}, separators=(",", ":")).encode()
            self.server.forget_peak()
            before = self.server.memory("VmRSS")
            status = self.server.ask("POST", "/v1/chat/completions", body)[0]
            self.assertIn(status, (200, 400), name)
            self.assertLess((self.server.memory("VmHWM") - before) / len(body), 16, name)
            # The text itself may be there until its connection has ended.
            self.assertLess(self.server.memory("VmRSS") - before, 2 * len(body), f"{name}: kept")

    def test_more_values_than_the_context_takes(self):
        many = {f"k{i}": 0 for i in range(10_000)}  # 1,024 and 4 for each of 2,048 tokens are allowed
        for body in ({"messages": [{"role": "user", "content": "x"}] * 4_000},
                     {**CHAT, "tools": [{"type": "function", "function": {"name": "f", "parameters": many}}]}):
            status, answer = self.server.post("/v1/chat/completions", body)
            self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))
            self.assertIn("more than the 9216 that a context of 2048 tokens takes", answer["error"]["message"])
        status, answer = self.server.post("/v1/chat/completions", call_with(json.dumps(many)))
        self.assertEqual(status, 400)
        self.assertIn("all calls together may have 9216 values", answer["error"]["message"])

    def test_what_is_quoted_is_cut(self):
        status, answer = self.server.post("/v1/chat/completions", {**CHAT, "model": "m" * (30 << 20)})
        self.assertEqual(status, 404)
        self.assertLess(len(answer["error"]["message"]), 5000)
        status, answer = self.server.post("/v1/chat/completions", {**CHAT, "tool_choice": {
            "type": "function", "function": {"name": "f" * (30 << 20)}},
            "tools": [{"type": "function", "function": {"name": "g"}}]})
        self.assertEqual(status, 400)
        self.assertLess(len(answer["error"]["message"]), 5000)

    def test_head_has_no_body(self):
        connection = self.server.connection()
        for path in ("/health", "/v1/models", "/"):
            connection.request("HEAD", path)
            response = connection.getresponse()
            self.assertEqual((response.status, response.read()), (200, b""), path)
            self.assertGreater(int(response.getheader("Content-Length")), 0)
        connection.close()

    def test_an_old_client_gets_a_stream_without_chunks(self):
        body = json.dumps({**CHAT, "stream": True})
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as client:
            client.sendall(f"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {len(body)}\r\n"
                           f"\r\n{body}".encode())
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        self.assertNotIn(b"chunked", answer)
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"), answer[-100:])

    def test_a_client_that_says_one_byte_more_and_goes_frees_its_place(self):
        body = json.dumps({"prompt": "Once", "max_tokens": 1900, "ignore_eos": True})
        client = socket.create_connection(("127.0.0.1", self.server.port))
        client.sendall(f"POST /v1/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                       .encode())
        self.server.wait_for_requests(1)
        client.sendall(b"x")
        client.close()
        end = time.monotonic() + 3
        while self.server.n_requests():
            self.assertLess(time.monotonic(), end, "its request runs on")
            time.sleep(0.02)


class Strangers(unittest.TestCase):
    """Who may not ask."""

    def test_a_body_is_not_read_before_its_key_is_known(self):
        server = Serving("--api-key", "first")
        try:
            head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                    f"Content-Length: {BODY_BYTES_MAX}\r\nExpect: 100-continue\r\n")
            for extra, status in (("", b"401"), ("Origin: http://evil.example\r\n", b"403")):
                with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
                    client.sendall(f"{head}{extra}\r\n".encode())
                    answer = client.recv(65536)
                self.assertTrue(answer.startswith(b"HTTP/1.1 " + status), answer)
                self.assertIn(b"Connection: close", answer)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_a_server_for_others_is_no_strangers_name(self):
        for arguments, stranger in (((), 403), (("--api-key", "k"), 200), (("--allow-host", "*"), 200)):
            server = Serving("--host", "0.0.0.0", *arguments)
            try:
                for host, status in (("evil.example", stranger), (f"127.0.0.1:{server.port}", 200),
                                     ("192.168.1.7:8080", 200), (socket.gethostname(), 200)):
                    self.assertEqual(server.ask("GET", "/health", headers={"Host": host})[0], status,
                                     (arguments, host))
            finally:
                self.assertEqual(server.stop(), 0)


class Starting(unittest.TestCase):
    def refusal(self, *arguments, **environment):
        ended = subprocess.run([PROGRAM, "serve", *arguments, "--port", "0"], capture_output=True, text=True,
                               timeout=60, env={**os.environ, **environment})
        self.assertEqual(ended.returncode, 1, ended.stderr)
        return ended.stderr

    def test_an_empty_key_is_refused(self):
        self.assertIn("an API key is empty", self.refusal(NEEDLE_MODEL, "--api-key", ""))
        self.assertIn("an API key is empty",
                      self.refusal(NEEDLE_MODEL, "--api-key", "good", "--api-key", ""))
        self.assertIn("SLIPSTREAM_API_KEY is empty", self.refusal(NEEDLE_MODEL, SLIPSTREAM_API_KEY=""))

    def test_a_diffusion_model_is_refused(self):
        """Dream's tensors are those of qwen2."""
        model = (pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"]) / "qwen2.gguf").read_bytes()
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            file.write(model.replace(b"qwen2.", b"dream.").replace(
                b"general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00qwen2",
                b"general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00dream"))
            file.flush()
            self.assertIn("is a diffusion model", self.refusal(file.name, "--ctx", "512", "--kv", "f16"))


if __name__ == "__main__":
    unittest.main()
