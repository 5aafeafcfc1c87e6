"""`slipstream index embed`, and search by meaning, with all-MiniLM-L6-v2, which tests/fixtures/real/fetch.py gets.

Environment: SLIPSTREAM_BIN, the built program.
"""

import pathlib
import subprocess
import sys
import unittest

from index_test import Folder

FETCH = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "real" / "fetch.py"


class Meaning(Folder):
    QUESTION = "a wading bird in a stream".split()

    @classmethod
    def setUpClass(cls):
        done = subprocess.run([sys.executable, FETCH, "minilm"], capture_output=True, text=True, check=False)
        if done.returncode == 77:
            raise unittest.SkipTest("minilm is not here, and cannot be fetched")
        assert done.returncode == 0, done.stderr
        cls.model = done.stdout.strip()

    def setUp(self):
        super().setUp()
        self.write("a.md", "The heron stands in the river and waits for fish.\n")
        self.write("b.md", "The invoice is due at the end of the month.\n")
        self.add()

    def embed(self, *words):
        done = self.slipstream("index", "embed", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_what_shares_no_word_is_found(self):
        self.assertEqual(self.paths(*self.QUESTION), [])
        self.assertIn("2 pieces have got vectors, 2 of them computed", self.embed(self.model))
        self.assertEqual(self.paths(*self.QUESTION), ["a.md"])
        self.assertEqual(self.paths("--words", *self.QUESTION), [])
        self.assertIn("near in meaning", self.slipstream("search", *self.QUESTION).stdout)

    def test_new_files_get_vectors_and_renamed_ones_have_theirs(self):
        self.embed(self.model)
        (self.root / "a.md").rename(self.root / "c.md")
        self.write("d.md", "Whales sing in the deep sea.\n")
        self.assertIn("1 of them computed", self.add())
        self.assertIn("3 pieces, 0 missing", self.slipstream("index", "status").stdout)
        self.assertEqual(self.paths(*self.QUESTION)[0], "c.md")

    def test_without_the_model_words_go_on(self):
        copy = self.folder / "model.gguf"
        copy.write_bytes(pathlib.Path(self.model).read_bytes())
        self.embed(copy)
        copy.unlink()
        done = self.slipstream("search", "what", "about", "a", "heron", "and", "a", "fish")
        self.assertEqual(done.returncode, 0)
        self.assertIn("model.gguf", done.stderr)
        self.assertIn("a.md", done.stdout)
        self.embed("--off")
        self.assertEqual(self.slipstream("search", "heron", "and", "fish").stderr, "")

    def test_a_wrong_model_is_named(self):
        for words, expected in ((["/nonexistent.gguf"], "nonexistent"), ([], "no embedder yet"),
                                (["one", "two"], "name one model")):
            done = self.slipstream("index", "embed", *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    unittest.main()
