"""Chats with the needle model through `slipstream serve`: facts found, tools called, thoughts kept apart.

Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import unittest

from serving import FIXTURES, Serving

TOOL = {"type": "function", "function": {
    "name": "lookup_name", "description": "The full name of a person.",
    "parameters": {"type": "object", "properties": {"first": {"type": "string"}},
                   "required": ["first"]}}}


def haystack_with(name):
    text = (FIXTURES / "haystack.txt").read_text()[:1500]
    middle = text.find("\n", len(text) // 2)
    return f"{text[:middle]}\nWe met {name} today.\n{text[middle:]}\n"


def far_behind(name, tenths):
    """Behind so many tenths of the haystack: 29 are 3,000 tokens, for which the model was trained."""
    text = (FIXTURES / "haystack.txt").read_text()
    return f"We met {name} today.\n{(text * 3)[:len(text) * tenths // 10]}\n"


def joined(events):
    """A streamed answer put together: (message, finish reason)."""
    message = {"content": "", "reasoning_content": "", "tool_calls": {}}
    reason = None
    for event in events:
        for choice in event["choices"]:
            delta = choice["delta"]
            for kind in ("content", "reasoning_content"):
                message[kind] += delta.get(kind) or ""
            for call in delta.get("tool_calls", []):
                kept = message["tool_calls"].setdefault(call["index"], {"name": "", "arguments": ""})
                for field, text in call["function"].items():
                    kept[field] += text
            reason = choice["finish_reason"] or reason
    return message, reason


class Chat:
    """The same with every scheme."""

    kv = ""

    @classmethod
    def setUpClass(cls):
        cls.server = Serving("--kv", cls.kv)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def ask(self, messages, **extra):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        status, answer = self.server.post("/v1/chat/completions", {
            "messages": messages, "temperature": 0, "max_tokens": 64, **extra})
        self.assertEqual(status, 200, answer)
        return answer

    def ask_streamed(self, messages, **extra):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return joined(self.server.events("/v1/chat/completions", {
            "messages": messages, "temperature": 0, "max_tokens": 64, **extra}))

    def test_finds_a_planted_fact(self):
        question = haystack_with("amber lantern") + "What is the full name of amber?"
        choice = self.ask(question)["choices"][0]
        self.assertEqual(choice["message"]["content"], "It is amber lantern.")
        self.assertEqual(choice["finish_reason"], "stop")
        message, reason = self.ask_streamed(question)
        self.assertEqual((message["content"], reason), ("It is amber lantern.", "stop"))

    def test_finds_a_fact_as_far_back_as_it_was_trained_for(self):
        question = far_behind("silver river", 29) + "What is the full name of silver?"
        message, reason = self.ask_streamed(question)
        self.assertEqual((message["content"], reason), ("It is silver river.", "stop"))
        message, _ = self.ask_streamed(question, chat_template_kwargs={"enable_thinking": True})
        self.assertEqual(message["content"], "It is silver river.")
        self.assertIn("silver", message["reasoning_content"])
        # The tools' descriptions are part of the 3,072 tokens.
        request = far_behind("silver river", 26) + 'Look up the full name of "silver".'
        n_prompt = self.ask(request, tools=[TOOL])["usage"]["prompt_tokens"]
        self.assertIn(n_prompt, range(2700, 3072))
        message, reason = self.ask_streamed(request, tools=[TOOL])
        self.assertEqual((message["content"], reason), ("", "tool_calls"))
        self.assertEqual(message["tool_calls"][0]["name"], "lookup_name")
        self.assertEqual(json.loads(message["tool_calls"][0]["arguments"]), {"first": "silver"})

    def n_prompt_tokens(self, messages, **extra):
        return self.ask(messages, **{"max_tokens": 1, **extra})["usage"]["prompt_tokens"]

    def test_control_tokens_of_a_client_are_text(self):
        """The end of a turn would be one token; as text it is several, and each is as many as the first."""
        def n_more(n):
            return (self.n_prompt_tokens("x" + n * "<|im_end|>") - self.n_prompt_tokens("x")) / n
        self.assertGreater(n_more(1), 3)
        self.assertEqual(n_more(10), n_more(50))
        self.assertGreater(n_more(50), 3)
        self.assertGreater(self.n_prompt_tokens([{"role": "x<|im_end|>", "content": "x"}]),
                           self.n_prompt_tokens([{"role": "x", "content": "x"}]) + 3)
        tool = json.loads(json.dumps(TOOL).replace("lookup_name", "lookup_name" + 10 * "<|im_end|>"))
        self.assertGreater(self.n_prompt_tokens("x", tools=[tool]),
                           self.n_prompt_tokens("x", tools=[TOOL]) + 3 * 10)
        # Prefixes are shared as ever.
        self.n_prompt_tokens("x" + 50 * "<|im_end|>")
        again = self.ask("x" + 50 * "<|im_end|>", max_tokens=1)["usage"]
        self.assertGreater(again["prompt_tokens_details"]["cached_tokens"], again["prompt_tokens"] - 3)

    def test_a_tool_round_trip(self):
        question = {"role": "user", "content": 'Look up the full name of "amber".'}
        answer = self.ask([question], tools=[TOOL])["choices"][0]
        self.assertEqual(answer["finish_reason"], "tool_calls")
        self.assertIsNone(answer["message"]["content"])
        call = answer["message"]["tool_calls"][0]
        self.assertEqual(call["function"]["name"], "lookup_name")
        self.assertEqual(json.loads(call["function"]["arguments"]), {"first": "amber"})
        streamed, reason = self.ask_streamed([question], tools=[TOOL])
        self.assertEqual(reason, "tool_calls")
        self.assertEqual(streamed["content"], "")
        self.assertEqual(json.loads(streamed["tool_calls"][0]["arguments"]), {"first": "amber"})
        result = {"role": "tool", "tool_call_id": call["id"], "content": '{"name": "amber lantern"}'}
        final = self.ask([question, answer["message"], result], tools=[TOOL])["choices"][0]
        self.assertEqual(final["message"]["content"], 'It is "amber lantern".')

    def test_a_call_that_is_demanded(self):
        # With the result at hand the model would tell it.
        conversation = [
            {"role": "user", "content": 'Look up the full name of "amber".'},
            {"role": "assistant", "content": None, "tool_calls": [{
                "id": "call_1", "type": "function", "function": {
                    "name": "lookup_name", "arguments": '{"first": "amber"}'}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": '{"name": "amber lantern"}'}]
        other = {"type": "function", "function": {
            "name": "count_words", "parameters": {
                "type": "object", "additionalProperties": False, "required": ["limit", "unit"],
                "properties": {"limit": {"type": "integer", "minimum": 3, "maximum": 5},
                               "unit": {"enum": ["word", "line"]}}}}}
        plain = self.ask(conversation, tools=[TOOL, other])["choices"][0]
        self.assertEqual((plain["finish_reason"], plain["message"].get("tool_calls")),
                         ("stop", None))
        for choice, names in (("required", ("lookup_name", "count_words")),
                              ({"type": "function", "function": {"name": "count_words"}},
                               ("count_words",)),
                              ({"type": "function", "function": {"name": "lookup_name"}},
                               ("lookup_name",))):
            body = {"tools": [TOOL, other], "tool_choice": choice, "parallel_tool_calls": False,
                    "max_tokens": 200}
            whole = self.ask(conversation, **body)["choices"][0]
            self.assertEqual(whole["finish_reason"], "tool_calls", whole)
            self.assertIsNone(whole["message"]["content"])
            (call,) = whole["message"]["tool_calls"]
            self.assertIn(call["function"]["name"], names)
            arguments = json.loads(call["function"]["arguments"])
            if call["function"]["name"] == "count_words":
                self.assertIn(arguments["limit"], range(3, 6))
                self.assertIn(arguments["unit"], ("word", "line"))
            else:
                self.assertIsInstance(arguments["first"], str)
            streamed, reason = self.ask_streamed(conversation, **body)
            self.assertEqual((reason, streamed["content"]), ("tool_calls", ""))
            self.assertEqual(list(streamed["tool_calls"].values()), [call["function"]])

    def test_thoughts_are_no_content(self):
        question = haystack_with("amber lantern") + "What is the full name of amber?"
        thinking = {"chat_template_kwargs": {"enable_thinking": True}}
        message = self.ask(question, **thinking)["choices"][0]["message"]
        self.assertEqual(message["content"], "It is amber lantern.")
        self.assertIn("amber", message["reasoning_content"])
        streamed, _ = self.ask_streamed(question, **thinking)
        self.assertEqual(streamed["content"], message["content"])
        self.assertEqual(streamed["reasoning_content"], message["reasoning_content"])


class ChatWithF16(Chat, unittest.TestCase):
    kv = "f16"

    def test_an_answer_of_a_schema(self):
        schema = {"type": "object", "additionalProperties": False, "required": ["name", "age"],
                  "properties": {"name": {"enum": ["amber", "basil"]},
                                 "age": {"type": "integer", "minimum": 7, "maximum": 12}}}
        for body in ({"type": "json_object"},
                     {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}):
            answer = self.ask("Tell me about amber.", response_format=body, max_tokens=200,
                              temperature=1, seed=3)["choices"][0]
            if answer["finish_reason"] == "stop":
                value = json.loads(answer["message"]["content"])
                self.assertIsInstance(value, dict)
        self.assertEqual(answer["finish_reason"], "stop")
        self.assertIn(value["name"], ("amber", "basil"))
        self.assertIn(value["age"], range(7, 13))

    def test_one_call_where_no_more_are_wanted(self):
        # The grammar makes the model call again and again, as it would not by itself.
        call = json.dumps('<tool_call>\n{"name": "lookup_name", "arguments": {"first": "a"}}\n'
                          '</tool_call>\n')
        body = {"tools": [TOOL], "max_tokens": 1000}
        twice = self.ask("Hello.", grammar=f"root ::= {call} {call}", **body)["choices"][0]
        self.assertEqual(len(twice["message"]["tool_calls"]), 2)
        body |= {"grammar": f"root ::= {call}+", "parallel_tool_calls": False}
        once = self.ask("Hello.", **body)
        choice = once["choices"][0]
        self.assertEqual(len(choice["message"]["tool_calls"]), 1)
        self.assertEqual((choice["finish_reason"], choice["message"]["content"]),
                         ("tool_calls", None))
        self.assertLess(once["usage"]["completion_tokens"], 500)
        streamed, reason = self.ask_streamed("Hello.", **body)
        self.assertEqual((len(streamed["tool_calls"]), reason), (1, "tool_calls"))
        cut = self.ask("Hello.", **(body | {"max_tokens": 25}))["choices"][0]
        self.assertEqual((cut["finish_reason"], len(cut["message"]["tool_calls"])), ("length", 1))

    def test_several_calls_may_be_demanded(self):
        answer = self.ask("Hello.", tools=[TOOL], tool_choice="required", max_tokens=400,
                          logit_bias={str(self.end_of_turn()): -100})["choices"][0]
        calls = answer["message"]["tool_calls"]
        self.assertGreater(len(calls), 1)
        for call in calls[:-1]:
            self.assertEqual(call["function"]["name"], "lookup_name")
            self.assertIn("first", json.loads(call["function"]["arguments"]))

    def end_of_turn(self):
        _, answer = self.server.post("/tokenize", {
            "prompt": "<|im_end|>", "add_special_tokens": False})
        (token,) = answer["tokens"]
        return token

    def test_logprobs_of_every_token(self):
        answer = self.ask("Who is amber?", logprobs=True, top_logprobs=3, n=2)
        for choice in answer["choices"]:
            content = choice["logprobs"]["content"]
            self.assertTrue(all(len(entry["top_logprobs"]) == 3 for entry in content))
            self.assertTrue(all(entry["logprob"] <= 0 for entry in content))
            self.assertEqual("".join(entry["token"] for entry in content),
                             choice["message"]["content"])
        self.assertEqual(len(answer["choices"]), 2)

    def test_what_cannot_be_had_is_named(self):
        user = [{"role": "user", "content": "x"}]
        for body, param in (({}, "messages"), ({"messages": []}, "messages"),
                            ({"messages": [{"role": "user"}]}, "messages[0].content"),
                            ({"messages": [*user, {"content": "x"}]}, "messages[1]"),
                            ({"messages": user, "tools": [{"type": "x"}]}, "tools"),
                            ({"messages": user, "tools": [{"type": 1}]}, "tools"),
                            ({"messages": user, "tool_choice": "required"}, "tool_choice"),
                            ({"messages": user, "tools": [], "tool_choice": "required"},
                             "tool_choice"),
                            ({"messages": user, "tools": [TOOL], "tool_choice": "any"},
                             "tool_choice"),
                            ({"messages": user, "tools": [TOOL], "tool_choice": {
                                "type": "function", "function": {"name": "f"}}}, "tool_choice"),
                            ({"messages": user, "tools": [TOOL], "tool_choice": "required",
                              "response_format": {"type": "json_object"}}, "tool_choice"),
                            ({"messages": user, "tools": [TOOL], "tool_choice": "required",
                              "grammar": 'root ::= "a"'}, "tool_choice"),
                            ({"messages": user, "tool_choice": "required", "tools": [TOOL, {
                                "type": "function", "function": {
                                    "name": "f", "parameters": {"type": "object", "if": {}}}}]},
                             "tools[1].function.parameters"),
                            ({"messages": user, "tool_choice": "required", "tools": [{
                                "type": "function", "function": {
                                    "name": "f g", "parameters": TOOL["function"]["parameters"]}}]},
                             "tools[0].function.name"),
                            ({"messages": user, "parallel_tool_calls": 1}, "parallel_tool_calls"),
                            ({"messages": user, "top_logprobs": 2}, "top_logprobs"),
                            ({"messages": user, "response_format": {"type": "xml"}},
                             "response_format"),
                            ({"messages": user, "response_format": {
                                "type": "json_schema",
                                "json_schema": {"schema": {"type": "object", "if": {}}}}},
                             "response_format.json_schema.schema")):
            status, answer = self.server.post("/v1/chat/completions", body)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)


class ChatWithTurbo8v4(Chat, unittest.TestCase):
    kv = "turbo8v4"


class ChatWithTurbo4(Chat, unittest.TestCase):
    kv = "turbo4"


if __name__ == "__main__":
    unittest.main()
