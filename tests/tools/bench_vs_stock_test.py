"""tools/bench-vs-stock: what it prints, what it writes, and that it never measures the wrong thing.

Environment: TURBO_PLUGIN, the built plugin. No speed is judged here: the machine may be busy.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
MODEL = CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf"
PLUGIN = os.environ["TURBO_PLUGIN"]

sys.path.insert(0, str(CHECKOUT / "tools"))
from bench_vs_stock import report  # noqa: E402


def bench_vs_stock(*arguments, **environment):
    command = [CHECKOUT / "tools" / "bench-vs-stock", "--model", MODEL, "--plugin", PLUGIN,
               "--tokens", 4, "--prompt", 32, "--batch-sequences", 2, "--repeats", 1, *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, timeout=120, env={**os.environ, **environment})


class BenchVsStock(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def bounds(self, *rows):
        path = self.folder / "bounds.json"
        path.write_text(json.dumps([dict(zip(("workload", "depth", "arm", "min_ratio"), row))
                                    for row in rows]))
        return path

    def test_measures_every_workload_at_every_depth_with_every_arm(self):
        path = self.folder / "speed.json"
        # f16 must stay stock, whatever the caller's shell has set.
        result = bench_vs_stock("--arms", "f16,turbo4", "--depths", "0,256", "--samples", 2,
                                "--json", path,
                                "--check", self.bounds(("decode", 256, "turbo4", 0.0001)),
                                GGML_BACKEND_PATH=PLUGIN, GGML_TURBO_KV="turbo8")
        self.assertEqual(result.returncode, 0, result.stderr)
        cells = [[word.strip() for word in line.strip("|").split("|")]
                 for line in result.stdout.splitlines() if line.startswith("| ")]
        self.assertEqual(cells[0], ["workload", "depth", "f16", "turbo4"])
        expected = [(workload, depth) for workload in ("decode", "prefill", "batch")
                    for depth in (0, 256)]
        self.assertEqual([(row[0], int(row[1])) for row in cells[1:]], expected)
        for row in cells[1:]:
            self.assertRegex(row[2], r"^[\d.e+]+ \([\d.e+]+\.\.[\d.e+]+\)$")
            self.assertRegex(row[3], r"^\d+\.\d\dx( LOSS)?( ~)?  [\d.e+]+ \(\S+\)$")
        self.assertIn("left: batch at 256, turbo4: batch ", result.stderr)

        found = json.loads(path.read_text())
        self.assertEqual([(cell["workload"], cell["depth"]) for cell in found["cells"]], expected)
        for cell in found["cells"]:
            for figures in cell["arms"].values():
                self.assertGreater(figures["ratio"], 0)
                self.assertEqual(figures["n"], 1 if cell["workload"] == "batch" else 2)
        self.assertEqual(len(found["runs"]), 8)
        self.assertEqual(found["arms"]["f16"]["backends"], "CPU")
        self.assertEqual(found["arms"]["turbo4"]["backends"], "TURBO")
        self.assertIn("4-bit keys, 4-bit values", found["arms"]["turbo4"]["said"][0])
        self.assertRegex(found["plugin"]["sha256"], "^[0-9a-f]{64}$")
        self.assertGreater(found["llama_cpp"]["build"], 0)
        self.assertTrue(found["machine"]["cpu"])

    def test_a_ratio_below_its_bound_is_named_and_ends_with_1(self):
        path = self.folder / "speed.json"
        result = bench_vs_stock(
            "--arms", "q8_0,turbo4,turbo4@mixed", "--depths", "256", "--workloads", "decode",
            "--prefill-threads", 2, "--env", "turbo4@mixed:GGML_TURBO_KV=turbo4,0-1=turbo8",
            "--json", path, "--check", self.bounds(("decode", "256", "turbo4", 1000),
                                                   ("decode", "256", "q8_0", 0.0001)))
        self.assertEqual(result.returncode, 1, result.stderr)
        failed = [line for line in result.stdout.splitlines() if line.startswith("FAILED")]
        self.assertEqual(len(failed), 1, failed)
        self.assertRegex(failed[0], r"^FAILED decode at 256, turbo4: \S+ of f16's speed, at least")
        found = json.loads(path.read_text())
        self.assertIn("8-bit keys", " ".join(found["arms"]["turbo4@mixed"]["said"]))
        for run in found["runs"]:  # filled on two threads; what counts is measured on one
            self.assertEqual(run["command"][run["command"].index("-t") + 1], "2,1")
            self.assertEqual(len(run["speeds"]["decode"]), 1)

    def test_a_depth_filled_once_serves_every_arm_and_every_later_run(self):
        path = self.folder / "speed.json"
        for _ in range(2):
            result = bench_vs_stock("--arms", "turbo4", "--depths", "0,256", "--workloads",
                                    "decode,prefill", "--samples", 2, "--states", self.folder,
                                    "--json", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            states = {state: state.stat().st_mtime_ns for state in self.folder.glob("*.state")}
            self.assertEqual([state.name.endswith("-256.state") for state in states], [True])
        for state, written in states.items():
            self.assertLess(written, path.stat().st_mtime_ns - 10**9, "it was made again")
        found = json.loads(path.read_text())
        self.assertEqual([(cell["workload"], cell["depth"]) for cell in found["cells"]],
                         [("decode", 0), ("decode", 256), ("prefill", 0), ("prefill", 256)])
        for cell in found["cells"]:
            self.assertEqual({arm: figures["n"] for arm, figures in cell["arms"].items()},
                             {"f16": 2, "turbo4": 2})

    def test_what_cannot_be_measured_is_an_error_before_any_figure(self):
        no_plugin = self.folder / "no-plugin.so"
        no_plugin.write_text("not a library")
        for arguments, expected in (
                (["--plugin", self.folder / "none.so"], "none.so: build it"),
                (["--plugin", no_plugin], "arm turbo4 ran on CPU"),
                (["--arms", "turbo99"], "there is no scheme 'turbo99'"),
                (["--arms", "q9_9"], "no arm q9_9"),
                (["--workloads", "sleep"], "--workloads"),
                (["--env", "turbo3:KEY=VALUE"], "--env turbo3:KEY=VALUE"),
                (["--model", self.folder / "none.gguf"], "none.gguf"),
                (["--repeats", 0], "counts begin at 1"),
                (["--states", self.folder / "none"], "--states: there is no folder"),
                (["--states", self.folder, "--arms", "q8_0"], "--states: llama.cpp restores"),
                (["--json", self.folder / "none" / "speed.json"], "there is no folder"),
                (["--check", self.bounds(("decode", 512, "turbo4", 1))], "is not measured by")):
            result = bench_vs_stock("--arms", "turbo4", "--depths", "0", *arguments)
            self.assertEqual(result.returncode, 2, (arguments, result.stdout))
            self.assertIn(expected, result.stderr)
            self.assertEqual(result.stdout, "")


class Report(unittest.TestCase):
    def cells(self, turbo):
        runs = [{"repeat": i, "depth": 2048, "arm": arm, "speeds": {"decode": [speed]}}
                for arm, speeds in (("f16", (100, 110, 90)), ("turbo4", turbo))
                for i, speed in enumerate(speeds)]
        return report.summarize(runs)

    def test_a_loss_stands_out_and_so_does_a_difference_that_is_none(self):
        for speeds, expected in (((50, 40, 60), "0.50x LOSS  50 (40..60)"),
                                 ((95, 80, 97), "0.95x LOSS ~  95 (80..97)"),
                                 ((200, 210, 120), "2.00x  200 (120..210)")):
            table = report.table(self.cells(speeds), ["f16", "turbo4"])
            self.assertEqual(table.splitlines()[2].split(" | ")[1:],
                             ["2k   ", "100 (90..110)", f"{expected} |"])

    def test_a_bound_is_held_to_the_median(self):
        bound = {"workload": "decode", "depth": "2k", "arm": "turbo4", "min_ratio": 2}
        self.assertEqual(report.faults(self.cells((200, 200, 1)), [bound]), [])
        self.assertEqual(
            report.faults(self.cells((199, 300, 1)), [bound]),
            ["FAILED decode at 2k, turbo4: 1.990 of f16's speed, at least 2 is wanted"])


if __name__ == "__main__":
    unittest.main()
