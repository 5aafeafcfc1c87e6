"""The program as a person meets it: --version, --help, doctor, run, and a wrong command line.

Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_FIXTURES, the models that the build makes; TURBO_PLUGIN.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["SLIPSTREAM_BIN"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
FIXTURES = ROOT / "tests" / "fixtures"
NEEDLE_MODEL = str(FIXTURES / "needle-4m.gguf")


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
                                    (["doctor", "--dir"], "--dir"), ([], "doctor"),
                                    (["bench", NEEDLE_MODEL, "-md", NEEDLE_MODEL], "--speculate"),
                                    (["run", NEEDLE_MODEL, "--rpc", ""], "--rpc: names no host"),
                                    (["run", NEEDLE_MODEL, "-md", NEEDLE_MODEL, "--speculate", "off"],
                                     "--speculate off"),
                                    (["run", NEEDLE_MODEL, "--mtp", "on", "--speculate", "off"],
                                     "--mtp: is never asked with --speculate off")):
            result = slipstream(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(expected, result.stderr)
            self.assertEqual(result.stdout, "")

    def test_a_draft_model_without_a_model_is_refused(self):
        for arguments, expected in ((["serve", "--model", f"a={NEEDLE_MODEL}", "--draft-model", NEEDLE_MODEL], "MODEL"),
                                    (["run", NEEDLE_MODEL, "-p", "a", "--draft-kv", "f16"], "--draft-model"),
                                    (["run", NEEDLE_MODEL, "-p", "a", "--mtp", "on"], "no layer for it"),
                                    (["run", NEEDLE_MODEL, "-p", "a", "--mtp", "on", "--draft-model", NEEDLE_MODEL], "--draft-model guesses"),
                                    (["run", NEEDLE_MODEL, "-p", "a", "-md", "/none.gguf"], "/none.gguf")):
            result = slipstream(*arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn(expected, result.stderr)

    def test_doctor_reports_every_topic(self):
        result = slipstream("doctor")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stderr, "")
        topics = [line[9:27].strip() for line in result.stdout.split("\n\n")[0].splitlines()
                  if "->" not in line]
        self.assertEqual(topics, ["cpu", "cpu features", "kernels", "memory", "memory speed",
                                  "engine", "devices", "compressed KV", "other machines", "disk", "direct reads", "io_uring"])
        self.assertRegex(result.stdout, r"ok +compressed KV +\S+libggml-turbo.so")
        self.assertRegex(result.stdout.splitlines()[-1], r"^Ready\.")

    def test_doctor_advises_on_a_directory_that_is_not_there(self):
        result = slipstream("doctor", "--dir", "/nonexistent")
        self.assertEqual(result.returncode, 0)
        self.assertIn("-> name an existing directory with --dir", result.stdout)


class Run(unittest.TestCase):
    """slipstream run, on the small chat model of the fixtures."""

    def run_model(self, *arguments, **environment):
        return slipstream("run", NEEDLE_MODEL, "--temp", "0", "-n", "8", *arguments, **environment)

    def test_f16_stays_stock_whatever_the_shell_has_set(self):
        prompt = (FIXTURES / "haystack.txt").read_text()[:6000]

        def text(*arguments, **environment):
            result = slipstream("run", NEEDLE_MODEL, "--temp", "0", "-n", "40", "-t", "1", "-p", prompt,
                                *arguments, **environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stdout

        stock = text("--kv", "f16")
        self.assertNotEqual(text("--kv", "turbo2"), stock, "two bits are seen in this text")
        self.assertEqual(text("--kv", "f16", GGML_BACKEND_PATH=os.environ["TURBO_PLUGIN"],
                              GGML_TURBO_KV="turbo2", GGML_TURBO_EXPERTS="1G"), stock)

    def test_codes_in_a_file_change_no_text_and_leave_nothing_behind(self):
        prompt = (FIXTURES / "haystack.txt").read_text()[:9000]
        limited = ("run", NEEDLE_MODEL, "--temp", "0", "-t", "1", "--ctx", "8192", "-p", prompt,
                   "--kv", "turbo4,attend=512")
        in_memory = slipstream(*limited, "-n", "24")
        self.assertEqual(in_memory.returncode, 0, in_memory.stderr)
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            in_file = (*limited, "--kv-memory", "64KiB", "--kv-memory-dir", directory)
            cold = slipstream(*in_file, "-n", "24")
            self.assertEqual(cold.returncode, 0, cold.stderr)
            self.assertEqual(cold.stdout, in_memory.stdout)
            self.assertEqual(os.listdir(directory), [])

            with subprocess.Popen([PROGRAM, *in_file, "-n", "4000"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                process.stdout.read(1)
                fds = pathlib.Path(f"/proc/{process.pid}/fd")
                opened = [os.readlink(fd) for fd in fds.iterdir()]
                process.kill()
            ours = [file for file in opened if file.startswith(directory)]
            self.assertEqual([file.endswith(" (deleted)") for file in ours], [True], opened)
            self.assertEqual(os.listdir(directory), [])

    def test_kv_memory_needs_a_scheme_that_reads_a_part(self):
        for scheme in ("auto", "turbo4", "f16"):
            result = self.run_model("-p", "x", "--kv", scheme, "--kv-memory", "1GiB")
            self.assertEqual(result.returncode, 1, scheme)
            self.assertIn("turbo4,attend=4096", result.stderr)
        missing = self.run_model("-p", "x", "--kv", "turbo4,attend=512", "--kv-memory", "1GiB",
                                 "--kv-memory-dir", "/proc/self")
        self.assertEqual(missing.returncode, 1, missing.stderr)
        self.assertIn("/proc/self", missing.stderr)

    def test_text_goes_to_stdout_and_timings_to_stderr(self):
        result = self.run_model("-p", "Once upon a time")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.strip())
        self.assertRegex(result.stderr, r"prompt \d+ tokens, .* answer 8 tokens, .* KV turbo8v4 \| length")

    def test_the_same_prompt_from_a_file_and_from_stdin(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("Once upon a time")
            file.flush()
            from_file = self.run_model("-f", file.name)
            with open(file.name) as text:
                from_stdin = subprocess.run(
                    [PROGRAM, "run", NEEDLE_MODEL, "--temp", "0", "-n", "8", "-f", "-"], stdin=text,
                    capture_output=True, text=True, check=False)
        self.assertEqual(from_file.stdout, self.run_model("-p", "Once upon a time").stdout)
        self.assertEqual(from_file.stdout, from_stdin.stdout)

    def test_a_prompt_kept_on_disk_is_not_computed_again(self):
        prompt = (FIXTURES / "haystack.txt").read_text()[:6000]
        with tempfile.TemporaryDirectory() as directory:
            arguments = ("-p", prompt, "--kv-disk", directory, "--kv-disk-bytes", "100MiB")
            first = self.run_model(*arguments)
            second = self.run_model(*arguments)
            scaled = self.run_model(*arguments, "--rope-scaling", "yarn", "--rope-scale", "4")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertNotIn("from disk", first.stderr)
        n_prompt, n_from_disk = map(int, re.search(r"prompt (\d+) tokens, (\d+) from disk",
                                                   second.stderr).groups())
        self.assertEqual(n_from_disk, n_prompt - 1)
        self.assertEqual(first.stdout, second.stdout)
        self.assertEqual(scaled.returncode, 0, scaled.stderr)
        self.assertNotIn("from disk", scaled.stderr, "its keys have other positions")

    def test_a_context_beyond_the_trained_one_is_used_with_a_warning_that_says_what_helps(self):
        flags = ("--rope-scaling", "yarn", "--rope-scale", "2")
        beyond = self.run_model("-p", "x", "--ctx", "16384")
        self.assertEqual(beyond.returncode, 0, beyond.stderr)
        self.assertIn(" ".join(flags), beyond.stderr)
        for arguments in (("--ctx", "16384", *flags), ("--ctx", "8192")):
            self.assertNotIn("rope", self.run_model("-p", "x", *arguments).stderr)

    def test_without_ctx_it_takes_memory_for_its_prompt_only(self):
        model = pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"]) / "qwen3.gguf"  # of 262,144 tokens

        def peak_bytes(*arguments):
            with subprocess.Popen([PROGRAM, "run", model, "-p", "x", "-n", "8", "--kv", "f16", *arguments],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            return usage.ru_maxrss << 10

        self.assertLess(peak_bytes(), peak_bytes("--ctx", "65536") - (100 << 20))

    def test_what_cannot_be_is_said_with_what_to_do(self):
        for arguments, expected in (
                (["run", "/nonexistent.gguf", "-p", "x"], "/nonexistent.gguf"),
                (["run", str(README), "-p", "x"], "GGUF"),
                (["run", NEEDLE_MODEL, "-p", "x", "--kv", "turbo9"], "turbo8v4"),
                (["run", NEEDLE_MODEL, "-p", "x", "-n", "9000"], "context of"),
                (["run", NEEDLE_MODEL, "-p", ""], "prompt"),
                (["run", NEEDLE_MODEL, "-p", "x", "--rope-scale", "4", "--kv-profile", str(README)],
                 "leave out --kv-profile"),
                (["run", NEEDLE_MODEL, "-p", "x", "--ctx", "200000000"], "--ctx "),
                (["run", NEEDLE_MODEL, "-f", "/nonexistent.txt"], "/nonexistent.txt")):
            result = slipstream(*arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertEqual(result.stdout, "")
            self.assertIn(expected, result.stderr)
            self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)


if __name__ == "__main__":
    unittest.main()
