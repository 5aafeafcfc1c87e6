"""In which order the processes run, and how long the rest will take."""

import datetime
import os
import pathlib
import statistics
import sys

from bench_vs_stock import programs, report, server
from bench_vs_stock.arms import Arm

DEEP = 8192  # from this depth on few tokens take long enough to be timed


def plan(arms: list[Arm], depths: list[int], workloads: list[str], n_repeats: int,
         n_tokens: int | None) -> list[dict]:
    """Every process, in order: in a repeat the arms of one cell follow each other directly."""
    single = [name for name in ("decode", "prefill") if name in workloads]
    groups = [group for group in (single, [name for name in workloads if name == "batch"]) if group]
    steps = []
    for i in range(n_repeats):
        turn = i % len(arms)
        steps += [{"repeat": i, "depth": depth, "workloads": group, "arm": arm,
                   "n_tokens": n_tokens or (16 if depth >= DEEP else 64)}
                  for depth in depths for group in groups for arm in arms[turn:] + arms[:turn]]
    return steps


def measure(steps: list[dict], setup: programs.Setup, runs: list[dict],
            states: pathlib.Path | None = None) -> None:
    """Runs the steps and appends to runs, so that a caller has those before a failure."""
    for number, step in enumerate(steps, start=1):
        arm, depth, n_tokens = step["arm"], step["depth"], step["n_tokens"]
        print(f"[{number}/{len(steps)}] {time_left(steps, runs)}: {'+'.join(step['workloads'])} at "
              f"{report.depth_name(depth)}, {arm.name}", end="", file=sys.stderr, flush=True)
        if step["workloads"] == ["batch"]:
            done, speeds = programs.batched_bench(arm, setup, depth, n_tokens)
        elif states:
            done, speeds = server.bench(arm, setup, step["workloads"], depth, n_tokens, states)
        else:
            done, speeds = programs.bench(arm, setup, step["workloads"], depth, n_tokens)
        runs.append({**step, "arm": arm.name, "speeds": speeds, "seconds": done.seconds,
                     "cores": done.cores, "load_average": os.getloadavg(),
                     "command": done.command})
        medians = (f"{name} {statistics.median(samples):.4g}" for name, samples in speeds.items())
        print(f": {', '.join(medians)} tokens/s", file=sys.stderr)


def time_left(steps: list[dict], runs: list[dict]) -> str:
    """A step that has run before takes as long again; the others go by a guess of their work."""
    if not runs:
        return "time left not known yet"
    known = {(run["arm"], run["depth"], *run["workloads"]): run["seconds"] for run in runs}
    seconds_per_work = sum(run["seconds"] for run in runs) / sum(map(work, runs))
    seconds = sum(known.get((step["arm"].name, step["depth"], *step["workloads"]),
                            work(step) * seconds_per_work) for step in steps[len(runs):])
    return f"about {datetime.timedelta(seconds=round(seconds))} left"


def work(step: dict) -> float:
    """Grows with the depth, and with its square where attention outweighs the rest."""
    return 2048 + step["depth"] * (1 + step["depth"] / 8192)
