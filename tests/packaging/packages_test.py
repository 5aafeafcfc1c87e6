"""tools/packages.txt is the one list: the Dockerfile installs exactly its part, and it suffices.

Docker itself is not needed: the Dockerfile's own RUN lines are executed with an apt-get that writes
down what it is asked to install.
Environment: SLIPSTREAM_BIN, the built program.
"""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = CHECKOUT / "tools" / "packages.txt"
# What every Debian system has, or gets with the packages of the list.
ALWAYS_THERE = {"libc6", "libstdc++6", "libgcc-s1"}


def listed():
    """{package: stage}"""
    lines = [line.split() for line in PACKAGES.read_text().splitlines()
             if line and not line.startswith("#")]
    return {name: stage for name, stage in lines}


def dockerfile_stages():
    """The RUN commands of each stage of the Dockerfile."""
    text = (CHECKOUT / "packaging" / "Dockerfile").read_text().replace("\\\n", " ")
    stages = re.split(r"^FROM ", text, flags=re.M)[1:]
    return [re.findall(r"^RUN (.*)$", stage, flags=re.M) for stage in stages]


def installed_by(commands):
    """Runs the shell commands up to `apt-get install ...` and returns the packages asked for."""
    asked = set()
    for command in commands:
        install = re.search(r"apt-get install (.*?)(?:&&|$)", command)
        if not install:
            continue
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "packages.txt").write_text(PACKAGES.read_text())
            words = subprocess.run(
                ["sh", "-c", "echo " + install[1].replace("/packages.txt", folder + "/packages.txt")],
                capture_output=True, text=True, check=True).stdout
        asked |= {word for word in shlex.split(words) if not word.startswith("-")}
    return asked


class Packages(unittest.TestCase):
    def test_every_line_has_a_known_stage(self):
        self.assertEqual(set(listed().values()), {"build", "run", "test", "cross"})

    def test_other_architectures_are_cross(self):
        self.assertEqual({stage for name, stage in listed().items() if ":" in name}, {"cross"})

    def test_build_stage_installs_what_builds_and_runs(self):
        wanted = {name for name, stage in listed().items() if stage in ("build", "run")}
        self.assertEqual(installed_by(dockerfile_stages()[0]), wanted)

    def test_run_stage_installs_exactly_the_run_packages(self):
        run = {name for name, stage in listed().items() if stage == "run"}
        self.assertEqual(installed_by(dockerfile_stages()[1]), run)

    def test_only_the_two_install_commands_install(self):
        commands = [c for stage in dockerfile_stages() for c in stage if "install -y" in c]
        self.assertEqual(len(commands), 2)

    def test_run_packages_hold_every_library_the_program_needs(self):
        program = os.environ["SLIPSTREAM_BIN"]
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]",
                            subprocess.run(["readelf", "-d", program], capture_output=True,
                                           text=True, check=True).stdout)
        self.assertIn("libllama.so.0", needed)
        run = {name for name, stage in listed().items() if stage == "run"} | ALWAYS_THERE
        for library in needed:
            owners = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True,
                                    text=True, check=True).stdout
            packages = {line.split(":")[0] for line in owners.splitlines()}
            self.assertTrue(packages & run, f"{library} is in {packages}: add one as run")


if __name__ == "__main__":
    unittest.main()
