"""What the network's delay costs: prompt and decoding speed of `slipstream run --rpc` over 2 and 3
machines, whose cables have a delay, beside one machine's. Not a test: it prints a table.

    SLIPSTREAM_BIN=... TURBO_PLUGIN=... measure_delay.py MODEL [N_TOKENS]

netem delays each direction by half of the round trip. Where the kernel has none, slow_link.py does.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import fleet

HERE = pathlib.Path(__file__).resolve().parent
TEXT = (HERE.parent / "fixtures" / "haystack.txt").read_text()[:2400]


def speeds(model, n_tokens, rpc):
    """(prompt, decoding), tokens per second."""
    over = ["--rpc", rpc] if rpc else []
    said = subprocess.run(
        [os.environ["SLIPSTREAM_BIN"], "run", model, "-p", TEXT, "-n", str(n_tokens), "--temp", "0", "--kv",
         "turbo4", "--ctx", "4096", "--threads", "1", "--prompts", "off", *over],
        capture_output=True, text=True, check=True).stderr
    return tuple(float(number) for number in re.findall(r"\(([\d.]+)/s", said))


@contextlib.contextmanager
def delayed(hosts, round_trip_ms):
    """The value of --rpc with that delay."""
    if not round_trip_ms:
        yield fleet.list_of(hosts)
        return
    commands = [["tc", "qdisc", "replace", "dev", host.cable, "root", "netem", "delay",
                 f"{round_trip_ms / 2}ms"] for host in hosts]
    netem = [subprocess.run(["ip", "netns", "exec", machine, *command], capture_output=True,
                            check=False).returncode == 0
             for host, command in zip(hosts, commands) for machine in (fleet.FRONT, host.machine)]
    if all(netem):
        yield fleet.list_of(hosts)
        return
    links = [subprocess.Popen([sys.executable, HERE / "slow_link.py", str(51000 + i), host.name,
                               str(round_trip_ms / 2)]) for i, host in enumerate(hosts)]
    time.sleep(0.5)
    try:
        yield ",".join(f"127.0.0.1:{51000 + i}" for i in range(len(hosts)))
    finally:
        for link in links:
            link.terminate()
            link.wait()


def main():
    fleet.skip_without_machines()
    model, n_tokens = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 64
    print("| machines | round trip | prompt, tokens/s | decoding, tokens/s | of one machine's |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, fleet.machines(2) as hosts, fleet.inside(fleet.FRONT):
        for host in hosts:
            host.start(pathlib.Path(folder) / host.machine)
        alone = speeds(model, n_tokens, None)
        print(f"| 1 | | {alone[0]:.0f} | {alone[1]:.1f} | |", flush=True)
        for n in (1, 2):
            for delay_ms in (0, 0.1, 1):
                with delayed(hosts[:n], delay_ms) as rpc:
                    prompt, decode = speeds(model, n_tokens, rpc)
                print(f"| {n + 1} | {delay_ms} ms | {prompt:.0f} | {decode:.1f} | "
                      f"{prompt / alone[0]:.2f}x, {decode / alone[1]:.2f}x |", flush=True)


if __name__ == "__main__":
    main()
