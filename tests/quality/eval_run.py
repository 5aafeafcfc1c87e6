"""slipstream eval, as the quality tests run it.

Environment, set by CMake: SLIPSTREAM_BIN, TURBO_PLUGIN, SLIPSTREAM_BUILD.
"""

import json
import os
import pathlib
import subprocess
import tempfile

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
NEEDLE_MODEL = CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf"
MAKE_MODEL = pathlib.Path(os.environ["SLIPSTREAM_BUILD"]) / "bin" / "make_model"
BROKEN_PLUGINS = pathlib.Path(os.environ["SLIPSTREAM_BUILD"]) / "tests" / "quality"


def run(*arguments, model=NEEDLE_MODEL, timeout_s=1100):
    """(exit status, quality.json or None, standard output, standard error)"""
    with tempfile.TemporaryDirectory() as folder:
        command = [os.environ["SLIPSTREAM_BIN"], "eval", str(model), "--out", folder, "-t", "1",
                   *[str(word) for word in arguments]]
        result = subprocess.run(command, capture_output=True, text=True, check=False,
                                timeout=timeout_s)
        path = pathlib.Path(folder) / "quality.json"
        report = json.loads(path.read_text()) if path.exists() else None
        files = sorted(p.name for p in pathlib.Path(folder).iterdir())
    expected = [] if report is None else [*pictures(report), "quality.csv", "quality.json", "quality.md"]
    assert files == expected, f"left behind in --out: {files}"
    return result.returncode, report, result.stdout, result.stderr


def pictures(report):
    """Those that eval draws of what it measured."""
    compared = any(one["divergence"] for one in report["schemes"] if one["kv"] != "f16")
    asked = any(one["needles"] for one in report["schemes"])
    return ["divergence.svg"] * compared + ["needles.svg"] * asked


def scheme(report, kv):
    return next(one for one in report["schemes"] if one["kv"] == kv)


def figures(report, kv, depth):
    return next(one for one in scheme(report, kv)["divergence"] if one["depth"] == depth)
