"""docs/compatibility.md is what tools/compatibility prints.

Environment: MAKE_MODEL, the built program that knows the shapes.
"""

import os
import pathlib
import subprocess
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


class Compatibility(unittest.TestCase):
    maxDiff = None

    def test_the_page_is_up_to_date(self):
        printed = subprocess.run([CHECKOUT / "tools" / "compatibility", os.environ["MAKE_MODEL"]],
                                 capture_output=True, text=True, check=True).stdout
        self.assertEqual((CHECKOUT / "docs" / "compatibility.md").read_text(), printed,
                         "run: tools/compatibility MAKE_MODEL > docs/compatibility.md")


if __name__ == "__main__":
    unittest.main()
