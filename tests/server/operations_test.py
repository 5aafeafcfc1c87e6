"""`slipstream serve` as its operator meets it: metrics, several models, browsers, the service manager.

Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_FIXTURES, the models that the build makes.
"""

import base64
import math
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from serving import FIXTURES, NEEDLE_MODEL, PROGRAM, Serving

LONG_MODEL = str(pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"]) / "qwen3.gguf")  # of 262,144 tokens
EXPERTS_MODEL = str(pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"]) / "qwen3moe.gguf")  # likewise
GREEDY = {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}
CHAT = {"messages": [{"role": "user", "content": "Who is amber?"}], "max_tokens": 8}


def value(text, name, **labels):
    """Of a metric in Prometheus's text format."""
    for line in text.splitlines():
        if line.startswith(name + "{") and all(f'{k}="{v}"' in line for k, v in labels.items()):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no {name} {labels} in\n{text}")


class Metrics(unittest.TestCase):
    def test_requests_and_the_engine_are_counted(self):
        server = Serving("--name", "needle", "--kv", "turbo4")
        try:
            prompt = "We met amber lantern today. " * 40
            # To the last token: where an answer ends by itself depends on the CPU's rounding.
            for _ in range(2):
                server.post("/v1/completions", {**GREEDY, "prompt": prompt, "ignore_eos": True})
            server.events("/v1/chat/completions", {**CHAT, "ignore_eos": True})
            server.post("/v1/nothing", {})
            status, text, headers = server.ask("GET", "/metrics")
            self.assertEqual(status, 200)
            self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
            of = {"model_name": "needle"}
            # The engine counts down after the last event, just before it waits.
            end = time.monotonic() + 10
            while value(server.ask("GET", "/metrics")[1], "vllm:num_requests_running", **of):
                self.assertLess(time.monotonic(), end)
            text = server.ask("GET", "/metrics")[1]
            self.assertEqual(value(text, "vllm:num_requests_waiting", **of), 0)
            self.assertEqual(value(text, "vllm:generation_tokens_total", **of), 12 + 12 + 8)
            self.assertGreater(value(text, "vllm:prefix_cache_hits_total", **of), 200)
            self.assertGreater(value(text, "vllm:prefix_cache_queries_total", **of),
                               value(text, "vllm:prefix_cache_hits_total", **of))
            self.assertEqual(value(text, "vllm:time_to_first_token_seconds_count", **of), 3)
            self.assertEqual(value(text, "vllm:inter_token_latency_seconds_count", **of),
                             11 + 11 + 7)
            self.assertEqual(value(text, "vllm:e2e_request_latency_seconds_count", **of), 3)
            self.assertEqual(
                value(text, "vllm:request_success_total", finished_reason="length", **of), 3)
            self.assertGreater(
                value(text, "slipstream:kv_cache_bytes", kv_scheme="turbo4", **of), 1 << 20)
            self.assertEqual(value(text, "slipstream:http_requests_total",
                                   path="/v1/completions", status="200"), 2)
            self.assertEqual(
                value(text, "slipstream:http_requests_total", path="other", status="404"), 1)
        finally:
            self.assertEqual(server.stop(), 0)


    def test_drafts_are_counted_and_change_no_answer(self):
        answers = []
        body = {"prompt": "We met amber lantern today. " * 12, "max_tokens": 200, "temperature": 0,
                "ignore_eos": True}
        for how in ("off", "always"):
            server = Serving("--name", "needle", "--kv", "f16", "--speculate", how)
            try:
                self.assertIn(f"speculate={how}", server.log())
                answer = server.post("/v1/completions", body)[1]
                answers.append(answer["choices"][0]["text"])
                end = time.monotonic() + 10  # the engine counts after the last event
                while server.n_requests():
                    self.assertLess(time.monotonic(), end)
                text = server.ask("GET", "/metrics")[1]
                drafts, tokens, accepted = (
                    value(text, f"vllm:spec_decode_num_{what}_total", model_name="needle")
                    for what in ("drafts", "draft_tokens", "accepted_tokens"))
                timings = answer["timings"]
                if how == "off":
                    self.assertEqual((drafts, tokens, accepted), (0, 0, 0))
                    self.assertNotIn("draft_n", timings)
                    continue
                self.assertGreater(drafts, 0)
                self.assertGreater(accepted, 10)
                self.assertEqual((timings["draft_n"], timings["draft_n_accepted"]), (tokens, accepted))
                at = [value(text, "vllm:spec_decode_num_accepted_tokens_per_pos_total", position=i)
                      for i in range(15)]
                self.assertEqual(sum(at), accepted)
                self.assertEqual(at, sorted(at, reverse=True))
                self.assertLess(value(text, "slipstream:steps_total", model_name="needle"), 195)
            finally:
                self.assertEqual(server.stop(), 0)
        self.assertEqual(*answers)

    def test_models_that_cannot_speculate_say_so(self):
        model = str(pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"]) / "qwen35.gguf")
        server = Serving("--ctx", "512", "--kv", "f16", "--speculate", "auto", model=model)
        try:
            self.assertRegex(server.log(), "event=engine.speculation .*speculates=off why=.*recurrent state")
            self.assertIn("speculate=off", server.log())
            server.post("/v1/completions", {**GREEDY, "ignore_eos": True})
        finally:
            self.assertEqual(server.stop(), 0)

    def test_a_draft_model_is_counted_and_changes_no_answer(self):
        answers = []
        body = {"prompt": (FIXTURES / "haystack.txt").read_text()[:1200], "max_tokens": 120, "temperature": 0, "ignore_eos": True}
        for flags in ([], ["-md", NEEDLE_MODEL, "--draft-kv", "turbo8", "--speculate", "always"]):
            server = Serving("--name", "needle", "--kv", "f16", "--ctx", "2048", *flags)
            try:
                answer = server.post("/v1/completions", body)[1]
                answers.append(answer["choices"][0]["text"])
                end = time.monotonic() + 10  # the engine counts after the last event
                while server.n_requests():
                    self.assertLess(time.monotonic(), end)
                text = server.ask("GET", "/metrics")[1]
                tokens, seconds, accepted = (
                    value(text, f"{name}_total", model_name="needle")
                    for name in ("slipstream:draft_model_tokens", "slipstream:draft_model_seconds",
                                 "vllm:spec_decode_num_accepted_tokens"))
                if not flags:
                    self.assertNotIn("serve.draft_model", server.log())
                    self.assertEqual((tokens, seconds, accepted), (0, 0, 0))
                    continue
                self.assertRegex(server.log(), "event=serve.draft_model .*kv=turbo8 context=2048")
                self.assertGreater(tokens, 0)
                self.assertGreater(seconds, 0)
                self.assertGreater(accepted, 60)
            finally:
                self.assertEqual(server.stop(), 0)
        self.assertEqual(*answers)

    def test_mtp_is_counted_and_changes_no_answer(self):
        answers = []
        model = str(pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"]) / "glm4moe-mtp.gguf")
        body = {"prompt": (FIXTURES / "haystack.txt").read_text()[:600], "max_tokens": 60, "temperature": 0, "ignore_eos": True}
        for flags, drafter in (([], "-"), (["--mtp", "on"], "MTP")):
            server = Serving("--kv", "f16", "--ctx", "1024", "--speculate", "always", *flags, model=model)
            try:
                self.assertRegex(server.log(), f"event=serve.model .*drafter={drafter} ")
                answers.append(server.post("/v1/completions", body)[1]["choices"][0]["text"])
                end = time.monotonic() + 10  # the engine counts after the last event
                while server.n_requests():
                    self.assertLess(time.monotonic(), end)
                text = server.ask("GET", "/metrics")[1]
                tokens = value(text, "slipstream:draft_model_tokens_total", model_name="glm4moe-mtp")
                self.assertEqual(tokens > 0, drafter == "MTP")
            finally:
                self.assertEqual(server.stop(), 0)
        self.assertEqual(*answers)

    def test_models_without_mtp_say_so(self):
        server = Serving("--kv", "f16", "--ctx", "512", "--mtp", "auto", "--speculate", "auto")
        try:
            self.assertRegex(server.log(), "event=engine.mtp .*used=no why=.*no layer for it")
        finally:
            self.assertEqual(server.stop(), 0)

    def test_a_draft_model_with_other_tokens_is_refused_at_the_start(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as other:
            other.write(pathlib.Path(NEEDLE_MODEL).read_bytes().replace(b"subroutine", b"Xubroutine", 1))
            other.flush()
            result = subprocess.run([PROGRAM, "serve", NEEDLE_MODEL, "--port", "0", "--ctx", "512",
                                     "--draft-model", other.name], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "other tokens than the model: token [0-9]+ is '.Xubroutine' and not '.subroutine'")

    def test_what_is_computed_twice_is_counted(self):
        """Each API tells it of its request; the metric is the sum."""
        server = Serving("--name", "needle", "--ctx", "1024", "--kv", "f16")
        try:
            def told(path, text):
                field = "input" if path == "/v1/responses" else "messages"
                body = {field: [{"role": "user", "content": text}], "temperature": 0}
                body["max_output_tokens" if field == "input" else "max_tokens"] = 4
                status, answer = server.post(path, body)
                self.assertEqual(status, 200, answer)
                usage = answer["usage"]
                if path == "/v1/messages":
                    return usage["cache_read_input_tokens"], usage["recomputed_input_tokens"]
                details = usage.get("prompt_tokens_details") or usage["input_tokens_details"]
                return details["cached_tokens"], details["recomputed_tokens"]
            for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
                first, second = (f"{path} is about {name}. " + "We met amber lantern. " * 75
                                 for name in ("one", "two"))
                before = self.n_recomputed(server)
                self.assertEqual(told(path, first)[1], 0, "new")
                n_cached, n_recomputed = told(path, first)
                self.assertGreater(n_cached, 500)
                self.assertEqual(n_recomputed, 0, "warm")
                self.assertEqual(told(path, second)[1], 0, "new, and in the place of the first")
                n_cached, n_recomputed = told(path, first)
                self.assertLess(n_cached, 400, "evicted, but for its beginning")
                self.assertGreater(n_recomputed, 400)
                self.assertEqual(self.n_recomputed(server) - before, n_recomputed)
        finally:
            self.assertEqual(server.stop(), 0)

    def n_recomputed(self, server):
        # The engine publishes what it counted before it waits.
        end = time.monotonic() + 10
        while server.n_requests():
            self.assertLess(time.monotonic(), end)
        return value(server.ask("GET", "/metrics")[1], "slipstream:recomputed_prompt_tokens_total",
                     model_name="needle")


class Embeddings(unittest.TestCase):
    def test_vectors_are_of_length_one_and_of_their_text(self):
        server = Serving("--embeddings", "256")
        try:
            status, answer = server.post("/v1/embeddings", {"input": ["amber", "lantern", "amber"]})
            self.assertEqual(status, 200, answer)
            vectors = [entry["embedding"] for entry in answer["data"]]
            self.assertAlmostEqual(math.hypot(*vectors[0]), 1, places=4)
            for ours, theirs in zip(vectors[0], vectors[2]):  # in one batch: products are added up in another order
                self.assertAlmostEqual(ours, theirs, places=4)
            self.assertGreater(max(abs(a - b) for a, b in zip(vectors[0], vectors[1])), 1e-2)
            self.assertEqual(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"])
            _, packed = server.post("/v1/embeddings",
                                    {"input": "amber", "encoding_format": "base64"})
            raw = base64.b64decode(packed["data"][0]["embedding"])
            self.assertEqual(len(raw), 4 * len(vectors[0]))
            for ours, theirs in zip(struct.unpack(f"<{len(vectors[0])}f", raw), vectors[0]):
                self.assertAlmostEqual(ours, theirs, places=6)
            for body, param in (({}, "input"), ({"input": []}, "input"), ({"input": 5}, "input"),
                                ({"input": "word " * 500}, "input"),
                                ({"input": "x", "encoding_format": "hex"}, "encoding_format"),
                                ({"input": ""}, "input"),
                                ({"input": "x", "dimensions": 100_000}, "dimensions")):
                status, answer = server.post("/v1/embeddings", body)
                self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_without_the_flag_it_says_which(self):
        server = Serving()
        try:
            status, answer = server.post("/v1/embeddings", {"input": "x"})
            self.assertEqual(status, 400)
            self.assertIn("--embeddings", answer["error"]["message"])
        finally:
            self.assertEqual(server.stop(), 0)


class DefaultContext(unittest.TestCase):
    """Without --ctx it follows from the model and the memory."""

    def context(self, *arguments, model=LONG_MODEL):
        """(tokens, KV scheme, why), and clients are told the same number"""
        server = Serving(*arguments, model=model)
        try:
            found = server.wait_for_line(r"event=serve\.model .* kv=(\S+) .* context=(\d+) why=(.*)\n")
            _, models, _ = server.ask("GET", "/v1/models")
            self.assertEqual(models["data"][0]["max_model_len"], int(found[2]))
            return int(found[2]), found[1], found[3].strip('"')
        finally:
            self.assertEqual(server.stop(), 0)

    def test_it_is_the_models_own_if_that_fits(self):
        self.assertEqual(self.context(model=NEEDLE_MODEL), (8192, "turbo8v4", "the model's own"))
        self.assertEqual(self.context("--memory", "2GiB"), (262144, "turbo8v4", "the model's own"))

    def test_it_grows_with_scaled_positions(self):
        self.assertEqual(self.context("--rope-scaling", "yarn", "--rope-scale", "4", model=NEEDLE_MODEL),
                         (32768, "turbo8v4", "the model's own, scaled"))

    def test_else_what_fits_and_fewer_bits_only_below_32768_tokens(self):
        fits = "what fits into memory, of 262144"
        n_tokens, kv, why = self.context("--memory", "400MiB")
        self.assertTrue(65536 < n_tokens < 131072 and n_tokens % 4096 == 0, n_tokens)
        self.assertEqual((kv, why), ("turbo8v4", fits))
        n_tokens, kv, why = self.context("--memory", "120MiB")
        self.assertGreaterEqual(n_tokens, 32768)
        self.assertEqual((kv, why), ("turbo3", fits))
        self.assertEqual(self.context("--memory", "60MiB"), (8192, "turbo3", fits))
        self.assertEqual(self.context("--memory", "60MiB", "--ctx", "4096"), (4096, "turbo8v4", "as asked"))

    def test_streamed_experts_keep_their_memory(self):
        streamed = ("--stream-experts", "--memory")
        fits = "what fits into memory, of 262144"
        self.assertEqual(self.context(*streamed, "60MiB", model=EXPERTS_MODEL), (8192, "turbo8v4", fits))
        # A cache of a given size is taken off first, and the context may have more of the rest.
        n_tokens, _, _ = self.context(*streamed, "400MiB", "--expert-cache", "2MiB", model=EXPERTS_MODEL)
        n_fewer, _, _ = self.context(*streamed, "400MiB", "--expert-cache", "150MiB", model=EXPERTS_MODEL)
        self.assertTrue(32768 < n_fewer < n_tokens - 16384, (n_fewer, n_tokens))

    def test_models_that_share_the_memory_fit_together(self):
        alone, _, _ = self.context("--memory", "400MiB")
        server = Serving("--memory", "400MiB", "--model", f"b={LONG_MODEL}", model=LONG_MODEL)
        try:
            self.assertEqual(server.post("/v1/completions", {**GREEDY, "model": "b"})[0], 200)
            _, models, _ = server.ask("GET", "/v1/models")
            lengths = [model["max_model_len"] for model in models["data"] if model["loaded"]]
            self.assertEqual(len(lengths), 2, models)
            self.assertTrue(32768 <= lengths[0] == lengths[1] < alone, lengths)
        finally:
            self.assertEqual(server.stop(), 0)


class SeveralModels(unittest.TestCase):
    """The needle model under several names; each counts as a model of its own."""

    def serve(self, *arguments):
        server = Serving("--kv", "turbo4", "--ctx", "2048", *arguments, model=None)
        self.addCleanup(server.stop)
        return server

    def loaded(self, server):
        _, models, _ = server.ask("GET", "/v1/models")
        return {model["id"] for model in models["data"] if model["loaded"]}

    def test_loaded_when_asked_for_and_unloaded_for_room(self):
        server = self.serve("--model", f"a={NEEDLE_MODEL}", "--model", f"b={NEEDLE_MODEL}",
                            "--memory", "50MiB")
        self.assertEqual(self.loaded(server), set())
        for name in ("a", "b", "a"):
            status, answer = server.post("/v1/completions", {**GREEDY, "model": name})
            self.assertEqual((status, answer["model"]), (200, name), answer)
            self.assertEqual(self.loaded(server), {name}, "only one fits")
        status, model, _ = server.ask("GET", "/v1/models/%61")
        self.assertEqual((status, model["id"], model["loaded"]), (200, "a", True))
        self.assertEqual(server.ask("GET", "/v1/models/c")[0], 404)
        status, answer = server.post("/v1/completions", {**GREEDY, "model": "c"})
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))
        self.assertIn("'a', 'b'", answer["error"]["message"])

    def test_a_model_in_use_stays_and_the_other_is_told_to_wait(self):
        server = self.serve("--model", f"a={NEEDLE_MODEL}", "--model", f"b={NEEDLE_MODEL}",
                            "--memory", "50MiB")
        answers = []
        long = {**GREEDY, "model": "a", "max_tokens": 1900, "ignore_eos": True}
        busy = threading.Thread(target=lambda: answers.append(server.post("/v1/completions", long)))
        busy.start()
        server.wait_for_line("event=serve.load .*model=a")
        status, answer, headers = server.ask("POST", "/v1/completions", {**GREEDY, "model": "b"})
        self.assertEqual((status, headers["Retry-After"]), (503, "1"), answer)
        busy.join()
        self.assertEqual(answers[0][1]["usage"]["completion_tokens"], 1900)
        self.assertEqual(server.post("/v1/completions", {**GREEDY, "model": "b"})[0], 200)

    def test_pinned_ones_are_loaded_at_once_and_idle_ones_go(self):
        server = self.serve("--model", f"a={NEEDLE_MODEL}", "--model", f"b={NEEDLE_MODEL}",
                            "--pin", "a", "--idle-timeout", "1")
        self.assertEqual(self.loaded(server), {"a"})
        server.post("/v1/completions", {**GREEDY, "model": "b"})
        self.assertEqual(self.loaded(server), {"a", "b"})
        server.wait_for_line("event=serve.unload .*model=b")
        self.assertEqual(self.loaded(server), {"a"})

    def test_many_who_ask_at_once_load_once(self):
        server = self.serve("--model", f"a={NEEDLE_MODEL}")
        statuses = []
        asking = [threading.Thread(target=lambda: statuses.append(
            server.post("/v1/completions", GREEDY)[0])) for _ in range(16)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        self.assertEqual(statuses, [200] * 16)
        self.assertEqual(server.log().count("event=serve.load "), 1)


class Browsers(unittest.TestCase):
    def test_pages_of_strangers_are_refused(self):
        server = Serving("--cors-origin", "https://chat.example")
        self.addCleanup(server.stop)
        post = lambda **headers: server.ask("POST", "/v1/completions", GREEDY, headers)  # noqa: E731
        self.assertEqual(post(Host="evil.example")[0], 403)
        self.assertEqual(post(Origin="https://evil.example")[0], 403)
        self.assertEqual(post(Origin=f"http://127.0.0.1:{server.port}")[0], 200)
        status, _, headers = post(Origin="https://chat.example")
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]),
                         (200, "https://chat.example"))
        status, _, headers = server.ask("OPTIONS", "/v1/completions", None,
                                        {"Origin": "https://chat.example"})
        self.assertEqual(status, 204)
        self.assertIn("Authorization", headers["Access-Control-Allow-Headers"])
        _, _, headers = server.ask("OPTIONS", "/v1/messages", None, {
            "Origin": "https://chat.example", "Access-Control-Request-Headers": "x-stainless-os"})
        self.assertEqual(headers["Access-Control-Allow-Headers"], "x-stainless-os")


class ServiceManager(unittest.TestCase):
    def test_is_told_of_the_start_and_the_end(self):
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            path = os.path.join(folder, "notify")
            listener.bind(path)
            listener.settimeout(30)
            os.environ["NOTIFY_SOCKET"] = path
            try:
                server = Serving()
            finally:
                del os.environ["NOTIFY_SOCKET"]
            self.assertEqual(listener.recv(100), b"READY=1")
            self.assertEqual(server.stop(), 0)
            self.assertEqual(listener.recv(100), b"STOPPING=1")


if __name__ == "__main__":
    unittest.main()
