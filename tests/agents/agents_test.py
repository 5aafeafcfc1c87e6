"""Coding agents from npm, headless, against `slipstream serve`: each reads a file, edits it and answers.

What the model says is scripted (scripted_proxy.py); the agents, their tools and the file are real. A second model has
another format of tool calls. Installing them takes a gigabyte, so this runs at night.
Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_BUILD, where to install the agents; MAKE_MODEL; SLIPSTREAM_TEST_DATA,
a folder with templates (without it the second model is skipped). WRITE_TRANSCRIPTS=1 stores the events' names anew.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "server"))

import npm_packages  # noqa: E402
from scripted_proxy import ScriptedProxy  # noqa: E402
from serving import NEEDLE_MODEL, Serving  # noqa: E402

BUILD = pathlib.Path(os.environ["SLIPSTREAM_BUILD"])
INSTALLED = BUILD / "agents"
BIN = INSTALLED / "node_modules" / ".bin"
TEMPLATES = pathlib.Path(os.environ.get("SLIPSTREAM_TEST_DATA", HERE.parents[2] / "shared")) / "templates"
CODER_TEMPLATE = TEMPLATES / "Qwen3-Coder.jinja"
TRANSCRIPTS = HERE / "transcripts.json"
MODEL = "lamp-model"
TASK = "In note.txt, make the lamp blue."
ANSWER = "The lamp is blue now."
# What an agent's next prompt may cost beyond what it has more than the last one.
N_TOKENS_SLACK = 64


def hermes_call(name, arguments):
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def coder_call(name, arguments):
    """As Qwen3-Coder writes it."""
    text = lambda value: value if isinstance(value, str) else json.dumps(value)  # noqa: E731
    parameters = "".join(f"<parameter={key}>\n{text(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def script_of(calls, call):
    """A call to read the note, one to edit it, and the answer."""
    read, edit = (call(name, arguments) for name, arguments in calls)
    return ["I read the note first.\n" + read, edit, ANSWER]


def claude(home, url, note):
    del home
    names = ("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL")
    return {
        "command": ["claude", "-p", TASK, "--allowedTools", "Read,Edit"],
        "environment": {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "local",
                        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
                        "DISABLE_AUTOUPDATER": "1", **dict.fromkeys(names, MODEL)},
        "calls": [("Read", {"file_path": note}),
                  ("Edit", {"file_path": note, "old_string": "red", "new_string": "blue"})]}


def codex(home, url, note):
    del note
    write(home / ".codex/config.toml", f'model = "{MODEL}"\nmodel_provider = "local"\n'
          'check_for_update_on_startup = false\n[model_providers.local]\nname = "local"\n'
          f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "LOCAL_KEY"\n'
          "[analytics]\nenabled = false\n")
    return {
        "command": ["codex", "exec", "--skip-git-repo-check",
                    "--dangerously-bypass-approvals-and-sandbox", TASK],
        "environment": {"LOCAL_KEY": "x"},
        "calls": [("exec_command", {"cmd": "cat note.txt"}),
                  ("exec_command", {"cmd": "sed -i s/red/blue/ note.txt"})]}


def opencode(home, url, note, package="@ai-sdk/openai-compatible"):
    model = {"name": MODEL, "tool_call": True, "limit": {"context": 65536, "output": 8192}}
    provider = {"npm": package, "name": "local", "models": {MODEL: model},
                "options": {"baseURL": f"{url}/v1", "apiKey": "x"}}
    write(home / ".config/opencode/opencode.json", json.dumps(
        {"autoupdate": False, "share": "disabled", "model": f"local/{MODEL}",
         "small_model": f"local/{MODEL}", "permission": {"*": "allow"},
         "provider": {"local": provider}}))
    switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
    return {
        "command": ["opencode", "run", "-m", f"local/{MODEL}", TASK],
        "environment": {f"OPENCODE_DISABLE_{name}": "1" for name in switches},
        "calls": [("read", {"filePath": note}),
                  ("edit", {"filePath": note, "oldString": "red", "newString": "blue"})]}


def opencode_messages(home, url, note):
    return opencode(home, url, note, "@ai-sdk/anthropic")


def opencode_responses(home, url, note):
    return opencode(home, url, note, "@ai-sdk/openai")


def pi(home, url, note, api="openai-completions", suffix="/v1"):
    model = {"id": MODEL, "name": MODEL, "reasoning": False, "input": ["text"], "maxTokens": 8192,
             "contextWindow": 65536, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
    write(home / ".pi/agent/models.json", json.dumps({"providers": {"local": {
        "baseUrl": url + suffix, "api": api, "apiKey": "x", "models": [model]}}}))
    return {
        "command": ["pi", "-p", "--no-session", "--provider", "local", "--model", MODEL, TASK],
        "environment": {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"},
        "calls": [("read", {"path": note}),
                  ("edit", {"path": note, "edits": [{"oldText": "red", "newText": "blue"}]})]}


def pi_messages(home, url, note):
    return pi(home, url, note, "anthropic-messages", "")


def pi_responses(home, url, note):
    return pi(home, url, note, "openai-responses")


def qwen(home, url, note):
    write(home / ".qwen/settings.json", json.dumps(
        {"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False},
         "general": {"disableAutoUpdate": True}, "telemetry": {"enabled": False}, "$version": 4}))
    return {
        "command": ["qwen", "--yolo", "-p", TASK],
        "environment": {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": MODEL},
        "calls": [("read_file", {"file_path": note}),
                  ("edit", {"file_path": note, "old_string": "red", "new_string": "blue"})]}


AGENTS = {agent.__name__: agent for agent in (
    claude, codex, opencode, opencode_messages, opencode_responses, pi, pi_messages, pi_responses, qwen)}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def install():
    npm_packages.install(HERE / "clients", INSTALLED)
    # They fetch nothing: they put the binary that npm has downloaded in its place.
    for script in ("@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs"):
        subprocess.run(["node", INSTALLED / "node_modules" / script], check=True, capture_output=True)


class Agents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        install()
        cls.transcripts = {}

    @classmethod
    def tearDownClass(cls):
        if os.environ.get("WRITE_TRANSCRIPTS"):
            TRANSCRIPTS.write_text(json.dumps(cls.transcripts, indent=1) + "\n")

    def check(self, name, server, call):
        with tempfile.TemporaryDirectory() as folder:
            home, work = pathlib.Path(folder, "home"), pathlib.Path(folder, "work")
            home.mkdir()
            note = work / "note.txt"
            write(note, "The lamp is red.\n")
            proxy = ScriptedProxy(server.port, [])
            self.addCleanup(proxy.close)
            agent = AGENTS[name](home, f"http://127.0.0.1:{proxy.port}", str(note))
            proxy.left = script_of(agent["calls"], call)
            ran = subprocess.run(
                agent["command"], cwd=work, check=False, capture_output=True, text=True, timeout=300,
                stdin=subprocess.DEVNULL,
                env={"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(home), **agent["environment"]})
            said = f"{ran.stdout}{ran.stderr}\n" + "\n".join(turn["answer"][:600] for turn in proxy.turns)
            self.assertEqual(ran.returncode, 0, said)
            self.assertEqual(note.read_text(), "The lamp is blue.\n", said)
            self.assertIn(ANSWER, ran.stdout, said)
        self.assertEqual([turn["status"] for turn in proxy.turns], [200] * 3, said)
        self.check_recomputed(name, [turn["usage"] for turn in proxy.turns])
        return {"path": proxy.turns[0]["path"], "events": [turn["events"] for turn in proxy.turns]}

    def check_recomputed(self, name, usages):
        computed = [n_prompt - n_cached for n_prompt, n_cached in usages]
        print(f"{name}: prompts {[usage[0] for usage in usages]}, computed {computed}", flush=True)
        for (n_before, _), (n_prompt, n_cached) in zip(usages, usages[1:]):
            self.assertLessEqual(n_prompt - n_cached, n_prompt - n_before + N_TOKENS_SLACK)

    def check_all(self, server, call, transcripts=None):
        for name in AGENTS:
            with self.subTest(name):
                transcript = self.check(name, server, call)
                if transcripts is not None:
                    self.transcripts[name] = transcript
                    self.assertEqual(transcript, transcripts.get(name, transcript))

    def test_chatml_model(self):
        server = Serving("--name", MODEL, "--ctx", "65536", "--kv", "f16")
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        stored = {} if os.environ.get("WRITE_TRANSCRIPTS") else json.loads(TRANSCRIPTS.read_text())
        self.check_all(server, hermes_call, stored)

    def test_model_with_another_tool_format(self):
        if not CODER_TEMPLATE.exists():
            self.skipTest(f"{CODER_TEMPLATE} is not there")
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder, "coder.gguf"))
            subprocess.run([os.environ["MAKE_MODEL"], "qwen3", path, "--vocabulary", NEEDLE_MODEL,
                            "--chat-template", CODER_TEMPLATE, "--layers", "2"], check=True)
            server = Serving("--name", MODEL, "--ctx", "65536", "--kv", "f16", model=path)
            self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
            self.check_all(server, coder_call)


if __name__ == "__main__":
    unittest.main()
