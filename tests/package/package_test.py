"""slipstream.deb in a fresh Debian root: README.md's commands, stock llama.cpp beside it, and removal.

Needs root, debootstrap and a Debian mirror. Environment: SLIPSTREAM_BUILD, the build tree;
SLIPSTREAM_DEB, a package to test instead of the one that is made from it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import readme
from fresh_root import FreshRoot

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["SLIPSTREAM_BUILD"])
MODEL = HERE.parent / "fixtures" / "needle-4m.gguf"
STOCK_TEXT = ("llama-completion", "-m", "/model.gguf", "-p", "We met amber lantern today.", "-n", "24",
              "--temp", "0", "-no-cnv", "-t", "1", "--no-warmup")


def make_package(folder):
    if "SLIPSTREAM_DEB" in os.environ:
        return pathlib.Path(os.environ["SLIPSTREAM_DEB"])
    FreshRoot.check(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder], 1200)
    return pathlib.Path(folder) / "slipstream.deb"


class Package(unittest.TestCase):
    """One root, in the order of a life: the README, without the package, and with it again."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="slipstream-package-")
        cls.addClassCleanup(folder.cleanup)
        cls.package = make_package(folder.name + "/cpack")
        cls.root = FreshRoot(folder.name + "/root", BUILD / "package_archives")
        shutil.copy(cls.package, cls.root.path / "root" / "slipstream.deb")
        shutil.copy(MODEL, cls.root.path / "model.gguf")
        # The README's first commands need Debian's mirror, the others need no network.
        cls.install, *cls.chat = readme.commands("Install")
        cls.root.run("sh", "-c", "cd /root && " + cls.install)

    def readme_answer(self):
        """What the last of README.md's commands prints, and the seconds since the first after apt."""
        script = "cd /root\nexport HF_ENDPOINT=@HUB@\n" + "\n".join(self.chat) + "\n"
        started = time.monotonic()
        output = FreshRoot.check(
            self.root.entered(sys.executable, str(HERE / "readme.py"), str(MODEL),
                              *self.root.chrooted("bash", "-e", "-c", script), offline=True), 300)
        return output, time.monotonic() - started

    def devices(self, *variables):
        return self.root.run("env", *variables, "llama-server", "--list-devices")

    def purge(self):
        """What is in the root without the package, which an earlier test may have purged."""
        if (self.root.path / "etc/slipstream").exists():
            self.root.run("apt-get", "-q", "purge", "slipstream")
        return self.root.files()

    def test_1_the_readme_leads_to_a_chat_within_a_minute(self):
        self.assertRegex(self.install, r"^apt install \./slipstream\.deb\b")
        output, seconds = self.readme_answer()
        print(f"{output}\nafter {seconds:.1f} s")
        self.assertRegex(output, r'"role":\s*"assistant"')
        self.assertRegex(output, r'"content":\s*"[^"]*\w')
        self.assertLess(seconds, 60)

    def test_2_the_program_finds_its_plugin_where_ggml_looks(self):
        report = self.root.run("slipstream", "doctor")
        self.assertRegex(report, r"ok +compressed KV +/usr/lib/\S+/ggml/backends\d*/libggml-turbo.so")
        self.assertIn("slipstream.service", self.root.run("dpkg", "-L", "slipstream"))

    def test_3_a_scheme_is_all_that_stock_needs_and_without_one_nothing_changes(self):
        stock_section = readme.commands("A smaller KV cache in stock llama.cpp")
        self.root.run("sh", "-c", stock_section[0])
        self.assertEqual(stock_section[0], "apt install llama.cpp-tools")
        self.assertIn("TURBO0", self.root.run("sh", "-c", stock_section[1]))
        self.assertIn("TURBO0", self.devices("GGML_TURBO_KV=turbo8v4"))
        without_variable = self.devices(), self.root.run(*STOCK_TEXT)
        self.purge()
        self.assertEqual((self.devices(), self.root.run(*STOCK_TEXT)), without_variable)
        self.assertNotIn("TURBO", self.devices("GGML_TURBO_KV=turbo8v4"))

    def test_4_removal_leaves_nothing(self):
        before = self.purge()
        self.assertEqual([path for path in before if "slipstream" in path or "turbo" in path], [])
        self.root.run("sh", "-c", "cd /root && " + self.install)
        # What the service would have made.
        for folder in ("var/cache/private/slipstream", "var/lib/private/slipstream/hub"):
            (self.root.path / folder).mkdir(parents=True)
        (self.root.path / "var/lib/slipstream").symlink_to("private/slipstream")
        removed = re.sub(r"\s+", " ", self.root.run("apt-get", "-q", "remove", "slipstream"))
        self.assertIn("REMOVED: slipstream", removed)
        self.assertTrue((self.root.path / "etc/slipstream/slipstream.env").exists(), "before purge")
        after = self.purge()
        for parent in ("var/cache/private", "var/lib/private"):  # systemd's own
            (self.root.path / parent).rmdir()
            after.discard("./" + parent)
        self.assertEqual(after ^ before, set())

    def test_5_the_package_says_what_it_is(self):
        fields = subprocess.run(["dpkg-deb", "-f", self.package], capture_output=True, text=True,
                                check=True).stdout
        for expected in (r"^Package: slipstream$", r"^Depends: .*\blibllama0\b", r"\blibggml0\b",
                         r"^Suggests: llama.cpp-tools$", r"^Maintainer: \S"):
            self.assertRegex(fields, re.compile(expected, flags=re.M))
        for name in ("include/", ".a\n", "/cmake/"):
            listed = subprocess.run(["dpkg-deb", "-c", self.package], capture_output=True, text=True,
                                    check=True).stdout
            self.assertNotIn(name, listed)


if __name__ == "__main__":
    unittest.main()
