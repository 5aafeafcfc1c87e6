"""The packages of a package-lock.json, installed into the build folder."""

import re
import shutil
import subprocess
import unittest

OFFLINE = re.compile(r"E(NOTFOUND|CONNREFUSED|CONNRESET|TIMEDOUT|AI_AGAIN|NETUNREACH)|"
                     r"CERT|network|EAI_AGAIN|socket|E(403|404|50\d)\b")


def install(source, target):
    """npm ci of `source` in `target`; skips the test without npm or a registry that it reaches."""
    if not shutil.which("npm"):
        raise unittest.SkipTest("npm is not installed")
    target.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, target)
    npm = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund",
                          "--fetch-retries=1", "--fetch-timeout=20000"], cwd=target,
                         capture_output=True, text=True, check=False, timeout=200)
    if npm.returncode:
        if offline := OFFLINE.search(npm.stderr):
            raise unittest.SkipTest("npm cannot reach a registry: " + offline[0])
        raise AssertionError(npm.stderr)
