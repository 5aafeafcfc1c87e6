"""`slipstream serve` as its clients and its operator meet it: completions, errors, keys, drain.

Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import signal
import socket
import threading
import time
import unittest

from serving import FIXTURES, Serving

PROMPT = "Once upon a time"
GREEDY = {"prompt": PROMPT, "max_tokens": 12, "temperature": 0}


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # f16: with a compressed cache the same tokens at other cells are rounded otherwise.
        cls.server = Serving("--name", "needle", "--ctx", "4096", "--kv", "f16")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def error(self, path, body):
        status, answer = self.server.post(path, body)
        return status, answer["error"]

    def test_streamed_and_whole_are_the_same(self):
        status, whole = self.server.post("/v1/completions", GREEDY)
        self.assertEqual(status, 200)
        self.assertEqual((whole["object"], whole["model"]), ("text_completion", "needle"))
        choice = whole["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(whole["usage"]["completion_tokens"], 12)
        events = self.server.events("/v1/completions", GREEDY)
        self.assertEqual("".join(e["choices"][0]["text"] for e in events), choice["text"])
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        self.assertEqual(len({event["id"] for event in events}), 1)

    def test_usage_comes_last_in_a_stream_if_asked_for(self):
        events = self.server.events("/v1/completions",
                                    {**GREEDY, "stream_options": {"include_usage": True}})
        self.assertEqual(events[-1]["choices"], [])
        self.assertEqual(events[-1]["usage"]["completion_tokens"], 12)
        self.assertTrue(all(event["usage"] is None for event in events[:-1]))
        events = self.server.events("/v1/completions", GREEDY)
        self.assertTrue(all("usage" not in event for event in events))

    def test_several_prompts_and_answers(self):
        _, tokens = self.server.post("/tokenize", {"prompt": PROMPT})
        status, answer = self.server.post("/v1/completions", {
            **GREEDY, "prompt": [PROMPT, "The sea"], "n": 2})
        self.assertEqual(status, 200)
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2, 3])
        texts = [choice["text"] for choice in answer["choices"]]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])
        _, by_tokens = self.server.post("/v1/completions", {**GREEDY, "prompt": tokens["tokens"]})
        self.assertEqual(by_tokens["choices"][0]["text"], texts[0])

    def test_the_same_seed_gives_the_same_answer(self):
        ask = {**GREEDY, "temperature": 1, "seed": 7, "max_tokens": 30}
        first, second, other = (self.server.post("/v1/completions", body)[1]["choices"][0]["text"]
                                for body in (ask, ask, {**ask, "seed": 8}))
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)

    def test_echo_with_logprobs_judges_the_prompt(self):
        _, answer = self.server.post("/v1/completions", {**GREEDY, "echo": True, "logprobs": 2})
        choice = answer["choices"][0]
        self.assertTrue(choice["text"].startswith(PROMPT))
        logprobs = choice["logprobs"]
        n_tokens = answer["usage"]["total_tokens"]
        self.assertEqual(len(logprobs["tokens"]), n_tokens)
        self.assertIsNone(logprobs["token_logprobs"][0])
        self.assertTrue(all(value <= 0 for value in logprobs["token_logprobs"][1:]))
        self.assertEqual(len(logprobs["top_logprobs"][-1]), 2)

    def test_stops_before_a_stop_string(self):
        _, answer = self.server.post("/v1/completions", GREEDY)
        text = answer["choices"][0]["text"]
        stop = text[4:8]
        _, stopped = self.server.post("/v1/completions", {**GREEDY, "stop": [stop]})
        self.assertEqual(stopped["choices"][0]["text"], text[:text.index(stop)])
        self.assertEqual(stopped["choices"][0]["finish_reason"], "stop")

    def test_tokens_there_and_back(self):
        _, tokens = self.server.post("/tokenize", {"prompt": "naïve 日本 🙂"})
        self.assertEqual(tokens["count"], len(tokens["tokens"]))
        _, text = self.server.post("/detokenize", {"tokens": tokens["tokens"]})
        self.assertEqual(text["prompt"], "naïve 日本 🙂")

    def test_the_list_of_models(self):
        _, models, _ = self.server.ask("GET", "/v1/models")
        self.assertEqual([model["id"] for model in models["data"]], ["needle"])

    def test_what_does_not_fit_is_said_with_both_numbers(self):
        long = (FIXTURES / "haystack.txt").read_text() * 4
        status, error = self.error("/v1/completions", {**GREEDY, "prompt": long})
        self.assertEqual((status, error["code"]), (400, "context_length_exceeded"))
        self.assertRegex(error["message"], r"4096 tokens.*requested \d{4,} tokens")

    def test_wrong_fields_are_named(self):
        for change, param in (({"temperature": "hot"}, "temperature"), ({"top_p": 2}, "top_p"),
                              ({"max_tokens": 0}, "max_tokens"), ({"n": 1.5}, "n"),
                              ({"stop": [1]}, "stop"), ({"prompt": None}, "prompt"),
                              ({"prompt": []}, "prompt"), ({"prompt": [-1]}, "prompt"),
                              ({"stream_options": {}}, "stream_options"),
                              ({"logit_bias": {"x": 1}}, "logit_bias"),
                              ({"suffix": "end"}, "suffix"), ({"model": "gpt-4"}, "model")):
            status, error = self.error("/v1/completions", {**GREEDY, **change})
            self.assertIn(status, (400, 404), change)
            self.assertEqual(error["param"], param, error)
            self.assertTrue(error["type"])
        self.assertEqual(self.server.post("/v1/completions", {**GREEDY, "unheard_of": 1})[0], 200)

    def test_what_is_no_json_no_route_or_too_large(self):
        for body in ("", "[]", "{", '{"prompt": "\xff"}'.encode("latin-1"), "[" * 100000):
            self.assertEqual(self.server.post("/v1/completions", body)[0], 400, body[:20])
        self.assertEqual(self.server.post("/v1/nothing", {})[0], 404)
        self.assertEqual(self.server.ask("GET", "/v1/completions")[0], 405)
        self.assertEqual(self.server.ask("GET", "/health", headers={"X": "x" * 100000})[0], 431)
        connection = self.server.connection()
        connection.putrequest("POST", "/v1/completions")
        connection.putheader("Content-Length", str(10**12))
        connection.endheaders()
        self.assertEqual(connection.getresponse().status, 413)
        connection.close()

    def test_a_request_id_comes_back_and_into_the_log(self):
        _, _, headers = self.server.ask("GET", "/health", headers={"X-Request-Id": "mine-1"})
        self.assertEqual(headers["X-Request-Id"], "mine-1")
        self.server.wait_for_line("request=mine-1 ")
        _, _, headers = self.server.ask("GET", "/health", headers={"X-Request-Id": 'a"b'})
        self.assertNotIn('"', headers["X-Request-Id"])

    def test_a_client_that_goes_frees_its_place(self):
        body = json.dumps({**GREEDY, "max_tokens": 3000, "stream": True, "ignore_eos": True})
        for _ in range(20):
            connection = self.server.connection()
            connection.request("POST", "/v1/completions", body)
            response = connection.getresponse()
            response.read(50)
            response.close()
            connection.close()
        started = time.monotonic()
        self.assertEqual(self.server.post("/v1/completions", GREEDY)[0], 200)
        self.assertLess(time.monotonic() - started, 5, "others were still computed")

    def test_one_connection_for_many_requests(self):
        connection = self.server.connection()
        for _ in range(3):
            connection.request("POST", "/v1/completions", json.dumps(GREEDY))
            self.assertEqual(json.load(connection.getresponse())["object"], "text_completion")
        connection.close()

    def test_slow_and_idle_clients_hold_up_nobody(self):
        idle = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(200)]
        for connection in idle[:100]:
            connection.send(b"POST /v1/completions HTTP/1.1\r\nContent-Le")
        started = time.monotonic()
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)
        self.assertLess(time.monotonic() - started, 0.5)
        for connection in idle:
            connection.close()


class Keys(unittest.TestCase):
    def test_only_who_has_a_key_may_ask(self):
        server = Serving("--api-key", "first", "--api-key", "second")
        try:
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            for key in (None, "Bearer ", "Bearer wrong", "first", "Bearer firstt"):
                headers = {} if key is None else {"Authorization": key}
                status, answer = server.post("/v1/completions", GREEDY, headers)
                self.assertEqual((status, answer["error"]["code"]), (401, "invalid_api_key"), key)
                self.assertEqual(server.ask("GET", "/v1/nothing", headers=headers)[0], 401)
            long = (FIXTURES / "haystack.txt").read_text()[:3000]
            n_cached = {}
            for key in ("first", "first", "second"):
                status, answer = server.post("/v1/completions", {**GREEDY, "prompt": long},
                                             {"Authorization": f"Bearer {key}"})
                self.assertEqual(status, 200)
                n_cached[key] = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            self.assertGreater(n_cached["first"], 0)
            self.assertEqual(n_cached["second"], 0, "a prefix of another's is never shown")
        finally:
            self.assertEqual(server.stop(), 0)


class Limits(unittest.TestCase):
    def test_a_full_house_is_429(self):
        server = Serving("--queue", "2", "--parallel", "1")
        try:
            body = json.dumps({**GREEDY, "max_tokens": 4000, "ignore_eos": True})
            busy = [server.connection() for _ in range(2)]
            for connection in busy:
                connection.request("POST", "/v1/completions", body)
            server.wait_for_requests(2)
            status, answer, headers = server.ask("POST", "/v1/completions", GREEDY)
            self.assertEqual((status, headers["Retry-After"]), (429, "1"), answer)
            for connection in busy:
                connection.close()
        finally:
            self.assertEqual(server.stop(), 0)


class Ending(unittest.TestCase):
    def test_drains_what_is_in_progress(self):
        server = Serving("--drain-timeout", "300")
        answers = []
        asking = threading.Thread(target=lambda: answers.append(
            server.post("/v1/completions", {**GREEDY, "max_tokens": 1500, "ignore_eos": True})))
        asking.start()
        server.wait_for_requests(1)
        server.process.send_signal(signal.SIGTERM)
        asking.join()
        self.assertEqual(answers[0][0], 200)
        self.assertEqual(answers[0][1]["usage"]["completion_tokens"], 1500)
        self.assertEqual(server.stop(), 0)

    def test_a_second_signal_does_not_wait(self):
        server = Serving("--drain-timeout", "600")
        connection = server.connection()
        connection.request("POST", "/v1/completions", json.dumps(
            {**GREEDY, "max_tokens": 8000, "ignore_eos": True}))
        server.wait_for_requests(1)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_line(r"event=serve\.drain ")
        started = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - started, 5)
        connection.close()


if __name__ == "__main__":
    unittest.main()
