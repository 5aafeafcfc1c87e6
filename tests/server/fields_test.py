"""Fields that clients of vLLM and llama-server send to `slipstream serve`.

Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import unittest

from serving import Serving

QUESTION = [{"role": "user", "content": "We met amber lantern today.\nWhat is the full name of amber?"}]
ANSWER = "It is amber lantern."


class Fields(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # f16: with a compressed cache the same tokens at other cells are rounded otherwise.
        cls.server = Serving("--name", "needle", "--ctx", "4096", "--kv", "f16")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def chat(self, **fields):
        status, answer = self.server.post("/v1/chat/completions", {
            "messages": QUESTION, "temperature": 0, "max_tokens": 64, **fields})
        self.assertEqual(status, 200, answer)
        return answer

    def refusal(self, path, **fields):
        body = {"messages": QUESTION} if "chat" in path or "messages" in path else {"prompt": "Once"}
        status, answer = self.server.post(path, {**body, "max_tokens": 8, **fields})
        self.assertEqual(status, 400, answer)
        return answer["error"]

    def tokens(self, text):
        return self.server.post("/tokenize", {"prompt": text, "add_special_tokens": False})[1]["tokens"]


class Endings(Fields):
    def test_an_answer_has_at_least_min_tokens(self):
        short = self.chat()
        self.assertEqual(short["choices"][0]["message"]["content"], ANSWER)
        n_short = short["usage"]["completion_tokens"]
        self.assertLess(n_short, 30)
        long = self.chat(min_tokens=30)
        self.assertGreater(long["usage"]["completion_tokens"], 30)
        self.assertTrue(long["choices"][0]["message"]["content"].startswith(ANSWER))
        # The end is one token more than the answer: it may come as soon as the answer is long enough.
        self.assertEqual(self.chat(min_tokens=n_short - 1)["usage"]["completion_tokens"], n_short)

    def test_no_stop_ends_an_answer_before_min_tokens(self):
        is_token = self.tokens(" is")[0]
        for stop in ({"stop": " is"}, {"stop_token_ids": [is_token]}):
            self.assertEqual(self.chat(**stop)["choices"][0]["message"]["content"], "It")
        whole = self.chat(min_tokens=4, stop=" is")["choices"][0]
        self.assertEqual((whole["message"]["content"], whole["finish_reason"]), (ANSWER, "stop"))
        # A token that must not come is not chosen; a text is no token.
        other = self.chat(min_tokens=8, stop_token_ids=[is_token])["choices"][0]["message"]["content"]
        self.assertTrue(other.startswith("It"))
        self.assertNotIn(" is", other)

    def test_a_grammar_that_is_complete_ends_the_answer_all_the_same(self):
        answer = self.chat(min_tokens=30, grammar='root ::= "yes" | "no"')["choices"][0]
        self.assertIn(answer["message"]["content"], ("yes", "no"))
        self.assertEqual(answer["finish_reason"], "stop")

    def test_a_stop_token_ends_the_answer_and_is_not_in_it(self):
        for path, body in (("/v1/chat/completions", {"messages": QUESTION}),
                           ("/v1/completions", {"prompt": "Once upon a time"})):
            body = {**body, "max_tokens": 12, "temperature": 0}
            def text_of(choice):
                return choice["message"]["content"] if "message" in choice else choice["text"]
            whole = text_of(self.server.post(path, body)[1]["choices"][0])
            third = self.tokens(whole)[2]
            piece = self.server.post("/detokenize", {"tokens": [third]})[1]["prompt"]
            stopped = self.server.post(path, {**body, "stop_token_ids": [third]})[1]
            choice = stopped["choices"][0]
            self.assertEqual(choice["finish_reason"], "stop")
            self.assertEqual(text_of(choice), whole[:whole.index(piece)])
            self.assertEqual(stopped["usage"]["completion_tokens"], 3)

    def test_what_makes_no_sense_is_named(self):
        for path in ("/v1/chat/completions", "/v1/completions", "/v1/messages"):
            self.assertEqual(self.refusal(path, min_tokens=9)["message"],
                             "'min_tokens' is 9, more than the 8 tokens that the answer may have")
            for ids in ([1.5], ["1"], [-1], [1] * 65):
                self.assertEqual(self.refusal(path, stop_token_ids=ids)["message"],
                                 "'stop_token_ids' must be an array of up to 64 token ids")
            self.assertRegex(self.refusal(path, stop_token_ids=[1 << 30])["message"],
                             r"^stop_token_ids names token 1073741824, but the vocabulary has 0 to")
        self.assertEqual(self.refusal("/v1/completions", min_tokens=-1)["param"], "min_tokens")
        # Without max_tokens a completion has 16.
        self.assertIn("more than the 16", self.refusal(
            "/v1/completions", max_tokens=None, min_tokens=17)["message"])


class Continuation(Fields):
    BEGUN = [*QUESTION, {"role": "assistant", "content": "It is am"}]

    def test_the_last_message_goes_on(self):
        fields = {"messages": self.BEGUN, "continue_final_message": True}
        for more in ({}, {"add_generation_prompt": False}):
            answer = self.chat(**fields, **more)
            choice = answer["choices"][0]
            self.assertEqual((choice["message"]["content"], choice["finish_reason"]), ("ber lantern.", "stop"))
        events = self.server.events("/v1/chat/completions", {**fields, "temperature": 0, "max_tokens": 64})
        self.assertEqual("".join(e["choices"][0]["delta"].get("content", "") for e in events), "ber lantern.")
        parts = [*QUESTION, {"role": "assistant", "content": [{"type": "text", "text": "It is amber"}]}]
        self.assertEqual(self.chat(messages=parts, continue_final_message=True)
                         ["choices"][0]["message"]["content"], " lantern.")

    def test_the_prompt_is_that_of_the_answer_so_far(self):
        """Nothing of it is computed again but the last token, however it was cut."""
        whole = self.chat()["usage"]["prompt_tokens"]
        usage = self.chat(messages=self.BEGUN, continue_final_message=True)["usage"]
        self.assertGreaterEqual(usage["prompt_tokens_details"]["cached_tokens"], whole)

    def test_anthropics_last_message_is_the_beginning_of_the_answer(self):
        for content in ("It is am", [{"type": "text", "text": "It is am"}]):
            status, answer = self.server.post("/v1/messages", {
                "messages": [*QUESTION, {"role": "assistant", "content": content}],
                "max_tokens": 64, "temperature": 0})
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer["content"], [{"type": "text", "text": "ber lantern."}])

    def test_what_makes_no_sense_is_refused(self):
        call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        tools = [{"type": "function", "function": {"name": "f"}}]
        for more, words in (
                ({"messages": QUESTION}, "needs a last message of the assistant"),
                ({"add_generation_prompt": True}, "exclude each other"),
                ({"messages": [*QUESTION, {"role": "assistant", "content": "It", "tool_calls": [call]}]},
                 "a message that calls tools is complete"),
                ({"response_format": {"type": "json_object"}}, "cannot be made to fit a schema"),
                ({"tools": tools, "tool_choice": "required"}, "to call a tool")):
            error = self.refusal("/v1/chat/completions", **{
                "messages": self.BEGUN, "continue_final_message": True, **more})
            self.assertEqual(error["param"], "continue_final_message")
            self.assertIn(words, error["message"])
        error = self.refusal("/v1/chat/completions", continue_final_message=True,
                             messages=[*QUESTION, {"role": "assistant", "content": " "}])
        self.assertEqual(error["message"], "the last message has no text that could be continued")
        self.assertEqual(self.refusal("/v1/chat/completions", continue_final_message="yes")["param"],
                         "continue_final_message")


class Figures(Fields):
    def test_timings_are_those_of_llama_server(self):
        keys = {"cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second",
                "predicted_n", "predicted_ms", "predicted_per_token_ms", "predicted_per_second"}
        answer = self.chat()
        timings, usage = answer["timings"], answer["usage"]
        self.assertEqual(set(timings) - {"draft_n", "draft_n_accepted"}, keys)
        self.assertEqual(timings["cache_n"] + timings["prompt_n"], usage["prompt_tokens"])
        self.assertEqual(timings["predicted_n"], usage["completion_tokens"])
        self.assertGreater(timings["prompt_ms"], 0)
        self.assertGreater(timings["predicted_ms"], 0)
        body = {"messages": QUESTION, "temperature": 0, "max_tokens": 64}
        events = self.server.events("/v1/chat/completions", {**body, "timings_per_token": True})
        self.assertNotIn("timings", events[0])  # says only who speaks
        counts = [event["timings"]["predicted_n"] for event in events[1:]]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual((counts[0], counts[-1]), (1, usage["completion_tokens"]))
        self.assertTrue(all("timings" not in event for event in self.server.events(
            "/v1/chat/completions", body)))

    def test_the_fingerprint_is_that_of_model_and_cache(self):
        mine = self.chat()["system_fingerprint"]
        self.assertRegex(mine, "^fp_[0-9a-f]{16}$")
        def of(*arguments):
            server = Serving("--ctx", "4096", *arguments)
            answer = server.post("/v1/completions", {"prompt": "Once", "max_tokens": 1})[1]
            self.assertEqual(server.stop(), 0)
            return answer["system_fingerprint"]
        self.assertEqual(of("--kv", "f16"), mine, "the same after a restart")
        self.assertNotEqual(of("--kv", "turbo4"), mine)

    def test_more_values_than_a_context_takes_are_those_of_a_field(self):
        # Numbers in a field that no template reads; the largest one is named as the API has it.
        many = {"role": "user", "content": "hi", "x": list(range(20000))}
        system = [{"type": "text", "text": "hi", "x": list(range(20000))}]
        for path, body, field in (
                ("/v1/chat/completions", {"messages": [many]}, "messages"),
                ("/v1/chat/completions", {"messages": QUESTION, "tools": [many]}, "tools"),
                ("/v1/responses", {"input": [many]}, "input"),
                ("/v1/messages", {"messages": QUESTION, "system": system, "max_tokens": 1}, "system")):
            status, answer = self.server.post(path, body)
            self.assertEqual(status, 400)
            self.assertRegex(answer["error"]["message"],
                             f"has 2\\d+ values, 2\\d+ of them in '{field}', more than the 17408 that a "
                             "context of 4096 tokens takes")
            self.assertEqual(answer["error"].get("param", field), field)


class Props(Fields):
    def test_the_server_says_what_it_is(self):
        status, props, _ = self.server.ask("GET", "/props")
        self.assertEqual(status, 200, props)
        self.assertEqual(props["default_generation_settings"]["n_ctx"], 4096)
        self.assertEqual(props["default_generation_settings"]["params"]["temperature"], 1)
        self.assertEqual((props["model_alias"], props["model_path"]), ("needle", "needle-4m.gguf"))
        self.assertIn("<|im_start|>", props["chat_template"])
        self.assertEqual(props["eos_token"], "<|im_end|>")
        self.assertEqual(props["modalities"], {"vision": False, "video": False, "audio": False})
        self.assertRegex(props["build_info"], r"^slipstream \S+ \(llama.cpp .*, ggml .*\)$")
        self.assertEqual(self.server.ask("GET", "/props?model=needle")[1], props)
        self.assertEqual(self.server.ask("GET", "/props?model=other")[0], 404)
        self.assertEqual(self.server.post("/props", {})[0], 405)

    def test_slots_tell_sizes_and_no_texts(self):
        n_slots = self.server.ask("GET", "/props")[1]["total_slots"]
        idle = [{"id": i, "n_ctx": 4096, "speculative": False, "is_processing": False}
                for i in range(n_slots)]
        self.assertEqual(self.server.ask("GET", "/slots")[1], idle)
        connection = self.server.connection()
        connection.request("POST", "/v1/completions", json.dumps({
            "prompt": "Once upon a secret", "max_tokens": 3000, "ignore_eos": True, "stream": True}))
        response = connection.getresponse()
        self.assertIn(b"data: ", response.readline())  # it has begun
        self.server.wait_for_requests(1)  # figures are those of the last whole step
        slots = self.server.ask("GET", "/slots")[1]
        response.close()
        connection.close()
        self.assertEqual([slot["is_processing"] for slot in slots], [True] + [False] * (n_slots - 1))
        n_prompt = len(self.tokens("Once upon a secret"))
        self.assertIn(slots[0]["n_prompt_tokens"], (n_prompt, n_prompt + 1))
        self.assertEqual(slots[0]["n_prompt_tokens_processed"], slots[0]["n_prompt_tokens"])
        next_token = slots[0]["next_token"][0]
        self.assertEqual(next_token["n_decoded"] + next_token["n_remain"], 3000)
        self.assertNotIn("secret", json.dumps(slots))

    def test_a_template_is_applied(self):
        def prompt(**body):
            status, answer = self.server.post("/apply-template", body)
            self.assertEqual(status, 200, answer)
            return answer["prompt"]
        hi = [{"role": "user", "content": "hi"}]
        open_turn = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
        self.assertEqual(prompt(messages=hi), open_turn)
        self.assertEqual(prompt(messages=hi, add_generation_prompt=False),
                         open_turn.removesuffix("<|im_start|>assistant\n"))
        ho = [*hi, {"role": "assistant", "content": "ho"}]
        self.assertEqual(prompt(messages=ho, continue_final_message=True), open_turn + "ho")
        self.assertEqual(self.server.post("/apply-template", {})[1]["error"]["param"], "messages")

    def test_they_are_behind_the_key(self):
        server = Serving("--api-key", "sk-one")
        for method, path in (("GET", "/props"), ("GET", "/slots"), ("POST", "/apply-template")):
            self.assertEqual(server.ask(method, path, "{}" if method == "POST" else None)[0], 401)
        self.assertEqual(server.ask("GET", "/slots", headers={"Authorization": "Bearer sk-one"})[0], 200)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
