"""libslipstream.so, used as the examples use it: from C, and from Python by ctypes.

Environment, set by CMake: SLIPSTREAM_BUILD, the build tree; CMAKE_CXX_COMPILER.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ["SLIPSTREAM_BUILD"]) / "lib" / "libslipstream.so.0"
NEEDLE_MODEL = str(CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf")
NAME = "We met amber lantern today. Who is amber?"

os.environ["LIBSLIPSTREAM"] = str(LIBRARY)
sys.path.insert(0, str(CHECKOUT / "examples" / "python"))
import complete  # noqa: E402  (the path and the variable come first)


def user(text, **more):
    return {"messages": [{"role": "user", "content": text}], "temperature": 0, **more}


class Python(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = complete.load()
        cls.engine = complete.Engine(NEEDLE_MODEL, cls.library, kv="turbo4", context=4096,
                                     parallel=4, threads=2)
        cls.addClassCleanup(cls.engine.close)

    def test_a_question_is_answered_and_its_beginning_is_shared(self):
        text, ending = self.engine.ask(user(NAME))
        self.assertEqual(text.strip(), "It is amber lantern.")
        self.assertEqual((ending["reason"], ending["error"]), ("stop", ""))
        again, ending = self.engine.ask(user(NAME))
        self.assertEqual(again, text)
        self.assertGreater(ending["n_cached"], 0.8 * ending["n_prompt"])

    def test_a_text_is_continued(self):
        text, ending = self.engine.ask({"prompt": "The file", "max_tokens": 8, "ignore_eos": True})
        self.assertEqual((ending["reason"], ending["n_generated"]), ("length", 8))
        self.assertGreater(len(text), 4)

    def test_many_at_a_time(self):
        answers = {}

        def ask(i):
            answers[i] = self.engine.ask(user(NAME))[0]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({text.strip() for text in answers.values()}, {"It is amber lantern."})

    def test_tools_and_reasoning(self):
        tool = {"type": "function", "function": {
            "name": "lookup_name", "parameters": {
                "type": "object", "properties": {"first": {"type": "string"}},
                "required": ["first"]}}}
        events, has_ended = [], threading.Event()

        def on_event(kind, text, event):
            events.append((kind, text))
            if kind == complete.END:
                has_ended.set()

        self.engine.generate(user('Look up the full name of "amber".', tools=[tool],
                                  tool_choice="required"), on_event)
        self.assertTrue(has_ended.wait(60))
        self.assertEqual(events[0], (complete.CALL_BEGIN, "lookup_name"))
        arguments = "".join(text for kind, text in events if kind == complete.CALL_ARGUMENTS)
        self.assertEqual(arguments.replace(" ", ""), '{"first":"amber"}')
        self.assertEqual(events[-1], (complete.END, "tool_calls"))

    def test_one_is_cancelled(self):
        began, has_ended, ending = threading.Event(), threading.Event(), []

        def on_event(kind, text, event):
            began.set()
            if kind == complete.END:
                ending.append(text)
                has_ended.set()

        number = self.engine.generate({"prompt": "The file", "max_tokens": 3000,
                                       "ignore_eos": True}, on_event)
        self.assertTrue(began.wait(60))
        self.engine.cancel(number)
        self.assertTrue(has_ended.wait(60))
        self.assertEqual(ending, ["cancelled"])
        self.engine.cancel(number)  # it has ended
        self.engine.cancel(12345)

    def test_what_cannot_be_is_an_error_that_says_what(self):
        for request, message in (
                (user("?", top_p=7), "'top_p'"),
                (user("?", n=2), "'n' must be 1"),
                (user("?", logprobs=True), "'logprobs'"),
                (user("?", retrieval=True), "'retrieval'"),
                ({"max_tokens": 4}, "either 'messages' or 'prompt'"),
                ({"prompt": ["a", "b"]}, "'prompt' must be one text"),
                ({"prompt": "word " * 5000}, "context"),
                ([], "must be a JSON object")):
            with self.subTest(request=str(request)[:60]):
                with self.assertRaisesRegex(ValueError, message):
                    self.engine.generate(request, lambda *_: None)
        generate = self.library.slipstream_generate
        self.assertEqual(generate(None, b"{}", self.engine.on_event, None), -1)
        self.assertEqual(generate(self.engine.handle, None, self.engine.on_event, None), -1)
        self.assertEqual(generate(self.engine.handle, b"{", self.engine.on_event, None), -1)
        self.assertIn(b"JSON", self.library.slipstream_last_error())

    def test_what_cannot_be_opened(self):
        for model, options, message in (
                ("/nowhere.gguf", {}, "nowhere.gguf"),
                (NEEDLE_MODEL, {"kv": "turbo9"}, "turbo9"),
                (NEEDLE_MODEL, {"contxt": 1}, "no option 'contxt'"),
                (NEEDLE_MODEL, {"parallel": 1000}, "'parallel'"),
                (NEEDLE_MODEL, {"kv": "f16", "context": 1 << 24}, "GiB")):
            with self.assertRaisesRegex(RuntimeError, message):
                complete.Engine(model, self.library, **options)
        self.assertIsNone(self.library.slipstream_open(None, None))
        self.library.slipstream_close(None)

    def test_two_engines_and_one_that_ends_with_a_request_in_progress(self):
        other = complete.Engine(NEEDLE_MODEL, self.library, kv="f16", context=2048, threads=1)
        ending = []

        def on_event(kind, text, event):
            if kind == complete.END:
                ending.append(text)

        other.generate({"prompt": "The file", "max_tokens": 1500, "ignore_eos": True}, on_event)
        self.assertEqual(self.engine.ask(user(NAME))[0].strip(), "It is amber lantern.")
        other.close()
        self.assertIn(ending, (["cancelled"], ["length"]))

    def test_prefixes_outlive_the_engine(self):
        with tempfile.TemporaryDirectory() as folder:
            cached = []
            for _ in range(2):
                engine = complete.Engine(NEEDLE_MODEL, self.library, kv="turbo4", context=4096,
                                         threads=2, prefixes=folder)
                cached.append(engine.ask(user("The file is here. " * 200 + NAME))[1]["n_cached"])
                engine.close()
            self.assertEqual(cached[0], 0)
            self.assertGreater(cached[1], 500)


class C(unittest.TestCase):
    def test_the_example(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "complete"
            subprocess.run(
                [os.environ["CMAKE_CXX_COMPILER"], "-x", "c", "-std=c11", "-Wall", "-Wextra",
                 "-Wpedantic", "-Werror", "-I", CHECKOUT / "src" / "bindings",
                 CHECKOUT / "examples" / "c" / "complete.c", "-x", "none", "-o", program, LIBRARY,
                 f"-Wl,-rpath,{LIBRARY.parent}", "-lpthread"], check=True)
            result = subprocess.run([program, NEEDLE_MODEL, 'The "file"\n'], capture_output=True,
                                    text=True, timeout=120)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertGreater(len(result.stdout), 20)
            wrong = subprocess.run([program, "/nowhere.gguf", "x"], capture_output=True, text=True)
            self.assertEqual(wrong.returncode, 1)
            self.assertIn("nowhere.gguf", wrong.stderr)

    def test_nothing_else_is_exported(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True,
                                 text=True, check=True).stdout
        names = set(re.findall(r" [A-Z] (\S+)$", symbols, re.M))
        header = (CHECKOUT / "src" / "bindings" / "slipstream.h").read_text()
        declared = set(re.findall(r"^\w[^;/(]*?(slipstream_\w+)\(", header, re.M))
        self.assertEqual(names, declared)


if __name__ == "__main__":
    unittest.main()
