"""The memory of a stock process with 32,768 tokens in its cache shrinks as the scheme says.

llama-batched-bench computes a prompt once and copies it to 16 conversations, so that filling the
cache costs seconds: a token takes the same memory whatever conversation it belongs to. From the
peak of each process that of the same model with a short context is taken away: its weights, the
graphs and the program. What is left holds, beside the cache, libllama's notes about each token.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import stock

N_TOKENS, N_CONVERSATIONS = 32768, 16
# libllama's shortest context is 256 tokens. There, every chunk of turbo4 is still kept in 8 bits as
# well and the first keys wait in f32 for their centre: what it saves is what a library takes.
N_TOKENS_SHORT = 512
# 1.5 GiB in f16, so that the notes, 240 bytes per token, are 2.5 % of what turbo3 makes of it.
N_LAYERS, N_HEADS = 12, 8
PLAIN_MIB = N_TOKENS * N_LAYERS * N_HEADS * 2 * 128 * 2 / 2**20

# README.md says 1.91, 2.53, 3.88 and 5.12, of long contexts of one sequence.
# Bits of a number's code and its share of a scale. Four of a conversation's 32 chunks are kept in 8
# bits as well, those that are read most: at 4 bits that makes 5.17 bits of 4.13.
CODE_BITS = {"turbo8": 8.375, "turbo8v4": 6.3125, "turbo4": 4.125, "turbo3": 3.125}
AT_LEAST = {"turbo8": 1.9, "turbo8v4": 2.32, "turbo4": 3.07, "turbo3": 3.8}


def make_model(path):
    """Narrow, so that there is little to compute but the cache."""
    shape = {"--embd": 64, "--ff": 64, "--layers": N_LAYERS, "--heads": N_HEADS,
             "--kv-heads": N_HEADS}
    flags = [str(word) for flag in shape.items() for word in flag]
    subprocess.run([os.environ["MAKE_MODEL"], "qwen3", path, "--vocabulary", stock.NEEDLE_MODEL,
                    *flags], check=True)


def fill(folder, n_conversations, n_tokens, scheme):
    """Fills a cache; returns (the process's peak, the KV size that llama.cpp reports) in MiB."""
    command = ["llama-batched-bench", "-m", folder / "model", "-c", n_tokens, "-pps", "-npp",
               n_tokens // n_conversations - 1, "-ntg", 1, "-npl", n_conversations, "-b", 128,
               "-ub", 128, "-fa", "on", "-t", 1, "-v"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([str(word) for word in command], stdout=log,
                                   stderr=subprocess.STDOUT, env=stock.turbo(scheme))
    _, status, usage = os.wait4(process.pid, 0)  # Popen's own wait does not tell the peak
    process.returncode = os.waitstatus_to_exitcode(status)
    log = (folder / "log").read_text(errors="replace")
    assert process.returncode == 0, log[-4000:]
    reported = re.findall(r"KV buffer size =\s+(\S+) MiB", log)
    return usage.ru_maxrss / 1024, float(reported[-1])


class Memory(unittest.TestCase):
    def test_resident_memory_and_reported_size_shrink_by_the_schemes_ratio(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        make_model(folder / "model")
        short_mib, resident, reported = {}, {}, {}
        for scheme in (None, *AT_LEAST):
            short_mib[scheme], _ = fill(folder, 1, N_TOKENS_SHORT, scheme)
            long_mib, reported[scheme] = fill(folder, N_CONVERSATIONS, N_TOKENS, scheme)
            resident[scheme] = long_mib - short_mib[scheme]
            print(f"{scheme or 'f16'}: {short_mib[scheme]:.1f} MiB resident at {N_TOKENS_SHORT} "
                  f"tokens, {long_mib:.1f} MiB at {N_TOKENS}; reported {reported[scheme]:.1f} MiB; "
                  f"{resident[None] / resident[scheme]:.2f} times smaller")
        self.assertEqual(reported[None], PLAIN_MIB)
        for scheme, ratio in AT_LEAST.items():
            with self.subTest(scheme):
                # The device itself takes less than even a short cache saves.
                self.assertLess(short_mib[scheme], short_mib[None])
                self.assertGreaterEqual(resident[None] / resident[scheme], ratio)
                self.assertGreaterEqual(reported[None] / reported[scheme], ratio)
                # Memory comes with the first write: less would be a cache that was not filled.
                n_cells_added = N_TOKENS - N_TOKENS_SHORT
                self.assertGreaterEqual(
                    resident[scheme],
                    PLAIN_MIB * CODE_BITS[scheme] / 16 * n_cells_added / N_TOKENS)


if __name__ == "__main__":
    unittest.main()
