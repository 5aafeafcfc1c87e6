"""What a machine can judge of style: format, shell scripts, and words that must not be there."""

import pathlib
import re
import subprocess
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


def tracked():
    """Files of the checkout as git sees them, new ones too; all files where there is no git."""
    git = subprocess.run(["git", "-c", "safe.directory=*", "-C", CHECKOUT, "ls-files", "-co",
                          "--exclude-standard"], capture_output=True, text=True, check=False)
    if git.returncode == 0:
        return [CHECKOUT / name for name in git.stdout.splitlines()]
    return [path for path in CHECKOUT.rglob("*") if path.is_file() and "build" not in path.parts]


class Style(unittest.TestCase):
    def test_sources_are_formatted(self):
        sources = [p for p in tracked() if p.suffix in (".h", ".cpp")]
        self.assertGreater(len(sources), 10)
        result = subprocess.run(["clang-format-22", "--dry-run", "-Werror", *sources],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr[:4000])

    def test_shell_scripts_pass_shellcheck(self):
        scripts = [p for p in tracked() if p.stat().st_size < 100_000
                   and p.read_bytes().startswith((b"#!/usr/bin/env bash", b"#!/bin/sh"))]
        self.assertGreater(len(scripts), 1)
        result = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stdout[:4000])

    def test_links_between_documents_lead_somewhere(self):
        for page in (p for p in tracked() if p.suffix == ".md"):
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
                if "://" not in target:
                    self.assertTrue((page.parent / target).exists(), f"{page}: {target}")


if __name__ == "__main__":
    unittest.main()
