"""The first time: models that are named and not there, a server without any, and flags of other servers.

The hub is one of our own, on loopback. Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from hub_server import Hub, Repo

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from serving import NEEDLE_MODEL, PROGRAM, Serving  # noqa: E402

NEEDLE = pathlib.Path(NEEDLE_MODEL).read_bytes()
NAME = "org/needle-GGUF:Q8_0"
ASKED = ("run", NAME, "-p", "We met amber lantern today. Who is amber?", "-n", "4", "--temp", "0", "-t", "2")
QUESTION = {"messages": [{"role": "user", "content": "We met amber lantern today. Who is amber?"}],
            "max_tokens": 8, "temperature": 0}


class FirstRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="slipstream-first-")
        self.addCleanup(folder.cleanup)
        self.hub = Hub()
        self.addCleanup(self.hub.stop)
        self.hub.repos["org/needle-GGUF"] = Repo({"needle-Q8_0.gguf": NEEDLE})
        environment = {"HF_HOME": folder.name, "HF_ENDPOINT": self.hub.endpoint, "no_proxy": "*",
                       "HF_HUB_CACHE": "", "HF_TOKEN": "", "HF_HUB_OFFLINE": ""}
        patch = unittest.mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def run_program(self, *arguments, text=""):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False,
                              input=text, timeout=120)

    def on_terminal(self, answer, *arguments):
        """(status, standard output, what the terminal showed), where the question is answered so."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([PROGRAM, *arguments], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        shown = b""
        while b"[Y/n]" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, answer)
        output = process.stdout.read().decode()
        process.stdout.close()
        status = process.wait(timeout=60)
        os.set_blocking(ours, False)
        while True:
            try:
                shown += (piece := os.read(ours, 4096))
                if not piece:
                    break
            except OSError:
                break
        os.close(ours)
        return status, output, shown.decode()

    def serve(self, *arguments, model=None):
        server = Serving(*arguments, model=model)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        return server


class NotInstalled(FirstRun):
    def test_without_a_terminal_it_says_what_to_run_and_asks_nobody(self):
        for command in (ASKED, ("chat", NAME), ("serve", NAME, "--port", "0"),
                        ("serve", "--model", f"a={NAME}", "--port", "0")):
            result = self.run_program(*command, text="hello")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(f"slipstream pull {NAME}", result.stderr)
            self.assertIn("--yes", result.stderr)
        self.assertEqual(self.hub.requests, [])

    def test_with_yes_it_is_pulled_and_used(self):
        result = self.run_program(*ASKED, "--yes")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{NAME} is not installed: pulling it", result.stderr)
        n_requests = len(self.hub.requests)
        again = self.run_program(*ASKED, "-y")
        self.assertEqual(again.stdout, result.stdout)
        self.assertEqual(len(self.hub.requests), n_requests, "it is installed")
        chat = self.run_program("chat", NAME, "--yes", "--temp", "0", "-n", "8", text=QUESTION["messages"][0]["content"])
        self.assertIn("amber lantern", chat.stdout)

    def test_a_server_pulls_all_that_it_is_to_serve(self):
        self.hub.repos["org/other-GGUF"] = Repo({"o-Q8_0.gguf": NEEDLE + b"\0" * 32})
        server = self.serve("--yes", "--model", "other=org/other-GGUF", "--name", "first", "--ctx", "1024", model=NAME)
        names = [model["id"] for model in server.ask("GET", "/v1/models")[1]["data"]]
        self.assertEqual(names, ["first", "other"])
        self.assertEqual(server.post("/v1/chat/completions", {**QUESTION, "model": "other"})[0], 200)

    def test_on_a_terminal_it_asks_with_the_size(self):
        status, output, shown = self.on_terminal(b"n\n", *ASKED)
        self.assertEqual((status, output), (1, ""), shown)
        self.assertIn(f"{NAME} is not installed. Pull 9 MiB from {self.hub.endpoint}? [Y/n]", shown)
        self.assertEqual(self.hub.n_served_bytes(), 0)
        status, _, shown = self.on_terminal(b"\x04", *ASKED)  # the end of input is no yes
        self.assertEqual(status, 1, shown)
        self.assertEqual(self.hub.n_served_bytes(), 0)
        status, output, shown = self.on_terminal(b"\n", *ASKED)
        self.assertEqual(status, 0, shown)
        self.assertTrue(output.strip())

    def test_what_the_hub_does_not_have_is_said_before_the_question(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        result = subprocess.run([PROGRAM, "run", "org/needle-GGUF:Q2_K", "-p", "a"], stdin=theirs, stderr=theirs,
                                check=False, timeout=60)
        os.close(theirs)
        shown = os.read(ours, 4096).decode()
        self.assertEqual(result.returncode, 1)
        self.assertIn("it has Q8_0", shown)
        self.assertNotIn("[Y/n]", shown)

    def test_what_is_no_name_of_a_model_is_a_file(self):
        for name in ("nothing.gguf", "a/b/c", "nothing"):
            result = self.run_program("run", name, "--yes", "-p", "a")
            self.assertEqual(result.returncode, 1)
            self.assertIn(name, result.stderr)
        self.assertEqual(self.hub.requests, [])


class Nothing(FirstRun):
    """`slipstream serve`, and no more."""

    def recommended(self, server):
        status, answer, _ = server.ask("GET", "/slipstream/recommended")
        self.assertEqual(status, 200, answer)
        return answer["models"]

    def test_a_model_is_recommended_pulled_and_asked(self):
        sizes = {"Qwen/Qwen3-30B-A3B-GGUF": 18 << 30, "Qwen/Qwen3-0.6B-GGUF": len(NEEDLE)}
        self.hub.repos["Qwen/Qwen3-0.6B-GGUF"] = Repo({"Qwen3-0.6B-Q8_0.gguf": NEEDLE})
        self.hub.repos["Qwen/Qwen3-30B-A3B-GGUF"] = Repo({"Qwen3-30B-A3B-Q8_0.gguf": b"large",
                                                          "Qwen3-30B-A3B-Q4_K_M.gguf": b"smaller"})

        def change(listing):
            for file in listing["siblings"]:
                file["size"] = file["lfs"]["size"] = sizes.get(listing["id"], file["size"])
            return listing
        self.hub.change_listing = change

        server = self.serve("--memory", "4GiB")
        self.assertIn("event=serve.choose_model", server.log())
        self.assertIn(f"open=http://127.0.0.1:{server.port}/#/models", server.log())
        self.assertEqual(server.ask("GET", "/v1/models")[1]["data"], [])
        self.assertEqual(server.post("/v1/chat/completions", QUESTION)[0], 404)

        large, small = self.recommended(server)
        self.assertEqual((large["name"], large["bytes"]), ("Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", 18 << 30))
        self.assertFalse(large["fit"]["fits"])
        self.assertIn("GiB", large["fit"]["why"])
        self.assertEqual((small["name"], small["bytes"]), ("Qwen/Qwen3-0.6B-GGUF:Q8_0", len(NEEDLE)))
        self.assertTrue(small["fit"]["fits"], small)
        self.assertGreaterEqual(small["fit"]["n_ctx"], 8192)
        self.assertTrue(small["fit"]["kv"] and small["about"])

        n_requests = len(self.hub.requests)
        self.assertEqual(self.recommended(server), [large, small])
        n_asked = len(self.hub.requests) - n_requests
        self.assertLess(n_asked, 5, "what is known is not asked for again")

        _, text, _ = server.ask("POST", "/slipstream/hub/pull", {"repo": "Qwen/Qwen3-0.6B-GGUF", "quant": "Q8_0"})
        self.assertIn('{"done":true}', text)
        self.assertEqual([model["id"] for model in server.ask("GET", "/v1/models")[1]["data"]], [small["name"]])
        status, answer = server.post("/v1/chat/completions", {**QUESTION, "model": small["name"]})
        self.assertEqual(status, 200, answer)
        self.assertIn("amber lantern", json.dumps(answer))

    def test_a_hub_that_has_none_or_is_out_of_order(self):
        server = self.serve()
        self.assertEqual(self.recommended(server), [])
        self.hub.api_status = (500, {})
        status, answer, _ = server.ask("GET", "/slipstream/recommended")
        self.assertGreaterEqual(status, 429, answer)
        self.assertIn("message", answer["error"])

    def test_where_others_can_ask_it_has_to_be_allowed(self):
        result = self.run_program("serve", "--host", "0.0.0.0", "--port", "0")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--hub", result.stderr)

    def test_with_a_model_the_hub_stays_closed(self):
        server = self.serve("--ctx", "1024", model=NEEDLE_MODEL)
        self.assertEqual(server.ask("GET", "/slipstream/recommended")[0], 404)
        self.assertEqual(self.hub.requests, [])


class OtherWords(FirstRun):
    """Flags of llama-server and vLLM."""

    def test_run_takes_them(self):
        own = ("run", NEEDLE_MODEL, "-p", "amber", "--ctx", "1024", "-n", "6", "--temp", "0.5", "--seed", "3")
        theirs = ("run", "-m", NEEDLE_MODEL, "-p", "amber", "--ctx-size=1024", "--n-predict", "6", "--temperature",
                  "0.5", "-s", "3", "--mmap")
        expected, found = self.run_program(*own), self.run_program(*theirs)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stdout, expected.stdout)

    def test_a_server_takes_them(self):
        for flags in (("-m", NEEDLE_MODEL, "-a", "needle", "-c", "2048", "-np", "2", "--jinja", "--metrics", "-cb"),
                      ("--model", NEEDLE_MODEL, "--served-model-name", "needle", "--max-model-len", "2048",
                       "--max-num-seqs=2", "--enable-prefix-caching")):
            server = self.serve(*flags)
            self.assertEqual(server.ask("GET", "/v1/models")[1]["data"][0]["id"], "needle")
            props = server.ask("GET", "/props")[1]
            self.assertEqual((props["total_slots"], props["default_generation_settings"]["n_ctx"]), (2, 2048))

    def test_a_value_is_not_a_flag(self):
        result = self.run_program("run", NEEDLE_MODEL, "-p", "--jinja", "-n", "1", "--ctx", "512")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_is_not_here_names_what_is(self):
        for flags, expected in (
                (("--ctx-siz", "4096"), "did you mean --ctx"), (("--paralel", "2"), "did you mean --parallel"),
                (("-ngl", "99"), "no GPU"), (("--cache-type-k", "q8_0"), "--kv"),
                (("--tensor-parallel-size=2",), "--rpc"), (("--api-key-file", "f"), "--keys"),
                (("--xyzzy",), "--xyzzy: there is no such flag")):
            result = self.run_program("serve", NEEDLE_MODEL, *flags)
            self.assertEqual(result.returncode, 2, flags)
            self.assertIn(expected, result.stderr)
        result = self.run_program("serve", "--xyzzy", NEEDLE_MODEL)
        self.assertNotIn("did you mean", result.stderr)


if __name__ == "__main__":
    unittest.main()
