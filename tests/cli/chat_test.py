"""slipstream chat, at a terminal and without one: with a local model, a server of the test, and stock llama-server.

Environment: SLIPSTREAM_BIN, the built program.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import socket
import stat
import subprocess
import tempfile
import termios
import time
import unittest
import urllib.request

from fake_openai import FakeOpenAi

PROGRAM = os.environ["SLIPSTREAM_BIN"]
FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
NEEDLE_MODEL = str(FIXTURES / "needle-4m.gguf")
HAYSTACK = (FIXTURES / "haystack.txt").read_text()
LINES = [*HAYSTACK[:300].splitlines(), "We met amber lantern today.", *HAYSTACK[300:600].splitlines(),
         "What is the full name of amber?"]
ANSWER = "It is amber lantern."
LOCAL = (NEEDLE_MODEL, "--ctx", "2048", "--threads", "1", "--kv", "turbo8v4", "--temp", "0")


class Terminal:
    """A program at a pseudo-terminal."""

    def __init__(self, *arguments, **environment):
        self.fd, tty = pty.openpty()
        termios.tcsetwinsize(tty, (40, 200))
        self.process = subprocess.Popen(
            [PROGRAM, "chat", *arguments], stdin=tty, stdout=tty, stderr=tty, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **environment})
        os.close(tty)
        self.output = ""
        self.seen = 0  # what expect() has passed

    def expect(self, pattern, seconds_max=60):
        end = time.monotonic() + seconds_max
        while True:
            if found := re.search(pattern, self.output[self.seen:]):
                text = self.output[self.seen:self.seen + found.end()]
                self.seen += found.end()
                return text
            left = end - time.monotonic()
            if left <= 0 or not self.read(left):
                raise AssertionError(f"no {pattern} in {self.output[self.seen:]!r}")

    def read(self, seconds_max):
        """False at the end of the output."""
        if not select.select([self.fd], [], [], seconds_max)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the other side is closed
            return False
        self.output += data.decode(errors="surrogateescape")
        return bool(data)

    def send(self, text):
        os.write(self.fd, text.encode())

    def ask(self, line, pattern):
        """A line at the prompt, and what must come."""
        self.send(line + "\n")
        text = self.expect(pattern)
        self.expect(r"\n> ")
        return text

    def end(self):
        while self.read(10):
            pass
        status = self.process.wait(timeout=20)
        os.close(self.fd)
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class ChatCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="slipstream-chat-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.history = self.folder / "slipstream" / "chat_history"

    def terminal(self, *arguments, **environment):
        terminal = Terminal(*arguments, XDG_STATE_HOME=str(self.folder), **environment)
        self.addCleanup(terminal.kill)
        terminal.expect(r"/help shows commands.*\n(.*\n)*?> ")
        return terminal

    def serve(self, *answers, **options):
        fake = FakeOpenAi(answers, **options)
        self.addCleanup(fake.stop)
        return fake

    def run_piped(self, question, *arguments):
        return subprocess.run([PROGRAM, "chat", *arguments], input=question, capture_output=True,
                              text=True, check=False, timeout=120)


class LocalModel(ChatCase):
    def test_a_conversation_with_commands(self):
        terminal = self.terminal(*LOCAL)
        terminal.send('"""' + LINES[0] + "\n")
        for line in LINES[1:]:
            terminal.expect(r"\.\.\. ")
            terminal.send(line + "\n")
        terminal.expect(r"\.\.\. ")
        terminal.send('"""\n')
        terminal.expect(re.escape(ANSWER))
        status = (r"tokens/s \| first token [\d.]+ s \| prompt (\d+) tokens, (\d+) cached "
                  r"\| KV ([\d.]+) of ([\d.]+) MiB, turbo8v4")
        figures = re.search(status, terminal.expect(status)).groups()
        n_prompt, n_cached = map(int, figures[:2])
        self.assertGreater(n_prompt, 100)
        # 2048 tokens fit; this takes as much as it has tokens, and an answer of a few.
        self.assertAlmostEqual(float(figures[2]), float(figures[3]) * n_prompt / 2048, delta=0.1)
        self.assertGreater(float(figures[2]), 0)
        self.assertEqual(n_cached, 0)
        terminal.expect(r"\n> ")
        again = terminal.ask("/regen", status)
        self.assertIn(ANSWER, again)
        self.assertGreater(int(re.search(status, again)[2]), 100)  # the prompt was there already

        saved = self.folder / "chat.json"
        terminal.ask(f"/save {saved}", "saved in")
        chat = json.loads(saved.read_text())
        self.assertEqual([m["role"] for m in chat["messages"]], ["user", "assistant"])
        self.assertEqual(chat["messages"][0]["content"], "\n".join(LINES))
        self.assertEqual(chat["messages"][1]["content"], ANSWER)
        self.assertEqual(chat["settings"], {"temperature": 0.0})
        terminal.ask("/clear", "a new conversation")
        terminal.ask("/regen", "nothing was asked yet")
        terminal.ask(f"/load {saved}", "2 messages")
        terminal.ask("/load /nonexistent", "cannot open /nonexistent")
        terminal.ask("/set max_tokens 1", r'"max_tokens":1')
        terminal.ask("Once more?", status + r" \| stopped at the token limit")
        terminal.ask("/set nonsense 1", "there is no setting 'nonsense'; there are temperature")
        terminal.ask("/nonsense", "there is no command /nonsense")
        terminal.ask("/help", r"/regen +generate the last answer again")
        terminal.ask("/stats", r"3 answers of \d+ tokens")
        terminal.send("/exit\n")
        self.assertEqual(terminal.end(), 0)

    def test_a_question_in_and_an_answer_out(self):
        result = self.run_piped("\n".join(LINES), *LOCAL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, ANSWER + "\n")
        self.assertRegex(result.stderr, r"^[\d.]+ tokens/s \| first token .* prompt \d+ tokens, 0 cached\n$")

    def test_what_cannot_be_is_said_with_what_to_do(self):
        for arguments, status, expected in (
                ((), 2, "--server"), (("/nonexistent.gguf",), 1, "/nonexistent.gguf"),
                (LOCAL, 1, "standard input is empty"),
                (("--server", "http://127.0.0.1:1"), 1, "is it running?")):
            result = self.run_piped("", *arguments)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertIn(expected, result.stderr)
            self.assertEqual(result.stdout, "")


class Server(ChatCase):
    def test_messages_of_several_lines_and_settings_reach_the_server(self):
        fake = self.serve(*[[{"content": "yes"}]] * 3)
        terminal = self.terminal("--server", fake.url, "--model-name", "second", "--system", "Be brief.")
        terminal.send("one \\\n")
        terminal.expect(r"\.\.\. ")
        terminal.ask("two", "first token")
        terminal.ask('"""three"""', "first token")
        terminal.ask("/system -", "no system prompt")
        terminal.ask("/set temperature 0.5", "0.5")
        terminal.ask("/set thinking off", "false")
        terminal.ask("grüße 世界", "first token")
        terminal.send("\x04")
        self.assertEqual(terminal.end(), 0)
        first, second, third = fake.requests
        self.assertEqual(first["messages"], [{"role": "system", "content": "Be brief."},
                                             {"role": "user", "content": "one \ntwo"}])
        self.assertEqual(first["model"], "second")
        self.assertTrue(first["stream"])
        self.assertEqual([m["content"] for m in second["messages"]],
                         ["Be brief.", "one \ntwo", "yes", "three"])
        self.assertEqual(third["messages"][-1]["content"], "grüße 世界")
        self.assertNotIn("system", [m["role"] for m in third["messages"]])
        self.assertEqual(third["temperature"], 0.5)
        self.assertEqual(third["chat_template_kwargs"], {"enable_thinking": False})

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        fake = self.serve([{"content": "la "}], [{"content": "yes"}])
        terminal = self.terminal("--server", fake.url)
        fake.is_endless = True
        terminal.send("sing\n")
        terminal.expect("la la la la")
        started = time.monotonic()
        terminal.send("\x03")
        terminal.expect(r"first token.*stopped.*\n> ")
        self.assertLess(time.monotonic() - started, 5)
        while fake.clients_gone == 0:
            self.assertLess(time.monotonic() - started, 10, "the server still sings")
            time.sleep(0.05)
        fake.is_endless = False
        terminal.send("half a line\x03")  # at the prompt it takes the line back
        terminal.expect(r"\n> ")
        terminal.ask("again", r"yes\r\n.*prompt 12 tokens, 7 cached")
        self.assertEqual(fake.requests[1]["messages"][-1]["content"], "again")
        self.assertIn("la la", fake.requests[1]["messages"][1]["content"])
        terminal.send("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_nothing_that_a_model_writes_steers_the_terminal(self):
        hostile = "\x1b[31mred\x1b]0;title\x07\rover\x08 \x9b5m\x7f end"
        fake = self.serve([{"reasoning_content": "hm \x1b[5m"}, {"content": hostile}],
                          (400, {"error": {"message": "bad \x1b[31m request"}}))
        terminal = self.terminal("--server", fake.url)
        text = terminal.ask("go", r" end\r\n.*first token")
        self.assertIn(r"\x1b[31mred\x1b]0;title\x07\x0dover\x08 \x9b5m\x7f end", text)
        self.assertIn("\x1b[2mhm \\x1b[5m\x1b[0m", text)  # reasoning is dim
        self.assertIn(r"bad \x1b[31m request", terminal.ask("go", "request"))
        for code in ("\x1b[31m", "\x1b[5m", "\x1b]0;", "\x07", "\x9b"):
            self.assertNotIn(code, terminal.output)
        terminal.send("/exit\n")
        self.assertEqual(terminal.end(), 0)

    def test_no_color(self):
        fake = self.serve([{"reasoning_content": "hm"}, {"content": "yes"}])
        terminal = self.terminal("--server", fake.url, NO_COLOR="1")
        terminal.ask("go", r"\[thinking\]\r\nhm\r\n\[answer\]\r\nyes\r\n.*first token")
        self.assertNotRegex(terminal.output, "\x1b\\[[0-9;]*m")
        terminal.send("/exit\n")
        self.assertEqual(terminal.end(), 0)

    def test_without_a_terminal_there_is_the_answer_alone(self):
        fake = self.serve([{"reasoning_content": "hm"}, {"content": "yes \x1b[31m"}],
                          (503, {"error": {"message": "full"}}))
        result = self.run_piped("two\nlines\n", "--server", fake.url)
        self.assertEqual((result.returncode, result.stdout), (0, "yes \\x1b[31m\n"), result.stderr)
        self.assertNotIn("\x1b", result.stderr)
        self.assertEqual(fake.requests[0]["messages"], [{"role": "user", "content": "two\nlines"}])
        result = self.run_piped("go", "--server", fake.url)
        self.assertEqual((result.returncode, result.stderr), (1, "slipstream chat: full\n"))

    def test_history_is_its_owners_and_comes_back(self):
        fake = self.serve(*[[{"content": "yes"}]] * 3)
        terminal = self.terminal("--server", fake.url)
        terminal.ask("a question to remember", "first token")
        terminal.send("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(stat.S_IMODE(self.history.stat().st_mode), 0o600)
        self.assertIn("remember", self.history.read_text())
        terminal = self.terminal("--server", fake.url)
        terminal.send("\x1b[A")  # the arrow up
        terminal.expect("a question to remember")
        terminal.send("\x01\x1bd\x04X")  # to the begin of the line; its first word and the space go
        terminal.ask("", "first token")
        self.assertEqual(fake.requests[-1]["messages"][-1]["content"], "Xquestion to remember")
        terminal.send("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_keys_and_names(self):
        fake = self.serve([{"content": "yes"}], key="s3cret")
        wrong = self.run_piped("go", "--server", fake.url, "--api-key", "wrong")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("--api-key or OPENAI_API_KEY", wrong.stderr)
        unknown = self.run_piped("go", "--server", fake.url, "--api-key", "s3cret", "--model-name", "third")
        self.assertIn("has no model 'third'; it has first second", unknown.stderr)
        os.environ["OPENAI_API_KEY"] = "s3cret"
        self.addCleanup(os.environ.pop, "OPENAI_API_KEY")
        self.assertEqual(self.run_piped("go", "--server", fake.url + "/v1/").stdout, "yes\n")

    def test_stock_llama_server(self):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        stock = subprocess.Popen(
            ["llama-server", "-m", NEEDLE_MODEL, "-c", "2048", "-t", "1", "--port", str(port), "--no-webui"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(stock.wait)
        self.addCleanup(stock.kill)
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"{url}/health") as answer:
                    if answer.status == 200:
                        break
            time.sleep(0.1)
        result = self.run_piped("\n".join(LINES), "--server", url, "--temp", "0", "-n", "32")
        self.assertEqual((result.returncode, result.stdout), (0, ANSWER + "\n"), result.stderr)
        self.assertRegex(result.stderr, r"prompt \d+ tokens")


if __name__ == "__main__":
    unittest.main()
