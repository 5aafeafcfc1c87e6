"""The web app in a browser, against the real server and the needle model; and its unit tests.

Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_BUILD, where the app was built and where the
browser's driver is installed.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

# Two threads that compute wait for each other, and next to a browser they wait long.
os.environ["SLIPSTREAM_THREADS"] = "1"
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "server"), str(HERE.parent / "hub")]

import npm_packages  # noqa: E402
from hub_server import Hub, Repo  # noqa: E402
from serving import FIXTURES, NEEDLE_MODEL, PROGRAM, Serving  # noqa: E402

BUILD = pathlib.Path(os.environ["SLIPSTREAM_BUILD"])
APP = BUILD / "web"  # a copy of web/, with its packages
INSTALLED = BUILD / "web_tests"
KEY = "a-key-of-the-test"
ARGUMENTS = ("--name", "needle", "--ctx", "4096", "--kv", "turbo8v4")


class Web(unittest.TestCase):
    def setUp(self):
        if not (APP / "dist").exists():
            self.skipTest("the program was built without the web app: SLIPSTREAM_WEB is off")

    def run_node(self, command, **options):
        node = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1100,
                              **options)
        print(f"\n{node.stdout}{node.stderr}", flush=True)
        self.assertEqual(node.returncode, 0)

    def serve(self, *arguments):
        server = Serving(*ARGUMENTS, *arguments)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        return f"http://127.0.0.1:{server.port}"

    def serve_with_hub(self):
        """A server with --hub, and a hub with models that are sound, damaged, and none."""
        folder = tempfile.TemporaryDirectory(prefix="slipstream-web-")
        self.addCleanup(folder.cleanup)
        hub = Hub()
        self.addCleanup(hub.stop)
        damaged = b"d" * 300_000
        hub.repos = {
            "org/needle-GGUF": Repo({"n-Q8_0.gguf": pathlib.Path(NEEDLE_MODEL).read_bytes()},
                                    downloads=12345),
            "org/damaged-GGUF": Repo({"d-Q4_0.gguf": damaged}),
            "org/large-GGUF": Repo({"l-Q4_0.gguf": bytes(64 << 20)}),
            "org/none-GGUF": Repo({"none-Q2_K.gguf": b"no model"})}
        hub.change_content = lambda content: b"x" * len(content) if content == damaged else content
        environment = {"HF_HOME": folder.name, "HF_ENDPOINT": hub.endpoint, "HF_HUB_CACHE": "",
                       "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "no_proxy": "*"}
        with unittest.mock.patch.dict(os.environ, environment):
            subprocess.run([PROGRAM, "pull", "org/none-GGUF"], check=True, capture_output=True)
            hub.piece_seconds = 0.01  # so that there is progress to be seen
            return self.serve("--hub")

    def serve_nothing(self):
        """A server without a model, and a hub with one that fits and one that does not."""
        folder = tempfile.TemporaryDirectory(prefix="slipstream-web-")
        self.addCleanup(folder.cleanup)
        hub = Hub()
        self.addCleanup(hub.stop)
        hub.repos = {"Qwen/Qwen3-0.6B-GGUF": Repo({"Qwen3-0.6B-Q8_0.gguf": pathlib.Path(NEEDLE_MODEL).read_bytes()}),
                     "Qwen/Qwen3-8B-GGUF": Repo({"Qwen3-8B-Q4_K_M.gguf": b"large"})}

        def grow(listing):
            if "8B" in listing["id"]:
                listing["siblings"][0]["size"] = listing["siblings"][0]["lfs"]["size"] = 5 << 30
            return listing
        hub.change_listing = grow
        environment = {"HF_HOME": folder.name, "HF_ENDPOINT": hub.endpoint, "HF_HUB_CACHE": "",
                       "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "no_proxy": "*"}
        with unittest.mock.patch.dict(os.environ, environment):
            server = Serving("--memory", "4GiB", model=None)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        return f"http://127.0.0.1:{server.port}"

    def files(self):
        """What the tests of files need: a server with an empty index, and one with a folder in its own."""
        folder = tempfile.TemporaryDirectory(prefix="slipstream-web-")
        self.addCleanup(folder.cleanup)
        base = pathlib.Path(folder.name).resolve()
        texts = {"src/heron.py": "class Heron:\n    def wade_slowly(self, river_depth):\n        return river_depth\n",
                 "docs/birds.md": "# Waders\n\nThe heron stands in the river and waits.\n",
                 ".env": "PASSWORD=heron\n"}
        for root in (base / "birds", base / "birds-fixed"):
            for path, text in texts.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
        fixed = ("--mcp-project", str(base / "birds-fixed"), "--index", str(base / "fixed.db"))
        return {"FOLDER": str(base / "birds"),
                "FILES_URL": self.serve("--mcp", "--mcp-allow-add", "--index", str(base / "index.db")),
                "FIXED_FILES_URL": self.serve("--mcp", *fixed),
                "ATTACH_URL": self.serve("--attachments", str(base / "attached"), "--context-overflow", "rescue")}

    def test_units(self):
        self.run_node(["npm", "test"], cwd=APP)

    def test_browser(self):
        if not shutil.which("chromium"):
            self.skipTest("chromium is not installed")
        npm_packages.install(HERE, INSTALLED)
        # Beside what they import: node looks for packages where a file is.
        for file in HERE.glob("*.mjs"):
            shutil.copy(file, INSTALLED)
        # One file at a time: the machine of a gate has few cores, and a browser takes them all.
        self.run_node(["node", "--test", "--test-concurrency=1", "--test-timeout=60000",
                       "--test-reporter=spec", *sorted(f.name for f in HERE.glob("*_test.mjs"))],
                      cwd=INSTALLED,
                      env={**os.environ, "SERVER_URL": self.serve(),
                           "KEYED_URL": self.serve("--api-key", KEY), "KEY": KEY,
                           "HUB_URL": self.serve_with_hub(), "FIRST_URL": self.serve_nothing(), **self.files(),
                           "FIXTURES": str(FIXTURES), "SHOTS": str(INSTALLED / "shots")})


if __name__ == "__main__":
    unittest.main()
