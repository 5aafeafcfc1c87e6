"""`slipstream serve --stream-experts`: a mixture of experts whose experts stay in its file.

Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_FIXTURES, the models made into the build
tree.
"""

import contextlib
import ctypes
import mmap
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from serving import NEEDLE_MODEL, PROGRAM, Serving

MODEL = pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"]) / "qwen3moe.gguf"
STREAMED = ("--stream-experts", "--ctx", "2048", "--expert-cache")


def ask(prompt, n_tokens=24):
    return {"prompt": prompt, "max_tokens": n_tokens, "temperature": 0, "ignore_eos": True}


def text(reply):
    status, answer = reply
    assert status == 200, answer
    return answer["choices"][0]["text"]


def total(metrics, name):
    """Over all layers."""
    return sum(float(line.rsplit(" ", 1)[1]) for line in metrics.splitlines()
               if line.startswith(name + "{"))


def share_in_page_cache(path):
    """Of a file: what has been read of it and not been dropped."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    n_bytes = path.stat().st_size
    n_pages = -(-n_bytes // mmap.PAGESIZE)
    with path.open("rb") as file:
        address = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(n_bytes), mmap.PROT_READ,
                                            mmap.MAP_SHARED, file.fileno(), 0))
    pages = (ctypes.c_ubyte * n_pages)()
    assert libc.mincore(address, ctypes.c_size_t(n_bytes), pages) == 0
    libc.munmap(address, ctypes.c_size_t(n_bytes))
    return sum(page & 1 for page in pages) / n_pages


class Experts(unittest.TestCase):
    def test_the_size_of_the_cache_changes_no_answer_and_is_counted(self):
        answers = {}
        reads = {}
        for cache in ("1MiB", "256MiB"):
            server = Serving(*STREAMED, cache, "--kv", "turbo4", model=str(MODEL))
            try:
                answers[cache] = [text(server.post("/v1/completions", ask(prompt)))
                                  for prompt in ("Once upon a time", "The program prints")]
                metrics = server.ask("GET", "/metrics")[1]
                reads[cache] = total(metrics, "slipstream:expert_read_bytes_total")
                self.assertGreater(total(metrics, "slipstream:expert_hits_total"), 0)
                self.assertGreater(total(metrics, "slipstream:expert_misses_total"), 0)
                self.assertIn('layer="2"', metrics)
            finally:
                self.assertEqual(server.stop(), 0)
        self.assertEqual(answers["1MiB"], answers["256MiB"])
        self.assertGreater(reads["1MiB"], reads["256MiB"])

    def test_eight_users_are_answered_at_the_same_time(self):
        server = Serving(*STREAMED, "2MiB", "--parallel", "8", model=str(MODEL))
        try:
            answers = [None] * 8

            def work(i):
                answers[i] = server.post("/v1/completions", ask(f"Chapter {i}. It was"))

            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for status, answer in answers:
                self.assertEqual(status, 200, answer)
                self.assertEqual(answer["usage"]["completion_tokens"], 24)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_a_file_cut_short_fails_the_request_and_nothing_else(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            path = pathlib.Path(folder) / "model.gguf"
            shutil.copy(MODEL, path)
            server = Serving(*STREAMED, "1MiB", "--kv", "f16", model=str(path))
            try:
                # The second time, as after the fault, the prompt comes from the prefix cache.
                for _ in range(2):
                    before = text(server.post("/v1/completions", ask("Once upon a time")))
                # The last tensor is the last layer's experts: the rest of the model stays whole.
                end = path.read_bytes()[-1_000_000:]
                os.truncate(path, path.stat().st_size - len(end))
                status, answer = server.post("/v1/completions", ask("Something else entirely", 200))
                self.assertEqual(status, 500, answer)
                self.assertIn("error", answer)
                self.assertEqual(server.ask("GET", "/health")[0], 200)
                with path.open("ab") as file:
                    file.write(end)
                after = text(server.post("/v1/completions", ask("Once upon a time")))
                self.assertEqual(before, after)
            finally:
                self.assertEqual(server.stop(), 0)

    def test_nothing_of_the_experts_is_read_at_load(self):
        read = {}
        for options in (("--stream-experts", "--expert-cache", "1MiB"), ()):
            with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
                path = pathlib.Path(folder) / "model.gguf"
                shutil.copy(MODEL, path)
                with path.open("rb+") as file:
                    os.fsync(file)
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                server = Serving("--ctx", "2048", *options, model=str(path))
                read[options] = share_in_page_cache(path)
                self.assertEqual(server.stop(), 0)
        streamed, mapped = read.values()
        self.assertGreater(mapped, 0.9)  # or the test says nothing
        self.assertLess(streamed, 0.5)

    def test_it_stops_while_it_reads(self):
        server = Serving(*STREAMED, "1MiB", "--drain-timeout", "1", model=str(MODEL))

        def work():
            with contextlib.suppress(ConnectionError):  # the server goes before it has answered
                server.post("/v1/completions", ask("Once upon a time", 2000))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        time.sleep(0.3)
        started = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - started, 20)
        thread.join(timeout=20)


class Refusals(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run([PROGRAM, "run", *arguments, "-p", "Hello", "-n", "4"],
                              capture_output=True, text=True, timeout=60, check=False)

    def test_a_model_without_experts_is_refused(self):
        result = self.run_it(NEEDLE_MODEL, "--stream-experts")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("no experts that could be streamed", result.stderr)

    def test_a_model_that_fits_is_not_streamed(self):
        result = self.run_it(str(MODEL), "--stream-experts")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("experts stay in the file", result.stderr)

    def test_a_file_that_is_too_short_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "short.gguf"
            path.write_bytes(MODEL.read_bytes()[:-100_000])
            result = self.run_it(str(path), "--stream-experts", "--expert-cache", "1MiB")
            self.assertEqual(result.returncode, 1, result.stderr)

    def test_a_cache_without_streaming_is_a_usage_error(self):
        result = self.run_it(str(MODEL), "--expert-cache", "1GiB")
        self.assertEqual(result.returncode, 2, result.stderr)


if __name__ == "__main__":
    unittest.main()
