"""eval's figures are those of the packaged llama-perplexity --kl-divergence, on the same text.

With ../shared/corpora/documentation.txt, where it is; the text of our own documents otherwise.
"""

import pathlib
import re
import sys
import tempfile
import unittest

import eval_run

sys.path.insert(0, str(eval_run.CHECKOUT / "tests" / "contract"))
import stock

DEPTH, CHUNKS = 1024, 2
N_CHARACTERS = 16_000
TOLERANCE = 0.02
# Of a single token's, a rounding of the last bit may show.
TAIL_TOLERANCE = 0.05
DOCUMENTATION = eval_run.CHECKOUT.parent / "shared" / "corpora" / "documentation.txt"

# What llama-perplexity prints, and the name that eval gives it; percents as shares.
LINES = {
    r"Mean PPL\(Q\)\s*:\s+(\S+)": ("perplexity", 1, TOLERANCE),
    r"Mean PPL\(base\)\s*:\s+(\S+)": ("perplexity_base", 1, TOLERANCE),
    r"Mean    KLD:\s+(\S+)": ("kl_mean", 1, TOLERANCE),
    r"Mean    KLD:\s+\S+ ±\s+(\S+)": ("kl_mean_error", 1, TAIL_TOLERANCE),
    r"Median  KLD:\s+(\S+)": ("kl_median", 1, TOLERANCE),
    r"90\.0%   KLD:\s+(\S+)": ("kl_90", 1, TOLERANCE),
    r"95\.0%   KLD:\s+(\S+)": ("kl_95", 1, TOLERANCE),
    r"99\.0%   KLD:\s+(\S+)": ("kl_99", 1, TOLERANCE),
    r"99\.9%   KLD:\s+(\S+)": ("kl_99_9", 1, TAIL_TOLERANCE),
    r"Maximum KLD:\s+(\S+)": ("kl_max", 1, TAIL_TOLERANCE),
    r"RMS Δp\s*:\s+(\S+)": ("delta_p_rms", 0.01, TOLERANCE),
    r"Same top p:\s+(\S+)": ("same_top", 0.01, TOLERANCE),
}


def stock_figures(text, kv, folder):
    # One sequence at a time and one thread, as eval computes.
    arguments = ["-f", text, "-c", DEPTH, "-b", DEPTH, "--chunks", CHUNKS, "-t", "1"]
    base = folder / "base"
    if not base.exists():
        stock.logits(stock.NEEDLE_MODEL, base, *arguments)
    is_turbo = kv.startswith("turbo")
    types = [] if is_turbo else ["-ctk", kv, "-ctv", kv]
    for _ in range(4):  # see stock.perplexity()
        output = "".join(stock.run("llama-perplexity", "-m", stock.NEEDLE_MODEL, "-fa", "on",
                                   "--kl-divergence-base", base, "--kl-divergence", *arguments,
                                   *types, scheme=kv if is_turbo else None))
        found = {key: (re.search(pattern, output), scale, tolerance)
                 for pattern, (key, scale, tolerance) in LINES.items()}
        if all(match for match, _, _ in found.values()):
            return {key: (float(match[1].rstrip("%")) * scale, tolerance)
                    for key, (match, scale, tolerance) in found.items()}
    raise AssertionError(f"llama-perplexity does not tell all figures:\n{output[-3000:]}")


class StockFigures(unittest.TestCase):
    def test_they_agree(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        pages = [DOCUMENTATION] if DOCUMENTATION.exists() else sorted(
            (eval_run.CHECKOUT / "docs").rglob("*.md"))
        text = folder / "text"
        # No more than is read: both programs split all of it into tokens first.
        text.write_text("\n".join(page.read_text() for page in pages)[:N_CHARACTERS])
        schemes = ("q4_0", "turbo4")
        status, report, _, stderr = eval_run.run(
            "--kv", ",".join(schemes), "--tasks", "divergence", "--depth", DEPTH, "--chunks",
            CHUNKS, "--text", text)
        self.assertEqual(status, 0, stderr)
        for kv in schemes:
            ours = eval_run.figures(report, kv, DEPTH)["divergence"]
            self.assertEqual(ours["n_tokens"], CHUNKS * (DEPTH - 1 - DEPTH // 2))
            for key, (expected, tolerance) in stock_figures(text, kv, folder).items():
                print(f"{kv} {key}: {ours[key]:.6f}, stock {expected:.6f}")
                with self.subTest(kv=kv, figure=key):
                    # Stock prints six digits behind the point.
                    self.assertAlmostEqual(ours[key], expected,
                                           delta=max(tolerance * abs(expected), 1.5e-6))


if __name__ == "__main__":
    unittest.main()
