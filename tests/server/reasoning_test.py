"""Reasoning with a limit, through `slipstream serve`: models of random weights never end a thought by
themselves, so what ends it is the limit. The templates are those of public models (tests/README.md).

Environment: SLIPSTREAM_BIN and MAKE_MODEL, the built programs.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from serving import NEEDLE_MODEL, Serving

DATA = pathlib.Path(os.environ.get("SLIPSTREAM_TEST_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared"))
BUDGET = 64
# A model of random weights does not open reasoning either where its template leaves that to the model.
OPENS = {
    "Qwen-Qwen3-0.6B": r'root ::= "<think>" [^<]* "</think>" [^<]*',
    "openai-gpt-oss-120b": (r'root ::= "<|channel|>analysis<|message|>" [^<]* "<|end|><|start|>assistant" '
                            r'"<|channel|>final<|message|>" [^<]*'),
    "llama-cpp-deepseek-r1": None,  # the prompt opens it
}
SCHEMA = {"type": "object", "additionalProperties": False, "required": ["age"],
          "properties": {"age": {"type": "integer", "minimum": 7, "maximum": 12}}}


@unittest.skipUnless((DATA / "templates").is_dir(), "no templates of public models here")
class Reasoning(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.servers = {}
        for name in OPENS:
            model = f"{cls.folder.name}/{name}.gguf"
            subprocess.run([os.environ["MAKE_MODEL"], "qwen3", model, "--vocabulary", NEEDLE_MODEL, "--layers", "2",
                            "--chat-template", DATA / "templates" / f"{name}.jinja"],
                           check=True, stdout=subprocess.DEVNULL)
            cls.servers[name] = Serving("--ctx", "4096", model=model)

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers.values():
            assert server.stop() == 0
        cls.folder.cleanup()

    def ask(self, name, path="/v1/chat/completions", **extra):
        body = {"messages": [{"role": "user", "content": "How old is amber?"}], "temperature": 1, "seed": 7,
                "max_tokens": 200} | extra
        if OPENS[name] and "response_format" not in extra:
            body["grammar"] = OPENS[name]
        status, answer = self.servers[name].post(path, body)
        self.assertEqual(status, 200, answer)
        return answer

    def test_a_budget_is_kept_and_the_answer_follows(self):
        for name in OPENS:
            with self.subTest(name):
                answer = self.ask(name, thinking_budget_tokens=BUDGET)
                message = answer["choices"][0]["message"]
                n = answer["usage"]["completion_tokens_details"]["reasoning_tokens"]
                print(f"{name}: {n} tokens of reasoning, {len(message['content'])} characters of content")
                self.assertLessEqual(abs(n - BUDGET), 2)
                self.assertTrue(message["reasoning_content"] and message["content"])
                for markup in ("think>", "<|"):
                    self.assertNotIn(markup, message["content"])

    def test_without_a_budget_it_goes_on(self):
        """Greedy: what a random weight's dice say differs from one kind of processor to the next."""
        for name in OPENS:
            with self.subTest(name):
                answer = self.ask(name, temperature=0)
                self.assertFalse(answer["choices"][0]["message"]["content"])
                n = answer["usage"]["completion_tokens_details"]["reasoning_tokens"]
                self.assertGreater(n, 2 * BUDGET)

    def test_anthropics_budget(self):
        for name in OPENS:
            with self.subTest(name):
                answer = self.ask(name, "/v1/messages", thinking={"type": "enabled", "budget_tokens": BUDGET})
                self.assertEqual([block["type"] for block in answer["content"]], ["thinking", "text"])

    def test_what_is_disabled_ends_at_once(self):
        """Where the template has no switch, the thought that it opens is closed."""
        name = "llama-cpp-deepseek-r1"
        answer = self.ask(name, reasoning_effort="none")
        self.assertFalse(answer["choices"][0]["message"].get("reasoning_content"))
        self.assertEqual(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 0)
        answer = self.ask(name, "/v1/messages", thinking={"type": "disabled"})
        self.assertEqual([block["type"] for block in answer["content"]], ["text"])

    def test_a_schema_holds_for_what_follows_the_thought(self):
        answer = self.ask("llama-cpp-deepseek-r1", thinking_budget_tokens=BUDGET, response_format={
            "type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}})
        message = answer["choices"][0]["message"]
        print(f"schema: {message['content']!r} after {len(message['reasoning_content'])} characters of reasoning")
        self.assertTrue(message["reasoning_content"])
        self.assertIn(json.loads(message["content"])["age"], range(7, 13))


if __name__ == "__main__":
    unittest.main()
