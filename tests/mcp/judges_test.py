"""Official clients against `slipstream mcp` and `POST /mcp`: both SDKs, the inspector, the conformance package, and coding
agents. They come from npm, so this runs at night, and is skipped where npm has no registry.

Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_BUILD, where to install the packages.
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
sys.path[:0] = [str(HERE.parent / "server"), str(HERE.parent / "agents")]

import agents_test  # noqa: E402
import npm_packages  # noqa: E402
from mcp_process import Project  # noqa: E402
from scripted_proxy import ScriptedProxy  # noqa: E402
from serving import Serving  # noqa: E402

PROGRAM = os.environ["SLIPSTREAM_BIN"]
INSTALLED = pathlib.Path(os.environ["SLIPSTREAM_BUILD"]) / "mcp_judges"
MODEL = "lamp-model"
TASK = "Where does the heron wait?"
ANSWER = "The heron waits in the river."
# Of the conformance package: those that are not about the tools of its own example server.
SCENARIOS = ("server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection")


def tools_of(project):
    return ["search", "read_lines", "find_symbol", "find_related", "list_projects", "index_status", "wait_until_fresh"]


class Judges(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        npm_packages.install(HERE / "clients", INSTALLED)
        for file in (HERE / "clients").glob("*.mjs"):  # node looks for packages where a file is
            shutil.copy(file, INSTALLED)
        cls.project = Project()
        cls.addClassCleanup(cls.project.close)
        cls.server = Serving("--name", MODEL, "--ctx", "65536", "--kv", "f16", "--mcp",
                             "--mcp-project", str(cls.project.root), *cls.project.options())
        cls.addClassCleanup(cls.server.stop)
        cls.url = f"http://localhost:{cls.server.port}/mcp"

    def run_node(self, *command, timeout=120):
        ran = subprocess.run(["node", *command], cwd=INSTALLED, check=False, capture_output=True, text=True,
                             timeout=timeout, stdin=subprocess.DEVNULL,
                             env={**os.environ, "MCP_URL": self.url, "PROJECT": str(self.project.root),
                                  "INDEX": str(self.project.index)})
        self.assertEqual(ran.returncode, 0, f"{command}\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def test_sdk(self):
        print(self.run_node("--test", "--test-reporter=spec", "sdk_test.mjs"), flush=True)

    def test_client_of_both_eras(self):
        print(self.run_node("--test", "--test-reporter=spec", "client_test.mjs"), flush=True)

    def test_inspector(self):
        inspector = INSTALLED / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        targets = ([self.url], [PROGRAM, "mcp", "--index", str(self.project.index), "--project", str(self.project.root)])
        for target in targets:
            def ask(method, *more, target=target):
                # Options of its own come first: what begins with -- after the target is the target's.
                return json.loads(self.run_node(str(inspector), "--cli", "--method", method, *more, "--", *target))
            self.assertEqual([tool["name"] for tool in ask("tools/list")["tools"]], tools_of(self.project))
            found = ask("tools/call", "--tool-name", "search", "--tool-arg", "query=heron waits")
            self.assertIn("docs/birds.md:1-3", found["content"][0]["text"])
            uris = [one["uri"] for one in ask("resources/list")["resources"]]
            self.assertIn(f"file://{self.project.root}/docs/birds.md", uris)
            text = ask("resources/read", "--uri", f"file://{self.project.root}/docs/birds.md")
            self.assertIn("The heron stands", text["contents"][0]["text"])

    def test_conformance(self):
        conformance = INSTALLED / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        with tempfile.TemporaryDirectory() as folder:
            for scenario in SCENARIOS:
                with self.subTest(scenario):
                    said = self.run_node(str(conformance), "server", "--url", self.url, "--scenario", scenario,
                                         "--output-dir", folder)
                    print(said.strip().splitlines()[-1], flush=True)


def hermes_call(name, arguments):
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def claude(home, url, command):
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"slipstream": {"command": command[0], "args": command[1:]}}}))
    names = ("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL")
    return {
        "command": ["claude", "-p", TASK, "--mcp-config", str(config), "--strict-mcp-config",
                    "--allowedTools", "mcp__slipstream__search"],
        "environment": {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "local", "ENABLE_TOOL_SEARCH": "false",
                        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
                        "DISABLE_AUTOUPDATER": "1", **dict.fromkeys(names, MODEL)},
        "tool": "mcp__slipstream__search"}


def codex(home, url, command):
    config = home / ".codex/config.toml"
    config.parent.mkdir()
    config.write_text(f'model = "{MODEL}"\nmodel_provider = "local"\ncheck_for_update_on_startup = false\n'
                      '[model_providers.local]\nname = "local"\n'
                      f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "LOCAL_KEY"\n'
                      "[analytics]\nenabled = false\n"
                      f"[mcp_servers.slipstream]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n")
    return {
        "command": ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK],
        "environment": {"LOCAL_KEY": "x"},
        "tool": "search"}  # in a namespace of the server's name


class Agents(unittest.TestCase):
    """Each starts `slipstream mcp`, lists its tools, and calls one that a scripted model asks for."""

    @classmethod
    def setUpClass(cls):
        agents_test.install()
        cls.server = Serving("--name", MODEL, "--ctx", "65536", "--kv", "f16")
        cls.addClassCleanup(cls.server.stop)

    def check(self, agent):
        project = Project()
        self.addCleanup(project.close)
        with tempfile.TemporaryDirectory() as folder:
            home, work = pathlib.Path(folder, "home"), pathlib.Path(folder, "work")
            home.mkdir()
            work.mkdir()
            # What goes in and out is kept beside.
            script = f"tee '{folder}/asked' | '{PROGRAM}' mcp --index '{project.index}' --project '{project.root}' | tee '{folder}/answered'"
            proxy = ScriptedProxy(self.server.port, [])
            self.addCleanup(proxy.close)
            how = agent(home, f"http://127.0.0.1:{proxy.port}", ["sh", "-c", script])
            proxy.left = [hermes_call(how["tool"], {"query": "heron waits"}), ANSWER]
            ran = subprocess.run(how["command"], cwd=work, check=False, capture_output=True, text=True, timeout=300,
                                 stdin=subprocess.DEVNULL,
                                 env={"PATH": f"{agents_test.BIN}:{os.environ['PATH']}", "HOME": str(home),
                                      **how["environment"]})
            asked = [json.loads(line) for line in pathlib.Path(folder, "asked").read_text().splitlines()]
            answered = [json.loads(line) for line in pathlib.Path(folder, "answered").read_text().splitlines()]
        said = f"{ran.stdout}{ran.stderr}\n{asked}\n" + "\n".join(turn["answer"][:600] for turn in proxy.turns)
        self.assertEqual(ran.returncode, 0, said)
        self.assertIn(ANSWER, ran.stdout, said)
        methods = [message.get("method") for message in asked]
        print(f"{agent.__name__}: {methods}", flush=True)
        self.assertIn("tools/list", methods)
        calls = [message for message in asked if message.get("method") == "tools/call"]
        self.assertEqual([call["params"]["name"] for call in calls], ["search"], said)
        results = [reply["result"] for reply in answered if reply.get("id") == calls[0]["id"]]
        self.assertIn("docs/birds.md:1-3", results[0]["content"][0]["text"])

    def test_claude_code(self):
        self.check(claude)

    def test_codex(self):
        self.check(codex)

    def test_opencode_connects(self):
        project = Project()
        self.addCleanup(project.close)
        with tempfile.TemporaryDirectory() as folder:
            command = [PROGRAM, "mcp", "--index", str(project.index), "--project", str(project.root)]
            pathlib.Path(folder, "opencode.json").write_text(json.dumps(
                {"mcp": {"slipstream": {"type": "local", "command": command, "enabled": True}}, "autoupdate": False}))
            switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
            ran = subprocess.run(["opencode", "mcp", "list"], cwd=folder, check=False, capture_output=True, text=True,
                                 timeout=120, stdin=subprocess.DEVNULL,
                                 env={"PATH": f"{agents_test.BIN}:{os.environ['PATH']}", "HOME": folder,
                                      **{f"OPENCODE_DISABLE_{name}": "1" for name in switches}})
        self.assertRegex(ran.stdout + ran.stderr, r"slipstream\W.*connected")


if __name__ == "__main__":
    unittest.main()
