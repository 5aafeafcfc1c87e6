"""What a reader needs to judge the figures: machine, versions, and what every arm really was."""

import hashlib
import os
import pathlib

from bench_vs_stock.arms import Arm


def plugin(path: pathlib.Path, arms: list[Arm]) -> dict | None:
    if not path.is_file() or not any(arm.has_plugin for arm in arms):
        return None
    return {"path": str(path.resolve()), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def versions(probes: dict[str, dict]) -> dict:
    row = next(iter(probes.values()))["row"] if probes else {}
    return {"machine": {"cpu": row.get("cpu_info"), "n_cpus": os.cpu_count(),
                        "load_average": os.getloadavg()},
            "llama_cpp": {"build": row.get("build_number"), "commit": row.get("build_commit")},
            "model": {"type": row.get("model_type"), "bytes": row.get("model_size")}}


def arms(all_arms: list[Arm], probes: dict[str, dict]) -> dict:
    return {arm.name: {"flags": arm.flags, "variables": arm.variables,
                       "backends": probes[arm.name]["row"]["backends"],
                       "said": probes[arm.name]["said"]}
            for arm in all_arms if arm.name in probes}
