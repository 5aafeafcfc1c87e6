"""Man pages and completions are made from --help: each flag is there, and real shells complete it.

Environment: SLIPSTREAM_BIN, the built program.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["SLIPSTREAM_BIN"]


def run(*command, **settings):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            check=False, timeout=60, **settings)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def commands():
    listed = re.search(r"SUBCOMMANDS:\n((?:  .*\n)+)", run(PROGRAM, "--help"))[1]
    return re.findall(r"^  ([a-z]\S*)", listed, flags=re.M)


def flags(*words):
    """As --help has them, read more simply than the generator does."""
    return set(re.findall(r"^ +(?:-\w, +)?(--[a-z][a-z-]*)", run(PROGRAM, *words, "--help"),
                          flags=re.M))


class HelpPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name) / "pages"
        cls.generate(PROGRAM)

    @classmethod
    def generate(cls, program):
        return run(sys.executable, CHECKOUT / "tools" / "help_pages", program,
                   CHECKOUT / "packaging" / "man", cls.out)

    def page(self, name):
        return run("mandoc", "-T", "utf8", "-O", "width=78", self.out / "man1" / name)

    def test_every_command_has_a_page_and_the_first_page_names_it(self):
        pages = {path.name for path in (self.out / "man1").iterdir()}
        self.assertEqual(pages, {"slipstream.1"} | {f"slipstream-{c}.1" for c in commands()})
        first = (self.out / "man1" / "slipstream.1").read_text()
        for command in commands():
            self.assertIn(f".Xr slipstream-{command} 1", first)

    def test_every_flag_is_in_its_page(self):
        for command in commands():
            page = (self.out / "man1" / f"slipstream-{command}.1").read_text()
            self.assertEqual(set(re.findall(r'^\.It Fl "(-[a-z-]+)"', page, flags=re.M)),
                             {flag[1:] for flag in flags(command)}, command)

    def test_mandoc_has_nothing_to_say(self):
        for path in sorted((self.out / "man1").iterdir()):
            self.assertEqual(run("mandoc", "-T", "lint", "-W", "warning", path), "")

    def test_prose_belongs_to_a_command(self):
        names = {path.stem for path in (CHECKOUT / "packaging" / "man").glob("*.mdoc")}
        self.assertLessEqual(names, {"slipstream", *commands()})

    def test_help_that_cannot_be_read_is_an_error_and_not_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            program.write_text("#!/bin/sh\nprintf 'Text\\n\\n\\nOPTIONS:\\n  what is !this\\n'\n")
            program.chmod(0o755)
            with self.assertRaisesRegex(AssertionError, "cannot read this line of --help"):
                self.generate(program)

    def bash(self, *words):
        """What bash offers for the last of the words."""
        script = (f"source {self.out}/completions/slipstream.bash; COMP_WORDS=(slipstream "
                  + " ".join(f"'{word}'" for word in words) + f"); COMP_CWORD={len(words)}; "
                  "compopt() { :; }; _slipstream; printf '%s\\n' \"${COMPREPLY[@]}\"")
        return set(run("bash", "--norc", "-c", script, cwd=CHECKOUT).split())

    def test_bash_completes_commands_flags_values_and_files(self):
        self.assertEqual(self.bash(""), {*commands(), "-h", *flags()})
        self.assertEqual(self.bash("ser"), {"serve"})
        for command in commands():
            self.assertEqual({word for word in self.bash(command, "--")}, flags(command), command)
        self.assertEqual(self.bash("eval", "--fail-on", "b"), {"broken"})
        self.assertEqual(self.bash("serve", "README"), {"README.md"})
        self.assertEqual(self.bash("doctor", "--dir", "packag"), {"packaging"})

    def test_fish_completes_the_same(self):
        def fish(line):
            script = (f"source {self.out}/completions/slipstream.fish; complete -C '{line}'")
            return {row.split("\t")[0] for row in
                    run("fish", "--no-config", "-c", script, cwd=CHECKOUT).splitlines()}
        self.assertLessEqual(set(commands()), fish("slipstream "))
        for command in commands():
            self.assertEqual(fish(f"slipstream {command} --"), flags(command), command)
        self.assertEqual(fish("slipstream eval --fail-on b"), {"broken"})

    def test_zsh_completes_the_same(self):
        def zsh(line):
            completed = self.out / "completed"
            completed.unlink(missing_ok=True)
            run("zsh", "-f", CHECKOUT / "tests" / "packaging" / "complete.zsh",
                self.out / "completions", line, completed, cwd=CHECKOUT)
            return completed.read_text()
        self.assertEqual(zsh("slipstream ser").strip(), "slipstream serve")
        self.assertEqual(zsh("slipstream serve --drain").strip(), "slipstream serve --drain-timeout")
        self.assertEqual(zsh("slipstream eval --fail-on b").strip(),
                         "slipstream eval --fail-on broken")
        for command in commands():
            flag = max(flags(command), key=len)  # a shell for each of them would take minutes
            self.assertEqual(zsh(f"slipstream {command} {flag[:-1]}").strip(),
                             f"slipstream {command} {flag}")


if __name__ == "__main__":
    unittest.main()
