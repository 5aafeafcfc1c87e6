"""The JSON-Schema-Test-Suite: no instance is judged wrongly, and no fewer schemas are accepted.

Draft 4 comes from npm, at the version of package-lock.json. Newer drafts are not on npm: they are
checked where $SLIPSTREAM_TEST_DATA (default: a folder `shared` beside the checkout) holds a checkout
of the suite as `JSON-Schema-Test-Suite`.
Environment: SCHEMA_SUITE_CHECK, the program; SCHEMA_SUITE_FOLDER, where to install.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import npm_packages  # noqa: E402

CHECKOUT = HERE.parents[2]
TEST_DATA = pathlib.Path(os.environ.get("SLIPSTREAM_TEST_DATA", CHECKOUT.parent / "shared"))
CHECK = os.environ["SCHEMA_SUITE_CHECK"]
INSTALLED = pathlib.Path(os.environ["SCHEMA_SUITE_FOLDER"])
# Measured; raise them when more is accepted.
DRAFT4_ACCEPTED = 47
DRAFT2020_ACCEPTED = 166
FORMATS_ACCEPTED = 12


class SchemaSuite(unittest.TestCase):
    def check(self, folder, n_accepted_min, *options):
        run = subprocess.run([CHECK, folder, *options], capture_output=True, text=True, check=False)
        print(f"\n{folder.parent.name}/{folder.name}\n{run.stdout}{run.stderr}", flush=True)
        self.assertEqual(run.returncode, 0)
        n_accepted = int(re.search(r"accepted (\d+) of", run.stdout)[1])
        self.assertGreaterEqual(n_accepted, n_accepted_min)

    def test_draft_4(self):
        npm_packages.install(HERE, INSTALLED)
        self.check(INSTALLED / "node_modules/json-schema-test-suite/tests/draft4", DRAFT4_ACCEPTED)

    def newer(self, folder, *arguments):
        path = TEST_DATA / "JSON-Schema-Test-Suite/tests" / folder
        if not path.exists():
            self.skipTest(f"no {path}")
        self.check(path, *arguments)

    def test_draft_2020_12(self):
        self.newer("draft2020-12", DRAFT2020_ACCEPTED)

    def test_formats(self):
        self.newer("draft2020-12/optional/format", FORMATS_ACCEPTED, "--narrower")


if __name__ == "__main__":
    unittest.main()
