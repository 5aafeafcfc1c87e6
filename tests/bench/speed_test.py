"""Speed does not fall behind: a short run of `slipstream bench` against bounds.

The Qwen3-0.6B shape with 4 of its 28 layers, one thread, and a depth that fills in seconds. A bound
(speed_bounds.json) is 0.7 of the median ratio to stock f16, with its default flash attention, of ten
runs on an idle machine of two cores: the lowest of the ten were 0.80 of it (docs/benchmarks.md,
"What is watched every night"). Environment: MAKE_MODEL, SLIPSTREAM_BIN.
"""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
VOCABULARY = CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf"
BOUNDS = pathlib.Path(__file__).with_name("speed_bounds.json")
SKIPPED = 77


def measure(folder: pathlib.Path) -> dict:
    """The rows of speed.csv by scheme and depth."""
    model = folder / "model.gguf"
    subprocess.run([os.environ["MAKE_MODEL"], "qwen3-0.6b", model, "--vocabulary", VOCABULARY,
                    "--layers", "4"], check=True)
    subprocess.run([os.environ["SLIPSTREAM_BIN"], "bench", model, "--kv", "turbo8v4,turbo4",
                    "--depth", "0,2k", "--concurrency", "1", "-n", "32", "-t", "1",
                    "--out", folder / "out"], check=True)
    rows = csv.DictReader((folder / "out" / "speed.csv").read_text().splitlines())
    return {(row["kv"], int(row["depth"])): row for row in rows}


def main() -> int:
    if "amx_int8" not in pathlib.Path("/proc/cpuinfo").read_text():
        print("the bounds were measured on a CPU with AMX, and this one has none: not run")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(pathlib.Path(folder))
    n_faults = 0
    for bound in json.loads(BOUNDS.read_text()):
        row = rows[bound["kv"], bound["depth"]]
        ratio = float(row[f"{bound['workload']}_to_default"])
        is_fault = not ratio >= bound["min_ratio"]
        n_faults += is_fault
        print(f"{'FAILED' if is_fault else 'ok'}: {bound['workload']} at {bound['depth']}, "
              f"{bound['kv']}: {ratio:.3f} of f16's speed, at least {bound['min_ratio']} is wanted")
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
