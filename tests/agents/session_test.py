"""What an agent's session costs: how many tokens of each prompt are computed, turn by turn, and llama-server's beside.

A session is made with the sizes of one of Claude Code's: a system prompt and tools of 46,000 characters, then turns of
a call and its result. The answers are scripted by grammars. Four shapes: full attention, sliding windows (two kinds),
and a hybrid with a recurrent state. Half of the session runs after a restart, from prefixes on disk.
Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_FIXTURES, models with random weights.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "server"))

from scripted_proxy import grammar_of  # noqa: E402
from serving import FIXTURES, Serving  # noqa: E402

SHAPES = os.environ.get("SHAPES", "qwen3 gemma3 gpt-oss qwen35").split()
MODELS = pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"])
N_TURNS = 30
SYSTEM_CHARACTERS = 24000
N_TOOLS = 12
TOOL_CHARACTERS = 1800
N_CONTEXT = 32768
N_TOKENS_SLACK = 64
CACHED_SHARE_MIN = 0.95
LOREM = (FIXTURES / "haystack.txt").read_text()


class Slipstream(Serving):
    def saying(self, text):
        return {"grammar": grammar_of(text), "max_tokens": 200}


class LlamaServing(Serving):
    """Stock llama-server instead, with one slot so that its cache is the conversation's.

    It takes no grammar beside tools: what it says is short, and the conversation goes on with the scripted call.
    """

    def saying(self, _):
        return {"max_tokens": 8}

    def __init__(self, model):
        self.log_file = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen(
            ["llama-server", "-m", model, "--port", "0", "--threads", "2", "--offline", "--jinja",
             "--ctx-size", str(N_CONTEXT), "--parallel", "1"],
            stdout=subprocess.DEVNULL, stderr=self.log_file)
        self.port = int(self.wait_for_line(r"listening on http://.*:(\d+)\n")[1])


def text_of(n, seed):
    at = random.Random(seed).randrange(len(LOREM))
    return (LOREM[at:] + LOREM * (n // len(LOREM) + 1))[:n]


def tools():
    return [{"type": "function", "function": {
        "name": f"tool_{i}", "description": text_of(TOOL_CHARACTERS, f"tool {i}"),
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}
        for i in range(N_TOOLS)]


class Session:
    """A conversation that grows by a call and its result with each turn."""

    def __init__(self, question):
        self.messages = [{"role": "system", "content": text_of(SYSTEM_CHARACTERS, "system")},
                         {"role": "user", "content": question}]
        self.sizes = random.Random(question)
        self.n_before = 0

    def turn(self, server):
        """(tokens that are new, tokens of the prompt, those that were computed)"""
        arguments = json.dumps({"path": f"/src/{len(self.messages)}.py"})
        call = f'<tool_call>\n{{"name": "tool_1", "arguments": {arguments}}}\n</tool_call>'
        status, answer = server.post("/v1/chat/completions", {
            "messages": self.messages, "tools": tools(), "temperature": 0, **server.saying(call)})
        assert status == 200, answer
        message = answer["choices"][0]["message"]
        # What a client sends back, whoever has read the call.
        self.messages += [
            {"role": "assistant", "content": message["content"] or "", "tool_calls": [
                {"id": f"call{len(self.messages)}", "type": "function",
                 "function": {"name": "tool_1", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": f"call{len(self.messages)}",
             "content": text_of(self.sizes.choice((80, 300, 900, 2500)), len(self.messages))}]
        usage = answer["usage"]
        n_prompt = usage["prompt_tokens"]
        n_computed = n_prompt - usage["prompt_tokens_details"]["cached_tokens"]
        n_new = n_prompt - self.n_before
        self.n_before = n_prompt
        return n_new, n_prompt, n_computed


def line(name, turns):
    later = turns[1:]
    worst = max(computed - new for new, _, computed in later)
    return (f"{name:24} first prompt {turns[0][1]:6}, last {turns[-1][1]:6}; later turns: new "
            f"{sum(t[0] for t in later):6}, computed {sum(t[2] for t in later):6}, most above new {worst}")


class SessionCost(unittest.TestCase):
    def check_turns(self, turns):
        for new, _, computed in turns[1:]:
            self.assertLessEqual(computed, new + N_TOKENS_SLACK)

    def check_shape(self, shape):
        model = str(MODELS / f"{shape}.gguf")
        with tempfile.TemporaryDirectory() as folder:
            options = ("--ctx", str(N_CONTEXT), "--kv", "f16", "--kv-disk", folder)
            session = Session("Mend the test.")
            server = Slipstream(*options, model=model)
            turns = [session.turn(server) for _ in range(N_TURNS // 2)]
            others = [Session("Write a manual, please.").turn(server)]
            self.assertEqual(server.stop(), 0)  # saves what it has
            server = Slipstream(*options, model=model)
            others.append(Session("Draw a map, please.").turn(server))
            turns += [session.turn(server) for _ in range(N_TURNS // 2)]
            print(line(f"{shape}, slipstream", turns), flush=True)
            restarted = turns[N_TURNS // 2]
            print(f"  after the restart: {restarted[1]} tokens, {restarted[2]} computed")
            for (_, n_prompt, n_computed), when in zip(others, ("before", "after")):
                print(f"  another conversation {when} it: {n_prompt} tokens, {n_computed} computed", flush=True)
            self.assertEqual(server.stop(), 0)
        self.show_llama_server(shape, model)
        self.check_turns(turns)
        for _, n_prompt, n_computed in others:
            self.assertGreaterEqual(n_prompt - n_computed, CACHED_SHARE_MIN * n_prompt)

    def show_llama_server(self, shape, model):
        if not shutil.which("llama-server"):
            return
        server = LlamaServing(model)
        self.addCleanup(server.stop)
        session = Session("Mend the test.")
        print(line(f"{shape}, llama-server", [session.turn(server) for _ in range(N_TURNS)]))
        _, n_prompt, n_computed = Session("Write a manual, please.").turn(server)
        print(f"  another conversation: {n_prompt} tokens, {n_computed} computed", flush=True)

    def test_shapes(self):
        for shape in SHAPES:
            with self.subTest(shape):
                self.check_shape(shape)


if __name__ == "__main__":
    unittest.main()
