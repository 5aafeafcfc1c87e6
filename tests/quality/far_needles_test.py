"""Names far back in a text, asked of a model that remembers them: turbo4 against f16, reading all
tokens and a quarter of them.

far_needles_test.py near: one text of 4K tokens, seconds. far_needles_test.py far: 60 questions at each
of 4K to 32K tokens; f16 takes long for it. The model is needle-long.gguf of $SLIPSTREAM_TEST_DATA
(default: a folder `shared` beside the checkout). Skipped (77) without it.
Environment, set by CMake: SLIPSTREAM_BIN, SLIPSTREAM_BUILD.
"""

import os
import pathlib
import sys
import unittest

import eval_run

DATA = pathlib.Path(os.environ.get("SLIPSTREAM_TEST_DATA", eval_run.CHECKOUT.parent / "shared"))
MODEL = DATA / "models" / "needle-long.gguf"
TEXT = DATA / "corpora" / "documentation.txt"
SKIPPED = 77
SHARED_KINDS = ("several", "paraphrased", "alike")
N_QUESTIONS_OF_A_TEXT = 20
TOKENS_OF_A_QUESTION_MAX = 64
PART = "turbo4,attend=1024"  # a prompt reads twice as many


def ask(depths, n_texts, timeout_s, schemes="turbo4"):
    status, report, _, stderr = eval_run.run(
        "--kv", schemes, "--tasks", "needles", "--needle-kinds", ",".join(SHARED_KINDS),
        "--depth", ",".join(depths), "--needle-texts", n_texts, "--text", TEXT, model=MODEL,
        timeout_s=timeout_s)
    assert status == 0 and report is not None, stderr
    return report


def answers(report, kv, depth):
    return [one for one in eval_run.scheme(report, kv)["needles"]["answers"]
            if one["depth"] == depth]


def n_right(report, kv, depth):
    return sum(one["right"] for one in answers(report, kv, depth))


class Near(unittest.TestCase):
    DEPTH, DEPTH_TEXT = 4096, "4k"

    @classmethod
    def setUpClass(cls):
        cls.report = ask([cls.DEPTH_TEXT], 1, 1100, f"turbo4,{PART}")

    def test_every_kind_is_asked(self):
        self.assertEqual(self.report["options"]["depths"], [self.DEPTH])
        kinds = [one["kind"] for one in answers(self.report, "f16", self.DEPTH)]
        self.assertEqual([kinds.count(kind) for kind in SHARED_KINDS], [5, 5, 10])

    def test_the_text_is_read_once(self):
        for kv in ("f16", "turbo4", PART):
            first, *others = answers(self.report, kv, self.DEPTH)
            self.assertGreater(first["n_prompt"], 0.9 * self.DEPTH)
            self.assertLessEqual(first["n_prompt"], self.DEPTH)
            for one in others:
                self.assertLess(one["n_prompt"] - one["n_cached"], TOKENS_OF_A_QUESTION_MAX, one)

    def test_turbo4_finds_what_f16_finds(self):
        right = n_right(self.report, "f16", self.DEPTH)
        self.assertGreaterEqual(right, 15, answers(self.report, "f16", self.DEPTH))
        self.assertGreaterEqual(n_right(self.report, "turbo4", self.DEPTH), right - 1,
                                answers(self.report, "turbo4", self.DEPTH))

    def test_a_quarter_of_the_tokens_finds_what_all_find(self):
        self.assertGreaterEqual(n_right(self.report, PART, self.DEPTH),
                                n_right(self.report, "turbo4", self.DEPTH) - 1,
                                answers(self.report, PART, self.DEPTH))


class Far(unittest.TestCase):
    DEPTHS = {"4k": 4096, "8k": 8192, "16k": 16384, "32k": 32768}
    N_TEXTS = 3
    N_LOST_MAX = 3  # of 60

    def test_turbo4_is_within_three_of_sixty(self):
        report = ask(self.DEPTHS, self.N_TEXTS, 4 * 3600)
        for depth in self.DEPTHS.values():
            asked = answers(report, "f16", depth)
            self.assertEqual(len(asked), self.N_TEXTS * N_QUESTIONS_OF_A_TEXT)
            right = {kv: n_right(report, kv, depth) for kv in ("f16", "turbo4")}
            print(depth, right, flush=True)
            self.assertGreater(right["f16"], len(asked) // 2, depth)
            self.assertGreaterEqual(right["turbo4"], right["f16"] - self.N_LOST_MAX, depth)


if __name__ == "__main__":
    if not MODEL.exists() or not TEXT.exists():
        print(f"{MODEL} or {TEXT} is not here")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], {"near": "Near", "far": "Far"}[sys.argv[1]]])
