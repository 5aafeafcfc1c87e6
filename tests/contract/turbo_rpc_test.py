"""One model on two machines: packaged ggml-rpc-server with our device on one, stock llama.cpp on the
other. The machines are network namespaces with a cable between them.

Needs root and network namespaces; skipped where there are none.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import stock

HERE, THERE = "slipstream-here", "slipstream-there"
ADDRESS = "10.77.0.2"
PORT = "50052"
TEXT = ["-f", str(stock.HAYSTACK), "-c", "512", "--chunks", "2", "-t", "1", "-fa", "on"]


def ip(*words, check=True):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check)


@contextlib.contextmanager
def two_machines():
    for name in (HERE, THERE):
        ip("netns", "del", name, check=False)
        ip("netns", "add", name)
    try:
        ip("link", "add", "slip0", "netns", HERE, "type", "veth", "peer", "name", "slip0", "netns",
           THERE)
        for name, address in ((HERE, "10.77.0.1/24"), (THERE, f"{ADDRESS}/24")):
            ip("-n", name, "addr", "add", address, "dev", "slip0")
            ip("-n", name, "link", "set", "slip0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        for name in (HERE, THERE):
            ip("netns", "del", name, check=False)


@contextlib.contextmanager
def inside(machine):
    """What this thread opens and starts belongs to that machine."""
    with open("/proc/self/ns/net") as own, open(f"/run/netns/{machine}") as other:
        os.setns(other.fileno(), os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(own.fileno(), os.CLONE_NEWNET)


@contextlib.contextmanager
def rpc_server(scheme, log):
    with open(log, "wb") as out:
        server = subprocess.Popen(
            ["ip", "netns", "exec", THERE, str(stock.libexec("bin/ggml-rpc-server")), "-d", "TURBO0",
             "-H", ADDRESS, "-p", PORT, "-t", "1"],
            stdout=out, stderr=subprocess.STDOUT, env=stock.turbo(scheme))
    try:
        deadline = time.monotonic() + 120
        while f"{ADDRESS}:{PORT}" not in pathlib.Path(log).read_text(errors="replace"):
            assert server.poll() is None and time.monotonic() < deadline, \
                pathlib.Path(log).read_text(errors="replace")
            time.sleep(0.05)
        yield server
    finally:
        server.terminate()
        server.wait(timeout=20)


def peak_mib(process):
    """The largest resident memory so far of the process that `ip netns exec` became."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


@unittest.skipUnless(os.geteuid() == 0 and ip("netns", "list", check=False).returncode == 0,
                     "needs root and network namespaces")
class Rpc(unittest.TestCase):
    def over_network(self, *command):
        return stock.run("ip", "netns", "exec", HERE, *command, "--rpc", f"{ADDRESS}:{PORT}")

    def test_logits_equal_the_local_devices_and_the_remote_cache_is_compressed(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(two_machines())
        local = folder / "local"
        stock.run("llama-perplexity", "-m", stock.NEEDLE_MODEL, *TEXT, "--kl-divergence-base", local,
                  "--no-repack", scheme="turbo4")
        peak = {}
        for scheme in ("turbo4", "f16"):
            with rpc_server(scheme, folder / f"log-{scheme}") as server:
                remote = folder / f"remote-{scheme}"
                self.over_network("llama-perplexity", "-m", stock.NEEDLE_MODEL, *TEXT,
                                  "--kl-divergence-base", remote)
                if scheme == "turbo4":
                    self.assertEqual(remote.read_bytes(), local.read_bytes())
                stdout, _ = self.over_network("llama-bench", "-m", stock.NEEDLE_MODEL, "-p", "0",
                                              "-n", "1", "-d", "6144", "-r", "1", "-fa", "on", "-o",
                                              "json")
                self.assertIn("RPC", stdout)
                peak[scheme] = peak_mib(server)
                log = (folder / f"log-{scheme}").read_text(errors="replace")
            if scheme == "turbo4":
                self.assertIn("turbo: KV cache of layer 0-3: 4-bit keys, 4-bit values", log)
        # 6,144 tokens of 4 layers, 2 x 256 numbers: 24 MiB in f16, 6.2 MiB in turbo4. Peaks also hold
        # what was needed for a moment, so at least half of the difference has to show.
        self.assertGreater(peak["f16"] - peak["turbo4"], (24 - 6.2) / 2)

    def test_llama_server_answers_as_with_the_local_device(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(two_machines())
        options = [stock.NEEDLE_MODEL, "-c", "2048", "-np", "1", "-t", "1", "-fa", "on"]
        with stock.server(*options, "--no-repack", scheme="turbo4") as server:
            local = self.answer(server)
        with rpc_server("turbo4", folder / "log"), inside(HERE):
            with stock.server(*options, "--rpc", f"{ADDRESS}:{PORT}",
                              log_path=folder / "server") as server:
                remote = self.answer(server)
        self.assertIn("It is amber lantern.", remote["message"]["content"])
        # With the probability of every token: f16 would find the same words.
        self.assertEqual(remote, local)
        self.assertIn("4-bit keys, 4-bit values", (folder / "log").read_text(errors="replace"))

    @staticmethod
    def answer(server):
        return server.chat(stock.question("amber lantern"), logprobs=True)["choices"][0]


if __name__ == "__main__":
    unittest.main()
