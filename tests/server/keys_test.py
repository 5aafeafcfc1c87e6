"""`slipstream serve --keys`: who may ask how much, read again on SIGHUP.

Environment: SLIPSTREAM_BIN, the built program.
"""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from serving import NEEDLE_MODEL, PROGRAM, Serving

GREEDY = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0, "ignore_eos": True}
LONG = {**GREEDY, "max_tokens": 1900}


def digest(key):
    return hashlib.sha256(key.encode()).hexdigest()


class Keys(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "keys.json"

    def write(self, *keys, mode=0o600):
        self.file.write_text(json.dumps({"keys": keys}))
        self.file.chmod(mode)

    def serve(self, *arguments):
        server = Serving("--ctx", "2048", "--keys", str(self.file), *arguments)
        self.addCleanup(server.stop)
        return server

    def ask(self, server, key, body=GREEDY):
        return server.ask("POST", "/v1/completions", body, {"Authorization": f"Bearer {key}"})

    def test_keys_of_the_file_and_of_the_command_line(self):
        self.write({"name": "ann", "key": "sk-one"}, {"name": "bob", "key_sha256": digest("sk-two")})
        server = self.serve("--api-key", "sk-three")
        for key, status in (("sk-one", 200), ("sk-two", 200), ("sk-three", 200), ("sk-four", 401), ("", 401),
                            (digest("sk-two"), 401)):
            self.assertEqual(self.ask(server, key)[0], status, key)
        log = server.log()
        self.assertIn("client=ann", log)
        self.assertIn("client=bob", log)
        metrics = server.ask("GET", "/metrics", headers={"Authorization": "Bearer sk-one"})[1]
        self.assertRegex(metrics, r'slipstream:client_tokens_total\{client="ann",kind="generated"\} 8')
        for secret in ("sk-one", "sk-two", digest("sk-two")):
            self.assertNotIn(secret, log)
            self.assertNotIn(secret, metrics)

    def test_requests_at_a_time(self):
        self.write({"name": "ann", "key": "sk-one", "max_parallel_requests": 2}, {"name": "bob", "key": "sk-two"})
        server = self.serve()
        running = [server.connection() for _ in range(2)]
        for connection in running:
            connection.request("POST", "/v1/completions", json.dumps(LONG), {"Authorization": "Bearer sk-one"})
        self.wait_for_requests(server, 2)
        status, answer, headers = self.ask(server, "sk-one")
        self.assertEqual((status, headers["Retry-After"]), (429, "1"), answer)
        self.assertEqual((answer["error"]["code"], answer["error"]["type"]),
                         ("rate_limit_exceeded", "rate_limit_error"))
        self.assertIn("'ann' may have 2 requests at a time", answer["error"]["message"])
        self.assertEqual(self.ask(server, "sk-two")[0], 200, "another key has its own")
        status, _, _ = server.ask("GET", "/v1/models", headers={"Authorization": "Bearer sk-one"})
        self.assertEqual(status, 200, "what costs nothing is not counted")
        for connection in running:
            connection.close()
        end = time.monotonic() + 10
        while self.ask(server, "sk-one")[0] != 200:
            self.assertLess(time.monotonic(), end, "they have ended")

    def wait_for_requests(self, server, n):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            text = server.ask("GET", "/metrics", headers={"Authorization": "Bearer sk-two"})[1]
            running = [float(line.split()[-1]) for line in text.splitlines()
                       if line.startswith("vllm:num_requests_running{")]
            if running and running[0] >= n:
                return
            time.sleep(0.02)
        self.fail(f"no {n} requests:\n{server.log()}")

    def test_tokens_per_minute(self):
        self.write({"name": "ann", "key": "sk-one", "tokens_per_minute": 120})
        server = self.serve()
        body = {**GREEDY, "max_tokens": 130}
        status, answer, _ = self.ask(server, "sk-one", body)
        self.assertEqual(status, 200)
        used = answer["usage"]["total_tokens"]
        self.assertGreaterEqual(used, 130)
        status, answer, headers = self.ask(server, "sk-one")
        self.assertEqual((status, answer["error"]["code"]), (429, "rate_limit_exceeded"), answer)
        self.assertIn("'ann' may have 120 tokens per minute", answer["error"]["message"])
        wait = int(headers["Retry-After"])  # two tokens come back each second
        self.assertTrue(0 < wait <= (used - 120) / 2 + 2, (wait, used))
        time.sleep(wait)
        self.assertEqual(self.ask(server, "sk-one")[0], 200, "as it was told")

    def test_sighup_reads_the_file_again(self):
        self.write({"name": "ann", "key": "sk-one"})
        server = self.serve()
        self.write({"name": "bob", "key": "sk-two"})
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line("event=serve.keys .*n=1")
        self.assertEqual([self.ask(server, key)[0] for key in ("sk-one", "sk-two")], [401, 200])
        for broken in ('{"keys": [{"name": "eve", "key": "sk-leak', '{"keys": []}'):
            n_errors = server.log().count("level=error event=serve.keys")
            self.file.write_text(broken)
            server.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + 10
            while server.log().count("level=error event=serve.keys") == n_errors:
                self.assertLess(time.monotonic(), end, server.log())
                time.sleep(0.02)
            self.assertEqual(self.ask(server, "sk-two")[0], 200, "the old keys stay")
        self.assertNotIn("sk-leak", server.log())

    def test_a_supervisor_passes_it_on(self):
        self.write({"name": "ann", "key": "sk-one"})
        server = self.serve("--supervise")
        self.write({"name": "ann", "key": "sk-one"}, {"name": "bob", "key": "sk-two"})
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line("event=serve.keys .*n=2")
        self.assertEqual([self.ask(server, key)[0] for key in ("sk-one", "sk-two")], [200, 200])

    def test_a_reload_does_not_end_what_is_in_progress(self):
        self.write({"name": "ann", "key": "sk-one"}, {"name": "bob", "key": "sk-two"})
        server = self.serve()
        answers = []
        running = threading.Thread(target=lambda: answers.append(self.ask(server, "sk-one", {**LONG, "max_tokens": 300})))
        running.start()
        self.wait_for_requests(server, 1)
        self.write({"name": "bob", "key": "sk-two"})
        server.process.send_signal(signal.SIGHUP)
        running.join()
        self.assertEqual((answers[0][0], answers[0][1]["usage"]["completion_tokens"]), (200, 300))

    def test_sighup_without_a_file_ends_nothing(self):
        server = Serving("--api-key", "k")
        self.addCleanup(server.stop)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line("event=serve.keys")
        self.assertEqual(self.ask(server, "k")[0], 200)

    def refusal(self):
        ended = subprocess.run([PROGRAM, "serve", NEEDLE_MODEL, "--port", "0", "--keys", str(self.file)],
                               capture_output=True, text=True, timeout=60, env=os.environ)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        return ended.stderr

    def test_a_server_does_not_start_with_a_file_it_cannot_use(self):
        self.assertIn("keys.json", self.refusal())
        self.write({"name": "ann", "key": "sk-one"}, mode=0o644)
        self.assertIn("chmod o-r", self.refusal())
        self.write()
        self.assertIn("one key or more", self.refusal())


if __name__ == "__main__":
    unittest.main()
