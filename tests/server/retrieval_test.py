"""`"retrieval"` in requests, and `slipstream serve --retrieve`: answers that only the index has.

Each file of a folder names somebody among prose. The model is asked for these names, with and without
what the index finds.
Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mcp"))

from mcp_process import call  # noqa: E402
from serving import FIXTURES, Serving  # noqa: E402

# First and last names: words that the model knows, together nowhere but in these files.
NAMES = [name.split() for name in (
    "amber lantern, copper window, silver basket, velvet harbor, maple carpet, cedar mirror, "
    "marble ribbon, walnut pillow, coral bucket, ivory ladder, scarlet kettle, hazel button, "
    "crimson saddle, olive hammer, linen bottle, cotton pencil, granite blanket, willow candle, "
    "pepper trumpet, ginger needle, salmon drawer, falcon curtain, badger teapot, otter compass, "
    "raven anchor, heron buckle, sparrow cabinet, beaver satchel, rabbit lamp, turtle helmet, "
    "garnet feather, topaz shovel, barley thimble, clover whistle, thistle wagon, juniper barrel, "
    "orchid marker, tulip hinge, daisy pulley, violet anvil").split(", ")]
SENTENCES = ("We met {} today.", "The guest was {}.", "A letter from {} came.", "Then {} called again.")
QUESTION = "What is the full name of {}?"


class Folder:
    """Prose, with one name in each file."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory()
        base = pathlib.Path(self.temporary.name).resolve()
        self.root, self.index = base / "people", base / "index.db"
        self.root.mkdir()
        lines = (FIXTURES / "haystack.txt").read_text().splitlines()
        for i, name in enumerate(NAMES):
            part = [lines[(7 * i + k) % len(lines)] for k in range(12)]
            part.insert(i % len(part), SENTENCES[i % len(SENTENCES)].format(" ".join(name)))
            (self.root / f"page{i}.txt").write_text("\n".join(part) + "\n")

    def close(self):
        self.temporary.cleanup()


def content_of(answer):
    return answer["choices"][0]["message"]["content"]


class Retrieval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.addClassCleanup(cls.folder.close)
        cls.server = cls.serve("--retrieve", str(cls.folder.root), "--retrieve-budget", "400", "--mcp")
        cls.addClassCleanup(cls.server.stop)
        cls.wait_until_fresh(cls.server)

    @classmethod
    def serve(cls, *arguments):
        return Serving("--name", "needle", "--ctx", "4096", "--kv", "f16", "--index", str(cls.folder.index),
                       *arguments)

    @staticmethod
    def wait_until_fresh(server, **headers):
        status, reply, _ = server.ask("POST", "/mcp", call("wait_until_fresh", {"seconds": 30}), {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
            "Mcp-Name": "wait_until_fresh", **headers})
        assert status == 200 and reply["result"]["structuredContent"]["index"]["is_fresh"], reply

    def chat(self, messages, server=None, **fields):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return (server or self.server).post("/v1/chat/completions", {
            "messages": messages, "temperature": 0, "max_tokens": 16, **fields})

    def answer(self, messages, **fields):
        status, answer = self.chat(messages, **fields)
        self.assertEqual(status, 200, answer)
        return answer

    def n_right(self, **fields):
        return sum(" ".join(name) in content_of(self.answer(QUESTION.format(name[0]), **fields))
                   for name in NAMES)

    def test_the_index_has_the_answers(self):
        found, without = self.n_right(), self.n_right(retrieval=False)
        print(f"\nof {len(NAMES)} questions answered: {found} with retrieval, {without} without")
        self.assertGreaterEqual(found, 36)
        self.assertLessEqual(without, 2)

    def test_the_conversation_goes_on_as_it_began(self):
        first, second = (QUESTION.format(name[0]) for name in NAMES[:2])
        one = self.answer(first)
        said = one["choices"][0]["message"]
        two = self.answer([{"role": "user", "content": first},
                           {"role": "assistant", "content": said["content"]},
                           {"role": "user", "content": second}])
        n_first = one["usage"]["prompt_tokens"]
        n_cached = two["usage"]["prompt_tokens_details"]["cached_tokens"]
        print(f"\nsecond turn: {n_cached} tokens cached of the first prompt's {n_first}")
        self.assertGreater(n_first, 100, "text was found")
        self.assertGreaterEqual(n_cached, 0.95 * n_first)
        self.assertIn(" ".join(NAMES[1]), content_of(two))

    def test_what_was_shown_stays_without_a_new_search(self):
        first = QUESTION.format(NAMES[2][0])
        one = self.answer(first)
        messages = [{"role": "user", "content": first}, one["choices"][0]["message"],
                    {"role": "user", "content": QUESTION.format(NAMES[3][0])}]
        messages[1] = {"role": "assistant", "content": messages[1]["content"]}
        kept = self.answer(messages, retrieval={"budget": 0})
        self.assertGreaterEqual(kept["usage"]["prompt_tokens"], one["usage"]["prompt_tokens"])
        self.assertNotIn(" ".join(NAMES[3]), content_of(kept))
        without = self.answer(messages, retrieval=False)
        self.assertLess(without["usage"]["prompt_tokens"], one["usage"]["prompt_tokens"])

    def test_a_place_is_shown_once(self):
        question = QUESTION.format(NAMES[4][0])
        one = self.answer(question)
        said = content_of(one)
        two = self.answer([{"role": "user", "content": question}, {"role": "assistant", "content": said},
                           {"role": "user", "content": question}])
        shown = [{(a["url_citation"]["url"]) for a in answer["choices"][0]["message"]["annotations"]}
                 for answer in (one, two) if "annotations" in answer["choices"][0]["message"]]
        self.assertTrue(shown)
        if len(shown) == 2:
            self.assertEqual(shown[0] & shown[1], set())

    def test_annotations_say_where(self):
        question, name = QUESTION.format(NAMES[5][0]), " ".join(NAMES[5])
        annotations = self.answer(question)["choices"][0]["message"]["annotations"]
        self.assertEqual({one["type"] for one in annotations}, {"url_citation"})
        texts = [self.lines_of(one["url_citation"]) for one in annotations]
        self.assertTrue(any(name in text for text in texts), annotations)
        events = self.server.events("/v1/chat/completions", {
            "messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 16})
        ends = [event["choices"][0] for event in events if event["choices"]]
        self.assertEqual([one["delta"]["annotations"] for one in ends if one["finish_reason"]], [annotations])
        status, response = self.server.post("/v1/responses", {
            "input": question, "temperature": 0, "max_output_tokens": 16})
        self.assertEqual(status, 200, response)
        of_response = response["output"][-1]["content"][0]["annotations"]
        self.assertEqual([one["url"] for one in of_response],
                         [one["url_citation"]["url"] for one in annotations])

    def lines_of(self, citation):
        path, _, lines = citation["url"].removeprefix("file://").partition("#L")
        first, last = (int(part.lstrip("L")) for part in lines.split("-"))
        self.assertEqual(citation["title"], f"{pathlib.Path(path).name}:{first}-{last}")
        return "\n".join(pathlib.Path(path).read_text().splitlines()[first - 1:last])

    def test_streamed_responses_announce_annotations(self):
        status, text, _ = self.server.ask("POST", "/v1/responses", {
            "input": QUESTION.format(NAMES[6][0]), "temperature": 0, "max_output_tokens": 16, "stream": True})
        self.assertEqual(status, 200)
        events = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]
        added = [e["annotation"] for e in events if e["type"] == "response.output_text.annotation.added"]
        done = next(e for e in events if e["type"] == "response.completed")
        self.assertEqual(done["response"]["output"][-1]["content"][0]["annotations"], added)
        self.assertTrue(added)

    def test_the_messages_api_finds_as_well(self):
        status, answer = self.server.post("/v1/messages", {
            "model": "needle", "max_tokens": 16, "temperature": 0,
            "messages": [{"role": "user", "content": QUESTION.format(NAMES[7][0])}]})
        self.assertEqual(status, 200, answer)
        self.assertIn(" ".join(NAMES[7]), answer["content"][0]["text"])
        status, counted = self.server.post("/v1/messages/count_tokens", {
            "model": "needle", "messages": [{"role": "user", "content": QUESTION.format(NAMES[7][0])}]})
        usage = answer["usage"]
        self.assertEqual((status, counted["input_tokens"]),
                         (200, usage["input_tokens"] + usage["cache_read_input_tokens"]))

    def test_the_result_of_a_tool_is_no_question(self):
        question = QUESTION.format(NAMES[8][0])
        alone = self.answer(question)["usage"]["prompt_tokens"]
        calls = [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        conversation = [{"role": "user", "content": question},
                        {"role": "assistant", "content": "", "tool_calls": calls},
                        {"role": "tool", "tool_call_id": "call_1", "content": QUESTION.format(NAMES[9][0])}]
        after = self.answer(conversation)
        self.assertGreaterEqual(after["usage"]["prompt_tokens_details"]["cached_tokens"], 0.95 * alone)
        self.assertNotIn(" ".join(NAMES[9]), content_of(after) or "")

    def test_the_budget_bounds_what_is_added(self):
        question = QUESTION.format(NAMES[10][0])
        without = self.answer(question, retrieval=False)["usage"]["prompt_tokens"]
        for budget in (100, 200, 400, 2000):
            n = self.answer(question, retrieval={"budget": budget})["usage"]["prompt_tokens"]
            self.assertGreater(n, without, budget)
            self.assertLessEqual(n, without + budget + 40, budget)  # 40: the line above the places

    def test_it_goes_with_rescue(self):
        server = Serving("--ctx", "1024", "--kv", "f16", "--index", str(self.folder.index), "--retrieve",
                         str(self.folder.root), "--retrieve-budget", "250", "--context-overflow", "rescue")
        self.addCleanup(server.stop)
        messages = []
        for i in range(8):
            messages += [{"role": "user", "content": f"{i}: " + "The log is the first place to look. " * 20},
                         {"role": "assistant", "content": "I see."}]
        n_right = 0
        for name in NAMES[12:18]:
            messages.append({"role": "user", "content": QUESTION.format(name[0])})
            status, answer = self.chat(messages, server=server)
            self.assertEqual(status, 200, answer)
            self.assertTrue(answer["choices"][0]["message"].get("annotations"), name)
            n_right += " ".join(name) in content_of(answer)
            messages.append({"role": "assistant", "content": content_of(answer)})
        self.assertGreaterEqual(n_right, 4)

    def test_words_that_nothing_has_add_nothing(self):
        for text in ("zyzzyva", "???", ""):
            with_index = self.answer(text)
            self.assertEqual(with_index["usage"]["prompt_tokens"],
                             self.answer(text, retrieval=False)["usage"]["prompt_tokens"], text)
            self.assertNotIn("annotations", with_index["choices"][0]["message"])

    def test_wrong_wishes_are_refused(self):
        for wish, param, why in (
                ("yes", "retrieval", "must be"), ([], "retrieval", "must be"),
                ({"project": 1}, "retrieval.project", "string"),
                ({"project": "/nowhere"}, "retrieval.project", "no such project"),
                ({"budget": -1}, "retrieval.budget", "from 0"),
                ({"budget": 2049}, "retrieval.budget", "half of the context")):
            status, refusal = self.chat("amber", retrieval=wish)
            self.assertEqual((status, refusal["error"]["param"]), (400, param), refusal)
            self.assertIn(why, refusal["error"]["message"])

    def test_without_an_index_it_cannot_be_asked_for(self):
        server = Serving("--ctx", "2048", "--kv", "f16")
        self.addCleanup(server.stop)
        status, refusal = self.chat("amber", server=server, retrieval={})
        self.assertEqual(status, 400)
        self.assertIn("--retrieve", refusal["error"]["message"])
        self.assertEqual(self.chat("amber", server=server, retrieval=False)[0], 200)
        self.assertEqual(self.chat("amber", server=server, retrieval=None)[0], 200)

    def test_projects_belong_to_keys(self):
        keys = self.folder.index.with_name("keys.json")
        keys.write_text(json.dumps({"keys": [
            {"name": "ann", "key": "sk-ann", "projects": [str(self.folder.root)]},
            {"name": "bob", "key": "sk-bob"}]}))
        keys.chmod(0o600)
        server = self.serve("--mcp", "--keys", str(keys))
        self.addCleanup(server.stop)
        ann, bob = ({"Authorization": f"Bearer sk-{name}"} for name in ("ann", "bob"))
        self.wait_until_fresh(server, **ann)
        body = {"messages": [{"role": "user", "content": QUESTION.format(NAMES[11][0])}],
                "temperature": 0, "max_tokens": 16, "retrieval": {}}
        status, answer = server.post("/v1/chat/completions", body, ann)
        self.assertIn(" ".join(NAMES[11]), content_of(answer))
        status, answer = server.post("/v1/chat/completions", body, bob)
        self.assertEqual(status, 200)
        self.assertNotIn(" ".join(NAMES[11]), content_of(answer))
        self.assertNotIn("annotations", answer["choices"][0]["message"])
        status, refusal = server.post("/v1/chat/completions",
                                      {**body, "retrieval": {"project": str(self.folder.root)}}, bob)
        self.assertEqual((status, refusal["error"]["param"]), (400, "retrieval.project"))
        self.assertNotIn("page", json.dumps(refusal))
        for key, n_projects in ((ann, 1), (bob, 0)):
            for tool, arguments in (("list_projects", {}), ("search", {"query": "guest letter"}),
                                    ("find_symbol", {"name": "amber"})):
                _, reply, _ = server.ask("POST", "/mcp", call(tool, arguments), {
                    "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                    "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool, **key})
                if tool == "list_projects":
                    self.assertEqual(len(reply["result"]["structuredContent"]["projects"]), n_projects)
                if key is bob:
                    self.assertNotIn(str(self.folder.root), json.dumps(reply))


if __name__ == "__main__":
    unittest.main(verbosity=2)
