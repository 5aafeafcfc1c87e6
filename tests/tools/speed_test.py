"""Speed does not fall behind: a short run of tools/bench-vs-stock against bounds.

The Qwen3-0.6B shape with 4 of its 28 layers and a depth that fills in seconds. A bound
(speed_bounds.json) is 0.7 of the median ratio to stock f16 of ten runs on an idle machine of two
cores: the lowest of the ten were 0.80 of it (docs/performance.md, "What the gate watches").
Environment: MAKE_MODEL, TURBO_PLUGIN.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
VOCABULARY = CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf"
BOUNDS = pathlib.Path(__file__).with_name("speed_bounds.json")
SKIPPED = 77


def main() -> int:
    if "amx_int8" not in pathlib.Path("/proc/cpuinfo").read_text():
        print("the bounds were measured on a CPU with AMX, and this one has none: not run")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.gguf"
        subprocess.run([os.environ["MAKE_MODEL"], "qwen3-0.6b", model, "--vocabulary", VOCABULARY,
                        "--layers", "4"], check=True)
        return subprocess.run(
            [CHECKOUT / "tools" / "bench-vs-stock", "--model", model, "--plugin",
             os.environ["TURBO_PLUGIN"], "--arms", "turbo8v4,turbo4", "--depths", "0,2k",
             "--workloads", "decode,prefill", "--tokens", "32", "--repeats", "3",
             "--states", folder, "--check", BOUNDS], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
