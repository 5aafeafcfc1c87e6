"""slipstream bench: the matrix, its journal and reports, and the load on a server, ours and stock.

Environment: SLIPSTREAM_BIN, the built program, and what tests/contract/stock.py wants.
"""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "contract"), str(ROOT / "tests" / "server")]
import stock  # noqa: E402
from serving import Serving  # noqa: E402

PROGRAM = os.environ["SLIPSTREAM_BIN"]
MODEL = ROOT / "tests" / "fixtures" / "needle-4m.gguf"
SMALL = ["--kv", "q8_0,turbo4", "--depth", "0,300", "--concurrency", "1,3", "--repeats", "1", "-n", "4",
         "--prompt", "48", "-t", "1"]
STOCK = ["f16", "f16 --no-repack", "f16 -fa off", "f16 -fa off --no-repack"]  # always there
CELLS = (len(STOCK) + 2) * 2 * 2


def bench(*arguments, **options):
    return subprocess.run([PROGRAM, "bench", *map(str, arguments)], capture_output=True, text=True,
                          check=False, **options)


def journal_of(out):
    lines = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
    return lines[0], lines[1:]


class OneRun(unittest.TestCase):
    """What one run measures and writes."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name) / "out"
        cls.result = bench(MODEL, *SMALL, "--out", cls.out)

    def journal(self):
        return journal_of(self.out)

    def test_every_cell_is_measured_and_reported(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        header, turns = self.journal()
        self.assertEqual(header["work"]["model"], "needle-4m.gguf")
        self.assertEqual(len(turns), CELLS)
        for turn in turns:
            figures = turn["figures"]
            self.assertGreater(figures["decode_tokens_per_s"], 0)
            self.assertGreater(figures["prefill_tokens_per_s"], 0)
            self.assertEqual(len(figures["step_ms"]), 4)
        rows = list(csv.DictReader((self.out / "speed.csv").read_text().splitlines()))
        self.assertEqual(len(rows), CELLS)
        # Ratios are to the fastest setting of stock's f16; the default is beside it.
        for turbo in (row for row in rows if row["kv"] == "turbo4"):
            stock_rows = [row for row in rows if row["kv"] in STOCK
                          and (row["depth"], row["sequences"]) == (turbo["depth"], turbo["sequences"])]
            self.assertEqual(len(stock_rows), len(STOCK))
            for figure in ("decode", "prefill"):
                speed = {row["kv"]: float(row[f"{figure}_tokens_per_s"]) for row in stock_rows}
                ours = float(turbo[f"{figure}_tokens_per_s"])
                self.assertAlmostEqual(float(turbo[f"{figure}_ratio"]), ours / max(speed.values()), 4)
                self.assertAlmostEqual(float(turbo[f"{figure}_to_default"]), ours / speed["f16"], 4)
        self.assertIn("<svg", (self.out / "report.html").read_text())
        self.assertIn("turbo4", (self.out / "report.md").read_text())
        self.assertFalse((self.out / "states").exists(), "kept depths are removed")

    def test_a_depth_is_computed_once_and_shared(self):
        filled = [(turn["cell"]["kv"], turn["cell"]["sequences"]) for turn in self.journal()[1]
                  if turn["figures"]["fill_seconds"] > 0]
        self.assertEqual(sorted(filled), [("f16", 1), ("f16 -fa off", 1), ("q8_0", 1), ("turbo4", 1)])

    def test_a_compressed_cache_is_smaller(self):
        bytes_of = {turn["cell"]["kv"]: turn["figures"]["kv_bytes"] for turn in self.journal()[1]}
        # 4.13 bits, and 4 of 24 chunks in 8.13 bits as well: 5.48 of 16.
        self.assertAlmostEqual(bytes_of["f16"] / bytes_of["turbo4"], 16 / 5.48, delta=0.02)

    def test_other_work_in_the_same_directory_is_refused(self):
        result = bench(MODEL, *SMALL[:-1], "2", "--out", self.out)  # threads
        self.assertEqual(result.returncode, 1)
        self.assertIn("--out", result.stderr)


class Matrix(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out"

    def journal(self):
        return journal_of(self.out)

    def test_a_deep_cache_is_filled_by_repeating(self):
        deep = ["--kv", "turbo4", "--depth", "300,700", "--computed-depth", "300", "--concurrency", "1,3",
                "--shared-prefix", "--repeats", "1", "-n", "4", "--prompt", "12", "-t", "1"]
        result = bench(MODEL, *deep, "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        filled = [(turn["cell"]["kv"], turn["cell"]["depth"], turn["cell"]["sequences"])
                  for turn in self.journal()[1] if turn["figures"]["fill_seconds"] > 0]
        # Caches of their own are computed, one after the other depth; the others repeat the first 300 tokens.
        self.assertEqual(sorted(filled), [(kv, *cell) for kv in ("f16", "f16 -fa off", "turbo4")
                                          for cell in ((300, 1), (700, 3))])
        bytes_of = {(turn["cell"]["depth"], turn["cell"]["sequences"], turn["cell"].get("shared", False)):
                    turn["figures"]["kv_bytes"] for turn in self.journal()[1] if turn["cell"]["kv"] == "f16"}
        self.assertLess(bytes_of[700, 3, True], 2 * bytes_of[700, 1, False])
        self.assertGreater(bytes_of[700, 3, False], 2 * bytes_of[700, 1, False])
        self.assertIn("Beyond a depth of 300", (self.out / "report.md").read_text())
        self.assertIn("3 sharing", result.stdout)

    def test_codes_of_a_scheme_with_a_limit_lie_in_a_file(self):
        limited = ["--kv", "turbo4,attend=512", "--depth", "6k", "--computed-depth", "512", "--concurrency", "1",
                   "--repeats", "1", "-n", "4", "--prompt", "12", "-t", "1"]
        for memory in [], ["--kv-memory", "64KiB"]:
            result = bench(MODEL, *limited, *memory, "--out", f"{self.out}{len(memory)}")
            self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        kept, cold = ({turn["cell"]["kv"]: turn["figures"]["kv_bytes"]
                       for turn in journal_of(pathlib.Path(f"{self.out}{n}"))[1]} for n in (0, 2))
        self.assertEqual(kept["f16"], cold["f16"])
        self.assertLess(cold["turbo4,attend=512"], kept["turbo4,attend=512"])

    def test_drafts_are_measured_on_answers_that_are_edits_and_that_are_new(self):
        with tempfile.TemporaryDirectory() as folder:
            result = bench(MODEL, "--speculate", "--kv", "turbo4", "--concurrency", "1,2", "--prompt", "96",
                           "-n", "96", "--repeats", "2", "-t", "1", "--out", folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("turbo4, prompts of 96 tokens, answers of 96, 2 repeats in turns", result.stdout)
            lines = [line.split() for line in result.stdout.splitlines()]
            rows = {(line[0], line[1]): line for line in lines if line and line[0] in ("edit", "new")}
            self.assertEqual(set(rows), {("edit", "1"), ("edit", "2"), ("new", "1"), ("new", "2")})
            for n in ("1", "2"):
                tokens_per_step = {work: float(rows[work, n][8]) for work in ("edit", "new")}
                self.assertGreater(tokens_per_step["edit"], 1.3)
                self.assertLess(tokens_per_step["new"], 1.05)
            self.assertIn("| edit", (pathlib.Path(folder) / "speculation.md").read_text())

    def test_a_draft_model_is_measured_too(self):
        with tempfile.TemporaryDirectory() as folder:
            result = bench(MODEL, "--speculate", "--draft-model", MODEL, "--draft-kv", "q8_0", "--draft-acceptance",
                           "0.5", "--kv", "f16", "--concurrency", "2", "--prompt", "64", "-n", "64", "--repeats", "1",
                           "-t", "1", "--out", folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("with drafts of needle-4m.gguf in q8_0, right in 50 %", result.stdout)
            self.assertRegex(result.stdout, r"(?m)^new +2 +[0-9.]+ +[0-9.]+ +[0-9.]+x")

    def test_mtp_is_measured_too(self):
        with tempfile.TemporaryDirectory() as folder:
            result = bench(stock.model("glm4moe-mtp"), "--speculate", "--mtp", "on", "--kv", "turbo4", "--concurrency", "1", "--prompt", "64",
                           "-n", "64", "--repeats", "1", "-t", "1", "--out", folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("with MTP, right in 70 %", result.stdout)
            self.assertRegex(result.stdout, r"(?m)^new +1 +[0-9.]+ +[0-9.]+ +[0-9.]+x")

    def test_what_does_not_fit_into_memory_is_not_begun(self):
        result = bench(MODEL, "--kv", "f16", "--depth", "8000k", "--concurrency", "8,128", "--repeats", "1",
                       "-n", "2", "--prompt", "8", "-t", "1", "--out", self.out)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"it needs \d+")
        self.assertIn("no context has ", result.stdout)

    def test_what_cannot_be_repeated_says_what_to_do(self):
        # A cache for the layers with a window, and one for the others.
        result = bench(stock.model("gemma3"), "--kv", "f16", "--depth", "300", "--computed-depth", "100",
                       "--concurrency", "1", "--repeats", "1", "-n", "2", "--prompt", "8", "-t", "1",
                       "--out", self.out)
        self.assertEqual(result.returncode, 1)
        self.assertIn("--computed-depth 300", result.stdout)

    def test_goes_on_after_a_kill(self):
        process = subprocess.Popen([PROGRAM, "bench", str(MODEL), *SMALL, "--out", str(self.out)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        journal = self.out / "runs.jsonl"
        n_lines = 1 + CELLS // 2 + 2  # the second depth was begun
        while not journal.exists() or len(journal.read_text().splitlines()) < n_lines:
            self.assertIsNone(process.poll(), "it was over before it could be killed")
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        n_before = len(self.journal()[1])
        self.assertLess(n_before, CELLS)
        before = journal.read_text()
        result = bench(MODEL, *SMALL, "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("continuing from there", result.stderr)
        self.assertTrue(journal.read_text().startswith(before))
        # Nothing is measured again but what had too little of the machine.
        n_starved = sum(turn["figures"]["cpu_share"] < 0.5 for turn in self.journal()[1][:n_before])
        self.assertEqual(len(self.journal()[1]), CELLS + n_starved)
        filled = [turn["cell"]["kv"] for turn in self.journal()[1] if turn["figures"]["fill_seconds"] > 0]
        self.assertEqual(filled.count("f16"), 1, "a depth that was kept is not computed again")

    def test_a_cell_that_fails_is_told_and_the_others_are_measured(self):
        # Heads of 80: no cache of stock's q8_0, in blocks of 32.
        result = bench(stock.model("stablelm"), "--kv", "q8_0,turbo4", "--depth", "0", "--concurrency", "1",
                       "--repeats", "1", "-n", "2", "--prompt", "8", "-t", "1", "--out", self.out)
        self.assertEqual(result.returncode, 1)
        errors = [turn for turn in self.journal()[1] if "error" in turn]
        self.assertEqual([turn["cell"]["kv"] for turn in errors], ["q8_0"])
        self.assertEqual(len(self.journal()[1]), len(STOCK) + 2)
        self.assertIn("failed", result.stdout)
        self.assertIn("no context of", result.stdout)

    def test_a_wrong_command_line_says_what_to_write(self):
        for arguments, expected in ((["--kv", "turbo9"], "turbo9"), (["--depth", "8x"], "8k"),
                                    (["--kv", "turbo4", "--kv-memory", "1GiB"], "attend=4096")):
            result = bench(MODEL, *arguments, "--out", self.out)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(expected, result.stderr)
        self.assertEqual(bench().returncode, 2)


class ServerLoad(unittest.TestCase):
    def measure(self, url):
        with tempfile.TemporaryDirectory() as out:
            result = bench("--server", url, "--concurrency", "1,4", "--requests", "8", "-n", "8",
                           "--prompt", "64", "--goodput", "ttft=60000,tpot=60000", "--out", out)
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = (pathlib.Path(out) / "requests.jsonl").read_text().splitlines()
            traces = [json.loads(line) for line in lines]
        self.assertEqual(len(traces), 16)
        for trace in traces:
            self.assertEqual(trace["error"], "")
            self.assertEqual(trace["tokens"], 8)
            self.assertGreater(trace["prompt_tokens"], 16)
            self.assertEqual(trace["events_s"], sorted(trace["events_s"]))
        self.assertRegex(result.stdout, r"\n4 +8 +0 ")

    def test_our_server(self):
        server = Serving()
        self.addCleanup(server.stop)
        self.measure(f"127.0.0.1:{server.port}")

    def test_stock_server(self):
        with stock.server(MODEL, "-np", "4") as server:
            self.measure(server.url + "/")

    def test_a_server_that_is_not_there(self):
        result = bench("--server", "http://127.0.0.1:9", "--concurrency", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("does not answer", result.stderr)


if __name__ == "__main__":
    unittest.main()
