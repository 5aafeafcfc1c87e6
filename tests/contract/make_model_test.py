"""make_model is deterministic, obeys its flags, and refuses what a shape cannot have.

Environment: MAKE_MODEL, the program.
"""

import hashlib
import os
import pathlib
import subprocess
import tempfile
import unittest

import stock


def make(shape, out, *flags):
    return subprocess.run([os.environ["MAKE_MODEL"], shape, out, "--vocabulary",
                           stock.NEEDLE_MODEL, *map(str, flags)],
                          capture_output=True, text=True, check=False)


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class MakeModel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_same_seed_same_bytes_other_seed_other_bytes(self):
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.assertEqual(make("qwen3", self.path(name), "--seed", seed).returncode, 0)
        self.assertEqual(digest(self.path("a")), digest(self.path("b")))
        self.assertNotEqual(digest(self.path("a")), digest(self.path("c")))

    def test_every_listed_shape_is_made_into_the_build_tree(self):
        listed = subprocess.run([os.environ["MAKE_MODEL"], "--list"], capture_output=True,
                                text=True, check=True).stdout
        names = {line.split()[0] for line in listed.splitlines() if line.strip()}
        made = {path.stem for path in stock.FIXTURES.glob("*.gguf")}
        # The large one is made by the speed tests that need it.
        self.assertEqual(names - made, {"qwen3-0.6b"})

    def test_weight_types_and_sizes_are_as_asked(self):
        size = {}
        for kind in ("f16", "q8_0", "q4_K"):
            made = make("qwen3moe", self.path(kind), "--type", kind, "--experts", 8, "--ff", 256)
            self.assertEqual(made.returncode, 0, made.stderr)
            stock.run("llama-bench", "-m", self.path(kind), "-p", 8, "-n", 0, "-r", 1)
            size[kind] = os.path.getsize(self.path(kind))
        self.assertAlmostEqual(size["q8_0"] / size["f16"], 8.5 / 16, delta=0.05)
        self.assertAlmostEqual(size["q4_K"] / size["f16"], 4.5 / 16, delta=0.05)

    def test_a_padded_vocabulary_loads(self):
        made = make("llama", self.path("padded"), "--n-vocab", 4096)
        self.assertEqual(made.returncode, 0, made.stderr)
        stock.run("llama-bench", "-m", self.path("padded"), "-p", 8, "-n", 0, "-r", 1)

    def test_refuses_what_a_shape_cannot_have(self):
        for shape, flags, expected in (
                ("qwen3", ("--zipf", 1), "cannot be skewed"),
                ("qwen3moe", ("--experts", 4), "8 experts used of 4"),
                ("nonsense", (), "nonsense")):
            refused = make(shape, self.path("no"), *flags)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(expected, refused.stderr)
            self.assertFalse(os.path.exists(self.path("no")))

    def test_says_so_when_it_cannot_write(self):
        refused = make("qwen3", "/nonexistent/model.gguf")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("cannot create /nonexistent/model.gguf.partial: No such file", refused.stderr)


if __name__ == "__main__":
    unittest.main()
