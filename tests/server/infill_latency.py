"""How long a completion takes after one keystroke, with the prompt before it warm; beside llama-server in the same run.

  tools/toolbox env SLIPSTREAM_BIN=build/release/bin/slipstream python3 tests/server/infill_latency.py MODEL.gguf

A file of 320 lines with the cursor in line 256, and parts of 8 other files, as llama.vscode sends them by default. A line is typed
letter by letter; every fourth keystroke asks for 16 tokens. Not a test: nothing is asserted.
"""

import pathlib
import statistics
import sys
import time

from serving import LlamaServing, Serving

LINE = "    total = total + price_of(item, quantity)"
N_TOKENS = 16


def lines(name, n):
    return "".join(f"{name}_{i} = compute({i}, '{name}')  # step {i}\n" for i in range(n))


def body_of(typed, n_predict=N_TOKENS):
    extra = [{"filename": f"src/part_{i}.py", "text": lines(f"part{i}", 64), "time": i} for i in range(8)]
    return {"id_slot": 0, "input_prefix": lines("value", 256), "input_suffix": "\n" + lines("rest", 64), "input_extra": extra,
            "prompt": typed, "n_predict": n_predict, "top_k": 40, "top_p": 0.99, "temperature": 0, "ignore_eos": True,
            "stream": False, "cache_prompt": True}


def measure(name, server):
    server.post("/infill", body_of("", 0))
    took, computed = [], []
    for i in range(1, len(LINE) + 1, 4):
        begun = time.monotonic()
        status, answer = server.post("/infill", body_of(LINE[:i]))
        assert status == 200, answer
        took.append(time.monotonic() - begun)
        computed.append(answer["timings"]["prompt_n"])
    server.stop()
    took.sort()
    print(f"{name}: p50 {statistics.median(took) * 1000:.0f} ms, p90 {took[len(took) * 9 // 10] * 1000:.0f} ms, "
          f"prompt tokens computed again p50 {statistics.median(computed):.0f}, of {answer['tokens_evaluated']}; {len(took)} keystrokes", flush=True)


def main():
    model = str(pathlib.Path(sys.argv[1]).resolve())
    measure("slipstream", Serving("--ctx", "16384", "--parallel", "1", model=model))
    measure("slipstream, f16", Serving("--ctx", "16384", "--parallel", "1", "--kv", "f16", model=model))
    measure("llama-server", LlamaServing("--ctx-size", "16384", "--parallel", "1", "--threads", "2", model=model))


main()
