"""Figures in docs are those of the runs stored beside them."""

import pathlib
import subprocess
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


class StoredRuns(unittest.TestCase):
    def test_the_pages_are_up_to_date(self):
        result = subprocess.run([CHECKOUT / "tools" / "stored-runs", "--check"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
