"""Filling in: /infill, `suffix` of /v1/completions and of Ollama's API, as editors send them, beside llama-server.

The bodies have the fields of llama.vscode (src/llama-server.ts, createRequestPayload) and of Continue (core/llm/llms/Ollama.ts
and OpenAI.ts), as their sources of November 2026 have them. Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import pathlib
import shutil
import tempfile
import unittest

from fill_model import NAMES, make_fill_model
from serving import LlamaServing, Serving

PREFIX = "def add(a, b):\n    return a + b\n\n\ndef multiply(a, b):\n"
LINE = "    return a "
SUFFIX = "\n\n\nprint(multiply(2, 3))\n"
EXTRA = [{"text": "def divide(a, b):\n    return a / b\n", "time": 1, "filename": "src/divide.py"},
         {"text": "def subtract(a, b):\n    return a - b\n", "time": 2, "filename": "src/subtract.py"}]
VSCODE = {"id_slot": 0, "input_prefix": PREFIX, "input_suffix": SUFFIX, "input_extra": EXTRA, "prompt": LINE, "n_predict": 24,
          "n_cmpl": 1, "top_k": 40, "top_p": 0.99, "stream": False, "samplers": ["top_k", "top_p", "infill"],
          "cache_prompt": True, "n_indent": 4, "t_max_prompt_ms": 500, "t_max_predict_ms": 1000}
GREEDY = {**VSCODE, "temperature": 0, "samplers": ["temperature"], "t_max_predict_ms": 0, "n_indent": 0}
PREPARE = {**{key: VSCODE[key] for key in ("id_slot", "input_prefix", "input_suffix", "input_extra", "cache_prompt",
                                           "t_max_prompt_ms")},
           "prompt": "", "n_predict": 0, "samplers": [], "t_max_predict_ms": 1}
IN_WORDS = f"<|fim_prefix|>{PREFIX}{LINE}<|fim_suffix|>{SUFFIX}<|fim_middle|>"


class Infill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="slipstream-infill-")
        cls.addClassCleanup(folder.cleanup)
        cls.model = make_fill_model(pathlib.Path(folder.name) / "fill.gguf")
        cls.server = Serving("--name", "fill", "--ctx", "2048", "--kv", "f16", "--prompts", "off", model=cls.model)
        cls.addClassCleanup(lambda: cls.server.stop())

    def infill(self, **fields):
        status, answer = self.server.post("/infill", {**GREEDY, **fields})
        self.assertEqual(status, 200, answer)
        return answer

    def refused(self, server, words, path, body, param=None):
        status, answer = server.post(path, body)
        self.assertEqual(status, 400, answer)
        self.assertIn(words, json.dumps(answer))
        if param:
            self.assertEqual(answer["error"]["param"], param)

    def test_what_llama_vscode_sends_and_shows(self):
        status, answer = self.server.post("/infill", VSCODE)
        self.assertEqual(status, 200, answer)
        self.assertIsInstance(answer["content"], str)
        self.assertTrue(answer["stop"])
        self.assertEqual(answer["generation_settings"]["n_ctx"], 2048)
        for name in ("prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_second"):
            self.assertIsInstance(answer["timings"][name], (int, float))
        self.assertIsInstance(answer["tokens_cached"], int)

    @unittest.skipUnless(shutil.which("llama-server"), "llama-server is not installed")
    def test_prompt_and_answer_are_llama_servers(self):
        # It wants room for a batch beside other files.
        stock = LlamaServing("--ctx-size", "8192", "--parallel", "1", model=self.model)
        self.addCleanup(stock.stop)
        for body in (GREEDY, {**GREEDY, "input_extra": []}, {**GREEDY, "prompt": ""}, {**GREEDY, "input_suffix": ""},
                     {**GREEDY, "input_prefix": "# <|fim_middle|> and <|im_end|> are text here\n"}):
            (status, expected), (_, found) = (server.post("/infill", body) for server in (stock, self.server))
            self.assertEqual(status, 200, expected)
            self.assertEqual(found["tokens_evaluated"], expected["tokens_evaluated"])
            self.assertEqual(found["content"], expected["content"])
            self.assertLessEqual(set(found) - {"input_extra_dropped"}, set(expected))

    def test_a_prompt_that_was_prepared_is_not_computed_again(self):
        prepared = self.infill(**PREPARE)
        self.assertEqual((prepared["content"], prepared["tokens_predicted"]), ("", 0))
        typed = self.infill()
        self.assertGreater(typed["tokens_cached"], 50)
        self.assertEqual(typed["timings"]["prompt_n"], typed["tokens_evaluated"] - typed["tokens_cached"])

    def test_several_and_streamed(self):
        several = self.infill(n_cmpl=2, seed=3, temperature=1)
        self.assertEqual([answer["index"] for answer in several], [0, 1])
        _, text, headers = self.server.ask("POST", "/infill", {**GREEDY, "stream": True})
        self.assertEqual(headers["Content-Type"], "text/event-stream")
        events = [json.loads(event.removeprefix("data: ")) for event in text.split("\n\n") if event]
        whole = self.infill()
        self.assertEqual("".join(event["content"] for event in events[:-1]), whole["content"])
        self.assertTrue(events[-1]["stop"])
        self.assertEqual(events[-1]["tokens_evaluated"], whole["tokens_evaluated"])

    def test_other_files_that_do_not_fit_are_left_out_and_told(self):
        long = [{"filename": f"f{i}.py", "text": f"x{i} = {i}\n" * 60} for i in range(12)]
        answer = self.infill(input_extra=[*long, *EXTRA])
        self.assertTrue(answer["truncated"])
        self.assertTrue(0 < answer["input_extra_dropped"] < 12, answer)
        self.assertLessEqual(answer["tokens_evaluated"] + GREEDY["n_predict"], 2048)
        self.assertEqual(self.infill()["input_extra_dropped"], 0)
        self.refused(self.server, "context", "/infill", {**GREEDY, "input_prefix": "word " * 4000})

    def test_suffix_of_completions_is_the_same_prompt(self):
        body = {"prompt": PREFIX + LINE, "suffix": SUFFIX, "max_tokens": 24, "temperature": 0}
        filled = self.server.post("/v1/completions", body)[1]
        # With marks in the text, as Continue writes them for other servers.
        in_words = self.server.post("/v1/completions", {**body, "prompt": IN_WORDS, "suffix": None})[1]
        n_file = len("<|repo_name|>myproject\n<|file_sep|>filename\n")
        self.assertGreater(filled["usage"]["prompt_tokens"], in_words["usage"]["prompt_tokens"])
        self.assertLess(filled["usage"]["prompt_tokens"], in_words["usage"]["prompt_tokens"] + n_file)
        self.assertIsInstance(filled["choices"][0]["text"], str)
        self.refused(self.server, "'echo'", "/v1/completions", {**body, "echo": True}, "echo")
        self.refused(self.server, "'prompt'", "/v1/completions", {**body, "prompt": [1, 2]}, "prompt")
        self.refused(self.server, "context", "/v1/completions", {**body, "suffix": "word " * 4000})

    def test_what_continue_sends_to_ollama(self):
        options = {"temperature": 0.01, "num_predict": 24, "stop": ["\n\n"], "num_ctx": 2048}
        raw = {"model": "fill", "prompt": IN_WORDS, "raw": True, "options": options, "keep_alive": 1800, "stream": True}
        filled = {**raw, "prompt": PREFIX + LINE, "suffix": SUFFIX, "raw": False}
        for body in (raw, filled):
            status, text, _ = self.server.ask("POST", "/api/generate", body)
            self.assertEqual(status, 200, text)
            last = json.loads(text.splitlines()[-1])
            self.assertTrue(last["done"])
            self.assertGreater(last["prompt_eval_count"], 30)
        self.assertIn("insert", self.server.post("/api/show", {"model": "fill"})[1]["capabilities"])
        self.refused(self.server, "'suffix'", "/api/generate", {**filled, "system": "Be brief."})

    def test_wrong_bodies(self):
        for words, fields in (("input_extra[0].text", {"input_extra": [{"filename": "a"}]}), ("input_extra[1]", {"input_extra": [EXTRA[0], 7]}),
                              ("'input_extra'", {"input_extra": "a"}), ("'input_prefix'", {"input_prefix": 7}),
                              ("'n_cmpl'", {"n_cmpl": 0}), ("'n_predict'", {"n_predict": -7})):
            self.refused(self.server, words, "/infill", {**GREEDY, **fields})

    def test_a_model_without_these_tokens_says_so(self):
        server = Serving("--name", "needle", "--ctx", "1024")
        self.addCleanup(server.stop)
        for path, body, param in (("/infill", VSCODE, "input_suffix"),
                                  ("/v1/completions", {"prompt": "a", "suffix": "b"}, "suffix"),
                                  ("/api/generate", {"prompt": "a", "suffix": "b"}, None)):
            self.refused(server, "cannot fill in", path, body, param)
        self.assertNotIn("insert", server.post("/api/show", {"model": "needle"})[1]["capabilities"])

    def test_without_marks_for_files_there_are_marks_of_text(self):
        with tempfile.TemporaryDirectory() as folder:
            names = dict(list(NAMES.items())[:3])
            server = Serving("--ctx", "2048", "--kv", "f16", model=make_fill_model(pathlib.Path(folder) / "few.gguf", names))
            self.addCleanup(server.stop)
            with_files, without = (server.post("/infill", {**GREEDY, "input_extra": extra})[1]["tokens_evaluated"]
                                   for extra in (EXTRA, []))
            self.assertGreater(with_files, without + 20)


if __name__ == "__main__":
    unittest.main()
