"""The JSON-Schema-Test-Suite: no instance is judged wrongly, and no fewer schemas are accepted.

Draft 4 comes from npm, at the version of package-lock.json. Newer drafts are not on npm: they are
checked where $SLIPSTREAM_TEST_DATA (default: a folder `shared` beside the checkout) holds a checkout
of the suite as `JSON-Schema-Test-Suite`.
Environment: SCHEMA_SUITE_CHECK, the program; SCHEMA_SUITE_FOLDER, where to install.
"""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parents[2]
TEST_DATA = pathlib.Path(os.environ.get("SLIPSTREAM_TEST_DATA", CHECKOUT.parent / "shared"))
CHECK = os.environ["SCHEMA_SUITE_CHECK"]
INSTALLED = pathlib.Path(os.environ["SCHEMA_SUITE_FOLDER"])
# Measured; raise them when more is accepted.
DRAFT4_ACCEPTED = 47
DRAFT2020_ACCEPTED = 166
FORMATS_ACCEPTED = 12


def install():
    """npm ci into the build folder. Where npm is missing or reaches no registry, the test is skipped."""
    if not shutil.which("npm"):
        raise unittest.SkipTest("npm is not installed")
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, INSTALLED)
    npm = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund",
                          "--fetch-retries=1", "--fetch-timeout=20000"], cwd=INSTALLED,
                         capture_output=True, text=True, check=False, timeout=200)
    if npm.returncode:
        offline = re.search(r"E(NOTFOUND|CONNREFUSED|CONNRESET|TIMEDOUT|AI_AGAIN|NETUNREACH)|"
                            r"CERT|network|EAI_AGAIN|socket|E(403|404|50\d)\b", npm.stderr)
        if offline:
            raise unittest.SkipTest("npm cannot reach a registry: " + offline[0])
        raise AssertionError(npm.stderr)


class SchemaSuite(unittest.TestCase):
    def check(self, folder, n_accepted_min, *options):
        run = subprocess.run([CHECK, folder, *options], capture_output=True, text=True, check=False)
        print(f"\n{folder.parent.name}/{folder.name}\n{run.stdout}{run.stderr}", flush=True)
        self.assertEqual(run.returncode, 0)
        n_accepted = int(re.search(r"accepted (\d+) of", run.stdout)[1])
        self.assertGreaterEqual(n_accepted, n_accepted_min)

    def test_draft_4(self):
        install()
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
