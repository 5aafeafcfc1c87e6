"""Packages from npm, installed into the build folder."""

import re
import shutil
import subprocess
import unittest

OFFLINE = re.compile(r"E(NOTFOUND|CONNREFUSED|CONNRESET|TIMEDOUT|AI_AGAIN|NETUNREACH)|"
                     r"CERT|network|EAI_AGAIN|socket|E(403|404|50\d)\b")


def install(source, target):
    """The packages of `source` in `target`; skips the test without npm or a registry that it reaches.

    By the lock file if there is one: there is none where packages for other platforms are optional and cannot be had,
    for npm ci then refuses its own lock file.
    """
    if not shutil.which("npm"):
        raise unittest.SkipTest("npm is not installed")
    target.mkdir(parents=True, exist_ok=True)
    is_locked = (source / "package-lock.json").exists()
    for name in ("package.json", "package-lock.json") if is_locked else ("package.json",):
        shutil.copy(source / name, target)
    how = ["ci"] if is_locked else ["install", "--no-package-lock"]
    npm = subprocess.run(["npm", *how, "--ignore-scripts", "--no-audit", "--no-fund",
                          "--fetch-retries=1", "--fetch-timeout=20000"], cwd=target,
                         capture_output=True, text=True, check=False, timeout=600)
    if npm.returncode:
        if offline := OFFLINE.search(npm.stderr):
            raise unittest.SkipTest("npm cannot reach a registry: " + offline[0])
        raise AssertionError(npm.stderr)
