"""OpenAI's own client, the AI SDK and Cohere's client against `slipstream serve`, and against llama-server.

That the same tests pass with stock llama-server shows that they test the API. What it does not do,
or does in its own way, is skipped there by name (clients/*_test.mjs).
Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_BUILD, where to install the clients;
SLIPSTREAM_FIXTURES, made models.
"""

import os
import pathlib
import shutil
import subprocess
import unittest

import npm_packages
from serving import FIXTURES, LlamaServing, Serving

CLIENTS = pathlib.Path(__file__).resolve().parent / "clients"
INSTALLED = pathlib.Path(os.environ["SLIPSTREAM_BUILD"]) / "clients"
KEY = "a-key-of-the-test"
N_CONTEXT = "8192"
RANKER = pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"]) / "qwen3-rank.gguf"


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        npm_packages.install(CLIENTS, INSTALLED)
        # Beside what they import: node looks for packages where a file is.
        for file in CLIENTS.glob("*.mjs"):
            shutil.copy(file, INSTALLED)

    def serve(self, kind, *arguments, **settings):
        server = kind(*arguments, **settings)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        return f"http://127.0.0.1:{server.port}"

    def run_clients(self, kind, server, keyed, embeddings, reranks):
        tests = sorted(file.name for file in CLIENTS.glob("*_test.mjs"))
        # One file at a time: what is counted of the requests in progress is then a test's own.
        node = subprocess.run(
            ["node", "--test", "--test-concurrency=1", "--test-timeout=120000",
             "--test-reporter=spec", *tests],
            cwd=INSTALLED, check=False, capture_output=True, text=True, timeout=280,
            env={**os.environ, "SERVER_KIND": kind, "SERVER_URL": server, "KEYED_URL": keyed,
                 "EMBEDDINGS_URL": embeddings, "RERANK_URL": reranks, "KEY": KEY,
                 "FIXTURES": str(FIXTURES), "N_CONTEXT": N_CONTEXT})
        print(f"\n{kind}\n{node.stdout}{node.stderr}", flush=True)
        self.assertEqual(node.returncode, 0)

    def test_slipstream(self):
        server = self.serve(Serving, "--name", "needle", "--ctx", N_CONTEXT, "--kv", "f16",
                            "--embeddings", "512")
        keyed = self.serve(Serving, "--name", "needle", "--ctx", N_CONTEXT, "--kv", "f16",
                           "--api-key", KEY, "--queue", "1", "--parallel", "1")
        self.run_clients("slipstream", server, keyed, embeddings=server,
                         reranks=self.serve(Serving, "--name", "needle", model=RANKER))

    def test_llama_server(self):
        if not shutil.which("llama-server"):
            self.skipTest("llama-server is not installed")
        chats = ("--jinja", "--ctx-size", N_CONTEXT, "--parallel", "2", "--kv-unified")
        self.run_clients("llama-server", self.serve(LlamaServing, *chats, "--metrics"),
                         keyed=self.serve(LlamaServing, *chats, "--api-key", KEY),
                         embeddings=self.serve(LlamaServing, "--embeddings", "--pooling", "mean",
                                               "--ctx-size", "512"),
                         reranks=self.serve(LlamaServing, "--reranking", model=RANKER))


if __name__ == "__main__":
    unittest.main()
