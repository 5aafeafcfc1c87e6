"""The program as a person meets it: --version, --help, doctor, and a wrong command line.

Environment: SLIPSTREAM_BIN, the built program.
"""

import os
import pathlib
import re
import subprocess
import unittest

PROGRAM = os.environ["SLIPSTREAM_BIN"]
MAN_PAGE = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "man" / "slipstream.1"


def slipstream(*arguments, **environment):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


class Cli(unittest.TestCase):
    def test_version_names_the_engine_too(self):
        result = slipstream("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^slipstream \d+\.\d+\.\d+ \(llama\.cpp \S+, ggml \S+\)$")

    def test_help_shows_commands_and_examples(self):
        result = slipstream("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("doctor", result.stdout)
        self.assertIn("Examples:\n  slipstream doctor ", result.stdout)

    def test_a_wrong_command_line_is_named_and_ends_with_2(self):
        for arguments, expected in ((["frobnicate"], "frobnicate"), (["--nonsense"], "--nonsense"),
                                    (["doctor", "--dir"], "--dir"), ([], "doctor")):
            result = slipstream(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(expected, result.stderr)
            self.assertEqual(result.stdout, "")

    def test_doctor_reports_every_topic(self):
        result = slipstream("doctor")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stderr, "")
        topics = [line[9:27].strip() for line in result.stdout.split("\n\n")[0].splitlines()
                  if "->" not in line]
        self.assertEqual(topics, ["cpu", "cpu features", "kernels", "memory", "memory speed",
                                  "engine", "devices", "compressed KV", "disk", "direct reads", "io_uring"])
        self.assertRegex(result.stdout, r"ok +compressed KV +\S+libggml-turbo.so")
        self.assertRegex(result.stdout.splitlines()[-1], r"^Ready\.")

    def test_doctor_advises_on_a_directory_that_is_not_there(self):
        result = slipstream("doctor", "--dir", "/nonexistent")
        self.assertEqual(result.returncode, 0)
        self.assertIn("-> name an existing directory with --dir", result.stdout)

    def test_man_page_has_every_command_and_flag_of_the_help(self):
        page = MAN_PAGE.read_text()
        for arguments in (["--help"], ["doctor", "--help"]):
            text = slipstream(*arguments).stdout
            flags = set(re.findall(r"--[a-z][a-z-]*", text.split("Examples:")[0]))
            self.assertTrue(flags)
            for flag in flags:
                self.assertIn(f"Fl {flag[1:]}", page)


if __name__ == "__main__":
    unittest.main()
