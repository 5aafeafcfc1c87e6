"""cmake --install gives a prefix that runs and that another CMake project can build against.

Environment: SLIPSTREAM_BUILD, the build tree; CMAKE_CXX_COMPILER.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            check=False)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prefix = pathlib.Path(folder.name) / "prefix"
        self.build = pathlib.Path(folder.name) / "build"
        run("cmake", "--install", os.environ["SLIPSTREAM_BUILD"], "--prefix", self.prefix)

    def test_program_and_what_comes_with_it_are_there(self):
        version = run(self.prefix / "bin" / "slipstream", "--version").stdout
        self.assertTrue(version.startswith("slipstream "))
        for name in ("share/man/man1/slipstream.1", "share/man/man1/slipstream-serve.1",
                     "share/bash-completion/completions/slipstream",
                     "share/zsh/site-functions/_slipstream",
                     "share/fish/vendor_completions.d/slipstream.fish",
                     "lib/systemd/system/slipstream.service",
                     "lib/systemd/system/slipstream-rpc.service"):
            self.assertTrue((self.prefix / name).exists(), name)

    def test_nothing_goes_anywhere_but_below_the_prefix(self):
        manifest = pathlib.Path(os.environ["SLIPSTREAM_BUILD"]) / "install_manifest.txt"
        for name in manifest.read_text().splitlines():
            self.assertTrue(pathlib.Path(name).is_relative_to(self.prefix), name)

    def test_the_program_finds_the_plugin_installed_with_it(self):
        report = run(self.prefix / "bin" / "slipstream", "doctor").stdout
        self.assertRegex(report, rf"ok +compressed KV +{self.prefix}/lib/\S+/libggml-turbo.so")

    def test_no_file_names_the_build_tree(self):
        for path in self.prefix.rglob("*.cmake"):
            self.assertNotIn(os.environ["SLIPSTREAM_BUILD"], path.read_text(), path)

    def test_a_project_builds_against_it(self):
        run("cmake", "-S", HERE / "consumer", "-B", self.build, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={os.environ['CMAKE_CXX_COMPILER']}")
        run("cmake", "--build", self.build)
        self.assertIn("event=consumer", run(self.build / "consumer").stderr)


if __name__ == "__main__":
    unittest.main()
