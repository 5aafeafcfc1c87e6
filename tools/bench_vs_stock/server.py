"""The packaged llama-server, for depths that llama-bench would take hours to fill.

Every arm needs the same KV rows before it can be timed, and stock f16 computes 32k of them in
hours. Speed does not depend on who computed them: the device does it once, llama-server saves the
slot, as f16, and every arm, stock ones too, restores that file. What is timed is the same engine
and the same graph as in llama-bench.
"""

import contextlib
import hashlib
import json
import pathlib
import random
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from bench_vs_stock.arms import Arm
from bench_vs_stock.programs import Run, RunFailed, Setup, cpu_seconds

SPARE = 1024  # cells behind the depth: a prompt of 512 and what is decoded


def prompt_tokens(n_tokens: int, seed: int = 1) -> list[int]:
    """The same tokens for every process; ids that are plain text in any vocabulary."""
    choose = random.Random(seed)
    return [choose.randrange(100, 200) for _ in range(n_tokens)]


class Server:
    def __init__(self, arm: Arm, setup: Setup, n_context: int, folder: pathlib.Path,
                 n_threads: int):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.arm = arm
        words = ["llama-server", "-m", setup.model, "-fa", "on", "-np", 1, "-c", n_context,
                 "-t", setup.n_threads, "-tb", n_threads, "--port", self.port,
                 "--slot-save-path", f"{folder}/", "--cache-ram", 0, "--no-webui", *arm.flags]
        self.command = [str(word) for word in words]
        self.log = tempfile.TemporaryFile()

    def __enter__(self):
        try:
            self.process = subprocess.Popen(self.command, env=self.arm.environment(),
                                            stdin=subprocess.DEVNULL, stdout=self.log,
                                            stderr=self.log)
        except FileNotFoundError as error:
            raise RunFailed("llama-server is not installed: run this in tools/toolbox") from error
        deadline = time.monotonic() + 600
        while True:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return self
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RunFailed(f"arm {self.arm.name}: {' '.join(self.command)} does not serve:\n"
                                f"{self.said()}")
            time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:  # it may wait for ever for a request that was cut off
            self.process.kill()
            self.process.wait()
        self.log.close()

    def said(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-2000:]

    def ask(self, path: str, body: dict) -> dict:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}",
                                         json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError) as error:
            refused = isinstance(error, urllib.error.HTTPError)
            reason = error.read().decode() if refused else str(error)
            raise RunFailed(f"arm {self.arm.name}: {path}: {reason}\n{self.said()}") from error

    def complete(self, tokens: list[int], n_predict: int) -> dict:
        body = {"prompt": tokens, "n_predict": n_predict, "id_slot": 0, "temperature": 0,
                "cache_prompt": True, "ignore_eos": True}
        return self.ask("/completion", body)["timings"]


def state_file(setup: Setup, depth: int) -> str:
    """Named after the model too: another model's rows would not fit, or worse, fit."""
    model = pathlib.Path(setup.model)
    with model.open("rb") as file:
        mark = hashlib.sha256(file.read(1 << 20) + str(model.stat().st_size).encode())
    return f"{mark.hexdigest()[:12]}-{depth}.state"


def make_states(arm: Arm, setup: Setup, depths: list[int], folder: pathlib.Path) -> None:
    """One file per depth that has none yet, by one prompt that grows from depth to depth."""
    missing = sorted(depth for depth in depths
                     if depth and not (folder / state_file(setup, depth)).is_file())
    if not missing:
        return
    with Server(arm, setup, missing[-1] + SPARE, folder, setup.n_prefill_threads) as server:
        for depth in missing:
            server.complete(prompt_tokens(depth), 0)
            # A whole file or none: a later run would take half of one for a state.
            server.ask("/slots/0?action=save", {"filename": "unfinished.state"})
            (folder / "unfinished.state").rename(folder / state_file(setup, depth))


def bench(arm: Arm, setup: Setup, workloads: list[str], depth: int, n_tokens: int,
          folder: pathlib.Path) -> tuple[Run, dict[str, list[float]]]:
    """Decode and prefill behind a restored depth; the same figures as programs.bench."""
    started, cpu, speeds = time.monotonic(), cpu_seconds(), {}
    prompt = prompt_tokens(depth) or prompt_tokens(1)
    with Server(arm, setup, depth + SPARE, folder, setup.n_threads) as server:
        if depth:
            server.ask("/slots/0?action=restore", {"filename": state_file(setup, depth)})
        for i in range(setup.n_samples):
            if "decode" in workloads:
                timings = server.complete(prompt, n_tokens + 1)
                expect(timings["prompt_n"] == 1, arm,
                       f"{timings['prompt_n']} tokens instead of 1 were not in the slot")
                speeds.setdefault("decode", []).append(timings["predicted_per_second"])
            if "prefill" in workloads:
                more = prompt_tokens(setup.n_prompt, seed=2 + i)
                timings = server.complete(prompt_tokens(depth) + more, 0)
                # Two prompts may begin alike by chance.
                expect(setup.n_prompt - 8 <= timings["prompt_n"] <= setup.n_prompt, arm,
                       f"a prompt of {timings['prompt_n']} was computed")
                speeds.setdefault("prefill", []).append(timings["prompt_per_second"])
        command = server.command
    seconds = time.monotonic() - started
    return Run(command, seconds, (cpu_seconds() - cpu) / seconds, "", ""), speeds


def expect(fulfilled: bool, arm: Arm, fault: str) -> None:
    if not fulfilled:
        raise RunFailed(f"arm {arm.name}: {fault}")
