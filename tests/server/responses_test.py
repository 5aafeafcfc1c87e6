"""OpenAI's Responses API: items and events, what is stored, and who may see it.

Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import pathlib
import tempfile
import time
import unittest

from chat_test import TOOL, haystack_with
from serving import Serving

FUNCTION = {"type": "function", "strict": False, **TOOL["function"]}
# What codex sends beside its functions.
OTHERS = [{"type": "web_search"}, {"type": "custom", "name": "apply_patch"}, {"type": "local_shell"},
          {"type": "mcp", "server_label": "x"}, {"type": "image_generation"}]
QUESTION = haystack_with("amber lantern") + "What is the full name of amber?"
LOOKUP = 'Look up the full name of "amber".'
ANSWER = "It is amber lantern."


def text_of(response):
    return "".join(part["text"] for item in response["output"] if item["type"] == "message"
                   for part in item["content"])


def items_of(response, kind):
    return [item for item in response["output"] if item["type"] == kind]


class Client:
    """Of one server, with a key or without."""

    def __init__(self, server, key=None):
        self.server = server
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def post(self, body):
        return self.server.post("/v1/responses", {"temperature": 0, "max_output_tokens": 64, **body},
                                self.headers)

    def ask(self, given, **extra):
        status, answer = self.post({"input": given, **extra})
        assert status == 200, answer
        return answer

    def events(self, given, **extra):
        status, text = self.post({"input": given, "stream": True, **extra})
        assert status == 200, text
        events = []
        for block in text.split("\n\n")[:-1]:
            name, data = block.split("\n")
            assert name.startswith("event: ") and data.startswith("data: "), block
            events.append(json.loads(data[6:]))
            assert events[-1]["type"] == name[7:], block
        assert [event["sequence_number"] for event in events] == list(range(len(events))), text
        return events

    def request(self, method, rest):
        status, answer, _ = self.server.ask(method, "/v1/responses/" + rest, headers=self.headers)
        return status, answer


class Responses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving("--kv", "f16")
        cls.client = Client(cls.server)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def ask(self, given, **extra):
        return self.client.ask(given, **extra)

    def test_a_whole_answer(self):
        answer = self.ask(QUESTION, instructions="Be brief.", metadata={"a": "b"})
        self.assertEqual((answer["object"], answer["status"]), ("response", "completed"))
        self.assertEqual(text_of(answer), ANSWER)
        self.assertEqual((answer["instructions"], answer["metadata"]), ("Be brief.", {"a": "b"}))
        self.assertEqual((answer["error"], answer["incomplete_details"]), (None, None))
        usage = answer["usage"]
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
        parts = self.ask([{"role": "developer", "content": "Be brief."},
                          {"type": "message", "role": "user",
                           "content": [{"type": "input_text", "text": QUESTION}]}])
        self.assertEqual(text_of(parts), ANSWER)
        self.assertEqual(parts["usage"]["input_tokens"], usage["input_tokens"], "the same prompt")
        self.assertGreater(parts["usage"]["input_tokens_details"]["cached_tokens"], 100)

    def test_a_stream(self):
        events = self.client.events(QUESTION)
        types = [event["type"].removeprefix("response.") for event in events]
        n_deltas = types.count("output_text.delta")
        self.assertGreater(n_deltas, 1)
        self.assertEqual(types, ["created", "in_progress", "output_item.added", "content_part.added"]
                         + n_deltas * ["output_text.delta"]
                         + ["output_text.done", "content_part.done", "output_item.done", "completed"])
        deltas = [event for event in events if event["type"] == "response.output_text.delta"]
        self.assertEqual("".join(event["delta"] for event in deltas), ANSWER)
        self.assertEqual({(event["output_index"], event["content_index"]) for event in deltas}, {(0, 0)})
        response = events[-1]["response"]
        self.assertEqual(text_of(response), ANSWER)
        self.assertEqual([event["item_id"] for event in deltas], n_deltas * [response["output"][0]["id"]])
        self.assertEqual(events[0]["response"]["id"], response["id"])
        self.assertEqual(events[0]["response"]["status"], "in_progress")
        self.assertEqual(self.client.request("GET", response["id"]), (200, response))

    def test_a_tool_round_trip(self):
        tools = [*OTHERS, FUNCTION]
        first = self.ask(LOOKUP, tools=tools)
        self.assertEqual([item["type"] for item in first["output"]], ["function_call"])
        (call,) = first["output"]
        self.assertEqual((call["name"], json.loads(call["arguments"])), ("lookup_name", {"first": "amber"}))
        self.assertEqual(first["tools"], tools)
        result = {"type": "function_call_output", "call_id": call["call_id"],
                  "output": '{"name": "amber lantern"}'}
        question = {"role": "user", "content": LOOKUP}
        whole = self.ask([question, call, result], tools=tools)
        self.assertEqual(text_of(whole), 'It is "amber lantern".')
        n_prompt = whole["usage"]["input_tokens"]
        # In other words, the same prompt.
        reference = {"type": "item_reference", "id": call["id"]}
        for given in ({"input": [result], "previous_response_id": first["id"]},
                      {"input": [question, reference, result]}):
            answer = self.ask(given.pop("input"), tools=tools, **given)
            self.assertEqual(text_of(answer), 'It is "amber lantern".')
            self.assertEqual(answer["usage"]["input_tokens"], n_prompt)
            self.assertGreaterEqual(answer["usage"]["input_tokens_details"]["cached_tokens"], n_prompt - 1)
        events = self.client.events(LOOKUP, tools=tools)
        arguments = [e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"]
        done = [e for e in events if e["type"] == "response.output_item.done"]
        self.assertEqual("".join(arguments), call["arguments"])
        self.assertEqual(done[-1]["item"]["arguments"], call["arguments"])

    def test_a_call_that_is_demanded(self):
        other = {"type": "function", "name": "count_words"}
        for choice in ("required", {"type": "function", "name": "lookup_name"},
                       {"type": "allowed_tools", "mode": "required",
                        "tools": [{"type": "function", "name": "lookup_name"}]}):
            answer = self.ask(QUESTION, tools=[FUNCTION, other], tool_choice=choice, max_output_tokens=200,
                              parallel_tool_calls=False)
            names = {item["name"] for item in items_of(answer, "function_call")}
            self.assertEqual(len(answer["output"]), 1, answer)
            self.assertLessEqual(names, {"lookup_name", "count_words"} if choice == "required"
                                 else {"lookup_name"})

    def test_thoughts_are_an_item(self):
        answer = self.ask(QUESTION, reasoning={"effort": "high", "summary": "auto"})
        (thought,) = items_of(answer, "reasoning")
        self.assertIn("amber", thought["content"][0]["text"])
        self.assertEqual(text_of(answer), ANSWER)
        events = self.client.events(QUESTION, reasoning={"effort": "high"},
                                    include=["reasoning.encrypted_content"], store=False)
        deltas = [e["delta"] for e in events if e["type"] == "response.reasoning_text.delta"]
        self.assertEqual("".join(deltas), thought["content"][0]["text"])
        self.assertEqual(items_of(self.ask(QUESTION, reasoning={"effort": "none"}), "reasoning"), [])
        self.assertGreater(answer["usage"]["output_tokens_details"]["reasoning_tokens"], 2)
        # They come back, with an id and a seal that say nothing.
        again = self.ask([{"role": "user", "content": QUESTION},
                          {**thought, "encrypted_content": "x"}, *items_of(answer, "message"),
                          {"role": "user", "content": QUESTION}])
        self.assertEqual(text_of(again), ANSWER)

    def test_an_answer_of_a_schema(self):
        schema = {"type": "object", "additionalProperties": False, "required": ["name", "age"],
                  "properties": {"name": {"enum": ["amber", "basil"]},
                                 "age": {"type": "integer", "minimum": 7, "maximum": 12}}}
        answer = self.ask("Tell me about amber.", max_output_tokens=200, text={"format": {
            "type": "json_schema", "name": "person", "strict": True, "schema": schema}})
        value = json.loads(text_of(answer))
        self.assertIn(value["name"], ("amber", "basil"))
        self.assertIn(value["age"], range(7, 13))

    def test_what_is_cut_short_is_incomplete(self):
        answer = self.ask(QUESTION, max_output_tokens=2)
        self.assertEqual((answer["status"], answer["incomplete_details"]),
                         ("incomplete", {"reason": "max_output_tokens"}))
        self.assertEqual(answer["output"][0]["status"], "incomplete")
        self.assertEqual(self.client.events(QUESTION, max_output_tokens=2)[-1]["type"],
                         "response.incomplete")
        self.assertEqual(self.ask(QUESTION, max_output_tokens=1 << 20)["status"], "completed")

    def test_stored_responses(self):
        answer = self.ask([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
        self.assertEqual(self.client.request("GET", answer["id"]), (200, answer))
        status, items = self.client.request("GET", answer["id"] + "/input_items?order=asc")
        self.assertEqual((status, items["object"], items["has_more"]), (200, "list", False), items)
        self.assertEqual([item["content"][0]["text"] for item in items["data"]], ["a", "b"])
        following = self.ask("c", previous_response_id=answer["id"])
        self.assertEqual(following["previous_response_id"], answer["id"])
        _, items = self.client.request("GET", following["id"] + "/input_items?order=asc")
        self.assertEqual([item["role"] for item in items["data"]], ["user", "user", "assistant", "user"])
        self.assertEqual(self.client.request("DELETE", answer["id"]),
                         (200, {"id": answer["id"], "object": "response", "deleted": True}))
        for method in ("GET", "DELETE"):
            self.assertEqual(self.client.request(method, answer["id"])[0], 404)
        self.assertEqual(self.client.request("POST", answer["id"])[0], 405)
        self.assertEqual(self.client.request("GET", "..%2F..%2Fetc%2Fpasswd")[0], 404)
        status, refusal = self.client.post({"input": "c", "previous_response_id": answer["id"]})
        self.assertEqual((status, refusal["error"]["code"], refusal["error"]["param"]),
                         (400, "previous_response_not_found", "previous_response_id"))
        # One chain is one file: it does not need what came before.
        self.assertEqual(self.ask("d", previous_response_id=following["id"])["status"], "completed")
        secret = self.ask("a", store=False)
        self.assertEqual(self.client.request("GET", secret["id"])[0], 404)

    def test_who_leaves_has_nothing_stored(self):
        connection = self.server.connection()
        connection.request("POST", "/v1/responses", json.dumps(
            {"input": QUESTION, "stream": True, "ignore_eos": True}))
        head = connection.getresponse().read(400).decode()
        name = json.loads(head.split('"id":')[1].split(",")[0])
        connection.close()
        end = time.monotonic() + 30
        while self.server.n_requests() > 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.assertEqual(self.client.request("GET", name)[0], 404)

    def test_refusals_name_the_field(self):
        image = [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]
        for body, param in (({}, "input"), ({"input": image}, "input[0].content[0]"),
                            ({"input": "x", "background": True}, "background"),
                            ({"input": "x", "conversation": "c"}, "conversation"),
                            ({"input": "x", "text": {"format": {"type": "json_schema", "schema": {
                                "type": "object", "$ref": "http://x"}}}}, "text.format.schema"),
                            ({"input": "x", "tools": [{"type": "web_search"}, {
                                "type": "function", "name": "a b"}], "tool_choice": "required"},
                             "tools[1].name")):
            status, answer = self.client.post(body)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
        status, answer = self.client.post({"input": 3 * QUESTION * 20})
        self.assertEqual((status, answer["error"]["code"], answer["error"]["param"]),
                         (400, "context_length_exceeded", "input"), answer)
        status, answer = self.client.post({"input": [{"role": "user", "content": ""}] * 100_000})
        self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))
        # What is not in the prompt is kept as well, until the answer is there.
        junk = "x" * (1 << 20)
        for body in ({"input": "x", "metadata": {"a": junk}},
                     {"input": "x", "tools": [{"type": "web_search", "a": junk}]},
                     {"input": [{"role": "user", "content": "x", "a": junk}]}):
            status, answer = self.client.post(body)
            self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"), answer)
        status, answer = self.client.post({"input": "x", "model": "nobody"})
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))


class StoredOnDisk(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "responses"

    def serve(self, *arguments):
        server = Serving("--kv", "f16", "--responses-dir", str(self.folder), *arguments)
        self.addCleanup(server.stop)
        return server

    def test_a_conversation_goes_on_after_a_restart(self):
        server = self.serve()
        first = Client(server).ask(LOOKUP, tools=[FUNCTION])
        (call,) = first["output"]
        self.assertEqual(server.stop(), 0)
        self.assertEqual([file.name for file in self.folder.glob("resp_*")], [first["id"]])
        self.assertEqual((self.folder / first["id"]).stat().st_mode & 0o777, 0o600)
        client = Client(self.serve())
        self.assertEqual(client.request("GET", first["id"]), (200, first))
        result = {"type": "function_call_output", "call_id": call["call_id"],
                  "output": '{"name": "amber lantern"}'}
        answer = client.ask([result], previous_response_id=first["id"], tools=[FUNCTION])
        self.assertEqual(text_of(answer), 'It is "amber lantern".')

    def test_a_key_sees_its_own(self):
        server = self.serve("--api-key", "one", "--api-key", "two", "--responses-size", "64KiB")
        mine, theirs = Client(server, "one"), Client(server, "two")
        answer = mine.ask("a")
        for method in ("GET", "DELETE"):
            self.assertEqual(theirs.request(method, answer["id"])[0], 404)
        status, refusal = theirs.post({"input": "b", "previous_response_id": answer["id"]})
        self.assertEqual((status, refusal["error"]["code"]), (400, "previous_response_not_found"))
        self.assertEqual(mine.request("GET", answer["id"]), (200, answer))
        # Within their size, the oldest gone first.
        for _ in range(20):
            last = mine.ask("b " * 2000, max_output_tokens=1)
            self.assertLessEqual(sum(file.stat().st_size for file in self.folder.iterdir()), 64 << 10)
        self.assertEqual(mine.request("GET", answer["id"])[0], 404)
        self.assertEqual(mine.request("GET", last["id"])[0], 200)


if __name__ == "__main__":
    unittest.main()
