"""`slipstream serve --kv-memory`: codes of the KV cache in a file, and what /metrics says of them.

Environment: SLIPSTREAM_BIN, the built program.
"""

import os
import pathlib
import re
import tempfile
import unittest

from serving import FIXTURES, Serving

MEMORY_BYTES = 1 << 20
LIMITED = ("--kv", "turbo4,attend=512", "--ctx", "8192")
TEXT = (FIXTURES / "haystack.txt").read_text()


def kv_memory(server):
    _, metrics, _ = server.ask("GET", "/metrics")
    found = re.findall(r"^slipstream:kv_memory_(\w+) (\S+)$", metrics, flags=re.M)
    return {name.removesuffix("_total"): float(value) for name, value in found}


def answer(server, prompt, n_tokens=24):
    status, reply = server.post("/v1/completions", {"prompt": prompt, "max_tokens": n_tokens,
                                                    "temperature": 0, "ignore_eos": True})
    return status, reply["choices"][0]["text"] if status == 200 else reply


class KvMemory(unittest.TestCase):
    def serve(self, *arguments):
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        server = Serving(*LIMITED, *arguments, "--kv-memory-dir", self.directory)
        self.addCleanup(server.stop)
        return server

    def test_what_is_read_written_and_resident_is_counted(self):
        server = self.serve("--kv-memory", str(MEMORY_BYTES))
        self.assertEqual(set(kv_memory(server).values()), {0})
        self.assertEqual(answer(server, TEXT[:12000])[0], 200)
        now = kv_memory(server)
        for name in ("hits", "misses", "read_bytes", "written_bytes"):
            self.assertGreater(now[name], 0, name)
        self.assertEqual((now["failed_reads"], now["failed_writes"]), (0, 0))
        self.assertEqual(now["read_bytes"] % 4096, 0)
        # A piece takes at least a block of the disk.
        self.assertGreaterEqual(now["read_bytes"], now["misses"] * 4096)
        self.assertTrue(0 < now["resident_bytes"] <= MEMORY_BYTES, now)

    def test_with_memory_for_all_nothing_is_read(self):
        server = self.serve("--kv-memory", "1GiB")
        self.assertEqual(answer(server, TEXT[:12000])[0], 200)
        now = kv_memory(server)
        self.assertEqual((now["misses"], now["read_bytes"], now["written_bytes"]), (0, 0, 0))
        self.assertGreater(now["resident_bytes"], MEMORY_BYTES)

    def test_a_server_without_it_says_nothing_of_it(self):
        server = Serving(*LIMITED)
        self.addCleanup(server.stop)
        self.assertEqual(kv_memory(server), {})

    def test_a_file_that_cannot_be_read_ends_requests_and_is_counted(self):
        server = self.serve("--kv-memory", str(MEMORY_BYTES))
        whole = answer(server, TEXT[:12000])
        self.assertEqual(whole[0], 200, whole)
        fds = pathlib.Path(f"/proc/{server.process.pid}/fd")
        ours = [fd for fd in fds.iterdir() if os.readlink(fd).startswith(self.directory)]
        self.assertEqual(len(ours), 1)
        n_bytes = ours[0].stat().st_size
        os.truncate(ours[0], 0)
        # The same prompt is in the cache, but most of its codes were in the file.
        status, error = answer(server, TEXT[:12000], 200)
        self.assertEqual(status, 500, error)
        self.assertGreater(kv_memory(server)["failed_reads"], 0)
        self.assertEqual(server.ask("GET", "/health")[0], 200)
        # What is written from now on can be read.
        os.truncate(ours[0], n_bytes)
        self.assertEqual(answer(server, "Once upon a time " + TEXT[:6000])[0], 200)
        self.assertEqual(server.process.poll(), None)


if __name__ == "__main__":
    unittest.main()
