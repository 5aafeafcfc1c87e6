"""A codec with one fault is not called fine by eval, and the same one without it is.

The faults are linked into plugins of their own: broken_table.cpp, broken_tile.cpp.
"""

import os
import unittest

import eval_run

ARGUMENTS = ["--kv", "turbo4", "--tasks", "divergence", "--depth", "2048", "--chunks", "2",
             "--fail-on", "broken", "--plugin"]


class BrokenCodec(unittest.TestCase):
    def verdict(self, plugin):
        status, report, stdout, stderr = eval_run.run(*ARGUMENTS, plugin)
        self.assertIsNotNone(report, stderr)
        found = eval_run.scheme(report, "turbo4")
        self.assertIsNone(found["error"])
        self.assertIn(found["verdict"], stdout)
        print(f"{plugin}: {found['verdict']}, {found['reason']}")
        return status, found["verdict"]

    def test_the_codec_as_it_is_passes(self):
        self.assertEqual(self.verdict(os.environ["TURBO_PLUGIN"]), (0, "fine"))

    # What is read most is read from copies in 8 bits, which this fault does not touch: thirty times
    # the divergence of the codec as it is, and not broken.
    def test_one_wrong_table_entry_is_a_visible_loss(self):
        plugin = eval_run.BROKEN_PLUGINS / "libggml-turbo-broken_table.so"
        self.assertEqual(self.verdict(plugin), (0, "visible loss"))

    def test_one_dropped_tile_is_broken(self):
        plugin = eval_run.BROKEN_PLUGINS / "libggml-turbo-broken_tile.so"
        self.assertEqual(self.verdict(plugin), (1, "broken"))


if __name__ == "__main__":
    unittest.main()
