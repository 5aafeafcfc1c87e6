"""`slipstream run` against the packaged llama-completion: the same tokens, greedily, with f16 KV.

llama-completion's log thread may end before it has printed everything (one run in thirty, more on a busy machine), so
that an answer that is only the beginning of ours is asked for again.
Environment: SLIPSTREAM_BIN, SLIPSTREAM_FIXTURES.
"""

import os
import pathlib
import subprocess
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
NEEDLE_MODEL = CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf"
HAYSTACK = (CHECKOUT / "tests" / "fixtures" / "haystack.txt").read_text()
FIXTURES = pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"])
PROMPTS = ["The command prints", "A file descriptor is", HAYSTACK[:900], HAYSTACK[2000:6000]]


def output(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, check=False,
                          timeout=600, stdin=subprocess.DEVNULL)
    stderr = done.stderr.decode(errors="replace")
    assert done.returncode == 0, stderr[-2000:]
    # Random models say bytes that are no text: stock prints them, we print U+FFFD.
    return done.stdout.decode(errors="replace").strip(), stderr


def ours(model, prompt, *more):
    return output([os.environ["SLIPSTREAM_BIN"], "run", model, "-p", prompt, "-n", 48, "--temp", 0,
                   "-t", 1, *more])


def stock(model, prompt, *more):
    text, _ = output(["llama-completion", "-m", model, "-p", prompt, "-n", 48, "--temp", 0, "-t", 1,
                      "-no-cnv", "--no-display-prompt", "-fa", "on", "-c", 4096, *more])
    return text.removesuffix("[end of text]").strip()


class Completion(unittest.TestCase):
    def assert_same(self, model, prompt, *more):
        expected, _ = ours(model, prompt, "--kv", "f16", *more)
        for _ in range(16):
            text = stock(model, prompt, *more)
            if text == expected or not expected.startswith(text):
                break
        self.assertEqual(text, expected)
        return text

    def test_one_sequence_is_stocks_token_for_token(self):
        for prompt in PROMPTS:
            with self.subTest(prompt=prompt[:20]):
                self.assert_same(NEEDLE_MODEL, prompt)

    def test_on_other_architectures_too(self):
        for shape in ("llama", "qwen2", "gemma3", "qwen3moe", "qwen35"):
            with self.subTest(shape=shape):
                self.assert_same(FIXTURES / f"{shape}.gguf", PROMPTS[2])

    def test_scaled_positions_are_stocks_too(self):
        prompt = HAYSTACK[:3000]
        texts = [self.assert_same(NEEDLE_MODEL, prompt)]
        for flags in (("--rope-scaling", "yarn", "--rope-scale", 4),
                      ("--rope-scaling", "yarn", "--rope-freq-scale", 0.25, "--yarn-orig-ctx", 1024,
                       "--yarn-ext-factor", 0.5, "--yarn-attn-factor", 1.2, "--yarn-beta-slow", 2,
                       "--yarn-beta-fast", 16),
                      ("--rope-scaling", "linear", "--rope-scale", 2),
                      ("--rope-freq-base", 40000)):
            with self.subTest(flags=flags):
                texts.append(self.assert_same(NEEDLE_MODEL, prompt, *flags))
        self.assertEqual(len(set(texts)), len(texts), "each setting is seen in the text")

    def test_own_products_answer_from_a_long_prompt(self):
        question = (f"<|im_start|>user\n{HAYSTACK[:900]}\nWe met amber lantern today.\n"
                    f"{HAYSTACK[900:1800]}\nWhat is the full name of amber?<|im_end|>\n"
                    "<|im_start|>assistant\n")
        for kv in ("f16", "turbo8v4"):
            with self.subTest(kv=kv):
                text, _ = ours(NEEDLE_MODEL, question, "--kv", kv, "--prompts", "on")
                self.assertIn("amber lantern", text)

    def test_says_what_it_did(self):
        text, said = ours(NEEDLE_MODEL, PROMPTS[0], "--kv", "turbo8v4")
        self.assertTrue(text)
        self.assertRegex(said, r"load \S+ s \| prompt \d+ tokens, .*\| answer 48 tokens.*"
                               r"\| KV turbo8v4 \| length")


if __name__ == "__main__":
    unittest.main()
