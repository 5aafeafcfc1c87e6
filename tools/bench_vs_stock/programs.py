"""The packaged llama-bench and llama-batched-bench: one process each, and what it measured."""

import dataclasses
import json
import resource
import subprocess
import time

from bench_vs_stock.arms import Arm


class RunFailed(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Setup:
    model: str
    n_threads: int
    n_prefill_threads: int
    n_prompt: int
    n_samples: int
    n_sequences: int


@dataclasses.dataclass
class Run:
    command: list[str]
    seconds: float
    cores: float  # CPU time over wall time: below the threads asked for, others had the machine
    stdout: str
    stderr: str


def run(arm: Arm, *words) -> Run:
    command = [*map(str, words), *arm.flags]
    started, cpu = time.monotonic(), cpu_seconds()
    try:
        done = subprocess.run(command, env=arm.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise RunFailed(f"{command[0]} is not installed: run this in tools/toolbox") from error
    seconds = time.monotonic() - started
    if done.returncode != 0:
        raise RunFailed(f"arm {arm.name}: {' '.join(command)} ended with {done.returncode}:\n"
                        f"{(done.stderr or done.stdout)[-2000:]}")
    return Run(command, seconds, (cpu_seconds() - cpu) / seconds, done.stdout, done.stderr)


def cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def probe(arm: Arm, setup: Setup) -> dict:
    """What the arm really is. llama.cpp runs on without a plugin that it cannot load, and the
    plugin without a scheme that it does not know: that speed would stand under a wrong name."""
    done = run(arm, "llama-bench", "-m", setup.model, "-p", 0, "-n", 1, "-r", 1, "-fa", "on", "-t",
               setup.n_threads, "-o", "json", "-v")
    row = json.loads(done.stdout)[0]
    said = [line for line in done.stderr.splitlines() if line.startswith("turbo:")]
    if arm.has_plugin != ("TURBO" in row["backends"]):
        raise RunFailed(f"arm {arm.name} ran on {row['backends']}:\n{done.stderr[:2000]}")
    for line in said:
        if "there is no scheme" in line:
            raise RunFailed(f"arm {arm.name}: {line}")
    return {"row": row, "said": said}


def bench(arm: Arm, setup: Setup, workloads: list[str], depth: int,
          n_tokens: int) -> tuple[Run, dict[str, list[float]]]:
    """Decode and prefill in one process, because they share the prefill of the depth.

    With other threads for the prefill, a first test on those fills the depth and is thrown away;
    the test that counts takes the state over from it.
    """
    threads = [setup.n_threads]
    if depth and setup.n_prefill_threads != setup.n_threads:
        threads.insert(0, setup.n_prefill_threads)
    done = run(arm, "llama-bench", "-m", setup.model, "-o", "json", "-fa", "on",
               "-r", setup.n_samples, "-d", depth, "-t", ",".join(map(str, threads)),
               "-p", setup.n_prompt if "prefill" in workloads else 0,
               "-n", n_tokens if "decode" in workloads else 0)
    rows = [row for row in json.loads(done.stdout) if row["n_threads"] == setup.n_threads]
    return done, {"decode" if row["n_gen"] else "prefill": row["samples_ts"] for row in rows}


def batched_bench(arm: Arm, setup: Setup, depth: int, n_tokens: int,
                  n_tries: int = 4) -> tuple[Run, dict[str, list[float]]]:
    """Tokens per second of all sequences together.

    The program's log, where its figures are, is a thread that may end with the process before it
    has written the last line (2 of 30 runs). So a short second row follows the one that counts.
    """
    n_prompt = max(depth, 1)  # without a prompt it prints -nan
    n_context = -(-(n_prompt + n_tokens) // 256) * 256  # as llama.cpp pads it; its warm-up needs 16
    for _ in range(n_tries):
        done = run(arm, "llama-batched-bench", "-m", setup.model, "-fa", "on", "-pps",
                   "-npl", setup.n_sequences, "-npp", f"{n_prompt},1", "-ntg", n_tokens,
                   "-c", setup.n_sequences * n_context, "-t", setup.n_threads,
                   "-tb", setup.n_threads, "--output-format", "jsonl")
        for line in done.stdout.splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            if row.get("pp") == n_prompt:
                return done, {"batch": [row["speed_tg"]]}
    raise RunFailed(f"arm {arm.name}: no figures in {n_tries} runs of {' '.join(done.command)}:\n"
                    f"{done.stderr[-2000:]}")
