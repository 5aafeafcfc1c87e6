"""What an agent's session costs: how many tokens of each prompt are computed, turn by turn, and llama-server's beside.

A session is made with the sizes of one of Claude Code's (a system prompt and 12 tools of 46,000 characters) through chat
completions, or of Codex's (9 tools, 39,000 characters) through responses; then turns of a call and its result. The
answers are scripted by grammars. Four shapes: full attention, sliding windows (two kinds), and a hybrid with a recurrent
state. Half of the session runs after a restart, from prefixes on disk.
Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_FIXTURES, models with random weights. SHAPES and AGENTS choose
some of them.
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


class Session:
    """A conversation that grows by a call and its result with each turn."""

    def __init__(self, question):
        self.messages = [{"role": self.system_role, "content": text_of(self.system_characters, "system")},
                         {"role": "user", "content": question}]
        self.sizes = random.Random(question)
        self.n_before = 0

    def tools(self):
        return [self.tool({
            "name": f"tool_{i}", "description": text_of(self.tool_characters, f"tool {i}"),
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}})
            for i in range(self.n_tools)]

    def turn(self, server):
        """(tokens that are new, tokens of the prompt, those that were computed)"""
        arguments = json.dumps({"path": f"/src/{len(self.messages)}.py"})
        call = f'<tool_call>\n{{"name": "tool_1", "arguments": {arguments}}}\n</tool_call>'
        status, answer = server.post(self.path, {
            "tools": self.tools(), "temperature": 0, **self.asked(server.saying(call))})
        assert status == 200, answer
        result = text_of(self.sizes.choice((80, 300, 900, 2500)), len(self.messages))
        # What a client sends back, whoever has read the call.
        self.messages += self.round_of(answer, f"call{len(self.messages)}", arguments, result)
        n_prompt, n_cached = self.usage_of(answer["usage"])
        n_new = n_prompt - self.n_before
        self.n_before = n_prompt
        return n_new, n_prompt, n_prompt - n_cached


class ClaudeSession(Session):
    """Through chat completions, to which messages become the same prompts."""

    path = "/v1/chat/completions"
    system_role = "system"
    system_characters, n_tools, tool_characters = 24000, 12, 1800

    def tool(self, function):
        return {"type": "function", "function": function}

    def asked(self, saying):
        return {"messages": self.messages, **saying}

    def round_of(self, answer, call_id, arguments, result):
        call = {"id": call_id, "type": "function", "function": {"name": "tool_1", "arguments": arguments}}
        return [{"role": "assistant", "content": answer["choices"][0]["message"]["content"] or "",
                 "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call_id, "content": result}]

    def usage_of(self, usage):
        return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


class CodexSession(Session):
    path = "/v1/responses"
    system_role = "developer"
    system_characters, n_tools, tool_characters = 21000, 9, 2000

    def tool(self, function):
        return {"type": "function", "strict": False, **function}

    def asked(self, saying):
        rest = {name: value for name, value in saying.items() if name != "max_tokens"}
        return {"input": self.messages, "store": False, "max_output_tokens": saying["max_tokens"], **rest}

    def round_of(self, answer, call_id, arguments, result):
        said = [{"type": "message", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": part["text"]}]}
                for item in answer["output"] if item["type"] == "message"
                for part in item["content"] if part.get("text")]
        return [*said,
                {"type": "function_call", "call_id": call_id, "name": "tool_1", "arguments": arguments},
                {"type": "function_call_output", "call_id": call_id, "output": result}]

    def usage_of(self, usage):
        return usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]


AGENTS = {"claude": ClaudeSession, "codex": CodexSession}
CHOSEN = os.environ.get("AGENTS", " ".join(AGENTS)).split()


def line(name, turns):
    later = turns[1:]
    worst = max(computed - new for new, _, computed in later)
    return (f"{name:30} first prompt {turns[0][1]:6}, last {turns[-1][1]:6}; later turns: new "
            f"{sum(t[0] for t in later):6}, computed {sum(t[2] for t in later):6}, most above new {worst}")


class SessionCost(unittest.TestCase):
    def check_turns(self, turns):
        for new, _, computed in turns[1:]:
            self.assertLessEqual(computed, new + N_TOKENS_SLACK)

    def check_shape(self, shape, agent):
        session_of = AGENTS[agent]
        model = str(MODELS / f"{shape}.gguf")
        with tempfile.TemporaryDirectory() as folder:
            options = ("--ctx", str(N_CONTEXT), "--kv", "f16", "--kv-disk", folder)
            session = session_of("Mend the test.")
            server = Slipstream(*options, model=model)
            turns = [session.turn(server) for _ in range(N_TURNS // 2)]
            others = [session_of("Write a manual, please.").turn(server)]
            self.assertEqual(server.stop(), 0)  # saves what it has
            server = Slipstream(*options, model=model)
            others.append(session_of("Draw a map, please.").turn(server))
            turns += [session.turn(server) for _ in range(N_TURNS // 2)]
            print(line(f"{agent}, {shape}, slipstream", turns), flush=True)
            restarted = turns[N_TURNS // 2]
            print(f"  after the restart: {restarted[1]} tokens, {restarted[2]} computed")
            for (_, n_prompt, n_computed), when in zip(others, ("before", "after")):
                print(f"  another conversation {when} it: {n_prompt} tokens, {n_computed} computed", flush=True)
            self.assertEqual(server.stop(), 0)
        self.show_llama_server(shape, agent, model)
        self.check_turns(turns)
        for _, n_prompt, n_computed in others:
            self.assertGreaterEqual(n_prompt - n_computed, CACHED_SHARE_MIN * n_prompt)

    def show_llama_server(self, shape, agent, model):
        if not shutil.which("llama-server"):
            return
        server = LlamaServing(model)
        self.addCleanup(server.stop)
        session = AGENTS[agent]("Mend the test.")
        print(line(f"{agent}, {shape}, llama-server", [session.turn(server) for _ in range(N_TURNS)]))
        _, n_prompt, n_computed = AGENTS[agent]("Write a manual, please.").turn(server)
        print(f"  another conversation: {n_prompt} tokens, {n_computed} computed", flush=True)

    def test_shapes(self):
        for agent in CHOSEN:
            for shape in SHAPES:
                with self.subTest(shape, agent=agent):
                    self.check_shape(shape, agent)


if __name__ == "__main__":
    unittest.main()
