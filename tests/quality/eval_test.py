"""slipstream eval from outside: every trial on the needle model, and schemes that fail."""

import pathlib
import subprocess
import tempfile
import unittest

import eval_run


class Trials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.status, cls.report, cls.stdout, stderr = eval_run.run(
            "--kv", "q8_0,turbo8v4,turbo2", "--tasks", "divergence,needles,tools,drift",
            "--depth", "512", "--chunks", "4", "--tool-calls", "4", "--drift-prompts", "3",
            "--drift-tokens", "48")
        assert cls.report is not None, stderr

    def scheme(self, kv):
        return eval_run.scheme(self.report, kv)

    def test_every_scheme_is_there_f16_first(self):
        self.assertEqual(self.status, 0)
        self.assertEqual([one["kv"] for one in self.report["schemes"]],
                         ["f16", "q8_0", "turbo8v4", "turbo2"])
        for kv in ("f16", "q8_0", "turbo8v4", "turbo2"):
            self.assertIn(kv, self.stdout)

    def test_it_says_what_was_measured_with_what(self):
        self.assertEqual(self.report["model"]["file"], "needle-4m.gguf")
        self.assertEqual(self.report["model"]["bytes"], eval_run.NEEDLE_MODEL.stat().st_size)
        self.assertRegex(self.report["model"]["fingerprint"], "^[0-9a-f]{64}$")
        self.assertEqual(self.report["options"]["depths"], [512])
        for key in ("slipstream", "llama_cpp", "ggml", "cpu", "created"):
            self.assertTrue(self.report[key], key)

    def test_fewer_bits_diverge_more(self):
        kl = [eval_run.figures(self.report, kv, 512)["divergence"]["kl_mean"]
              for kv in ("q8_0", "turbo8v4", "turbo2")]
        self.assertGreater(kl[0], 0)
        self.assertGreater(kl[1], 5 * kl[0])
        self.assertGreater(kl[2], 5 * kl[1])

    def test_verdicts_tell_two_bits_from_eight(self):
        self.assertEqual(self.scheme("q8_0")["verdict"], "fine")
        self.assertEqual(self.scheme("turbo8v4")["verdict"], "fine")
        self.assertIn(self.scheme("turbo2")["verdict"], ("visible loss", "broken"))
        self.assertIsNone(self.scheme("f16")["verdict"])

    def test_needles_are_found_and_agree_with_f16(self):
        base = self.scheme("f16")["needles"]
        self.assertEqual(base["n"], 25)  # two of each pair that is alike
        self.assertEqual(base["n_same"], 25)
        self.assertGreaterEqual(base["n_right"], 21)
        self.assertEqual(len(base["grid"]), 20)  # four kinds at five positions
        self.assertGreaterEqual(self.scheme("q8_0")["needles"]["n_same"], 22)

    def test_a_text_is_read_once_for_all_its_questions(self):
        shared = [one for one in self.scheme("turbo8v4")["needles"]["answers"]
                  if one["kind"] != "single"]
        self.assertEqual(len(shared), 20)
        for one in shared[1:]:
            self.assertLess(one["n_prompt"] - one["n_cached"], 64, one)

    def test_tool_calls_are_valid_and_json_always_is(self):
        for kv in ("f16", "q8_0"):
            calls = self.scheme(kv)["tool_calls"]
            self.assertEqual(calls["n"], 4)
            self.assertGreaterEqual(calls["n_valid"], 3, calls)
            self.assertGreaterEqual(calls["n_as_expected"], 3, calls)
        for scheme in self.report["schemes"]:
            self.assertEqual(scheme["schemas"]["n"], 9)
            self.assertEqual(scheme["schemas"]["n_valid"], 9, scheme["schemas"])

    def test_drift_comes_sooner_with_fewer_bits(self):
        self.assertEqual(self.scheme("f16")["drift"]["first_differences"], [48, 48, 48])
        self.assertEqual(len(self.scheme("turbo2")["drift"]["first_differences"]), 3)
        self.assertLess(self.scheme("turbo2")["drift"]["median"],
                        self.scheme("q8_0")["drift"]["median"])


class Work(unittest.TestCase):
    KINDS = ("arithmetic", "facts", "json")

    def check(self, report, kinds, n):
        for scheme in report["schemes"]:
            self.assertEqual(list(scheme["work"]), list(kinds))
            for kind, found in scheme["work"].items():
                base = eval_run.scheme(report, "f16")["work"][kind]
                self.assertEqual(found["n"], n)
                self.assertEqual(len(found["answers"]), n)
                self.assertEqual([one["expected"] for one in found["answers"]],
                                 [one["expected"] for one in base["answers"]])
                self.assertEqual(found["n_base_right"], base["n_right"])
                self.assertLessEqual(found["n_kept"], found["n_right"])
        for found in eval_run.scheme(report, "f16")["work"].values():
            self.assertEqual(found["n_same"], n)
            self.assertEqual(found["n_kept"], found["n_right"])

    def test_each_kind_is_asked_and_compared_with_f16(self):
        status, report, stdout, stderr = eval_run.run(
            "--kv", "q8_0,turbo2", "--tasks", ",".join(self.KINDS), "--work-tasks", "2", "--depth",
            "256")
        self.assertEqual(status, 0, stderr)
        self.check(report, self.KINDS, 2)
        for kind in self.KINDS:
            self.assertRegex(stdout, rf"Work, {kind}: f16 answers \d/2 right")
            if eval_run.scheme(report, "f16")["work"][kind]["n_right"] == 0:
                self.assertIn(f"f16: it gets nothing right in {kind}", stdout)
        # 8 bits change hardly an answer, 2 bits nearly all that are longer than a word.
        same = [sum(one["n_same"] for one in eval_run.scheme(report, kv)["work"].values())
                for kv in ("q8_0", "turbo2")]
        self.assertGreater(same[0], same[1])

    def test_code_is_run_where_there_is_a_sandbox(self):
        status, report, stdout, stderr = eval_run.run(
            "--kv", "q8_0", "--tasks", "code", "--work-tasks", "2", "--depth", "256")
        if "in a sandbox only" in stderr:
            self.assertEqual(status, 1)
            self.assertIsNone(report)
            self.skipTest(stderr)
        self.assertEqual(status, 0, stderr)
        self.check(report, ("code",), 2)
        self.assertIn("Work, code", stdout)

    def test_a_model_without_a_usable_template_continues_texts(self):
        with tempfile.TemporaryDirectory() as folder:
            template = pathlib.Path(folder) / "template"
            template.write_text("{% if")
            model = pathlib.Path(folder) / "model.gguf"
            subprocess.run([eval_run.MAKE_MODEL, "qwen3", model, "--vocabulary",
                            eval_run.NEEDLE_MODEL, "--chat-template", template], check=True)
            status, report, _, stderr = eval_run.run(
                "--kv", "q8_0", "--tasks", "needles,arithmetic", "--work-tasks", "2", "--depth",
                "256", model=model)
        self.assertEqual(status, 0, stderr)
        base = eval_run.scheme(report, "f16")
        self.assertIsNone(base["needles"])
        self.assertTrue(any("needles and tool calls are left out" in note
                            for note in base["notes"]), base["notes"])
        self.check(report, ("arithmetic",), 2)
        for one in base["work"]["arithmetic"]["answers"]:
            self.assertNotIn("\n", one["answer"])


class Failures(unittest.TestCase):
    SHORT = ["--tasks", "divergence", "--depth", "256", "--chunks", "1"]

    def test_a_process_that_dies_costs_only_its_scheme(self):
        status, report, stdout, _ = eval_run.run(
            "--kv", "turbo4,q8_0", *self.SHORT, "--plugin",
            eval_run.BROKEN_PLUGINS / "libdying_plugin.so")
        self.assertEqual(status, 1)
        self.assertIn("killed by signal 6", eval_run.scheme(report, "turbo4")["error"])
        self.assertEqual(eval_run.scheme(report, "q8_0")["verdict"], "fine")
        self.assertRegex(stdout, r"turbo4.*failed")

    def test_a_plugin_that_is_none_is_an_error_of_the_scheme(self):
        status, report, _, _ = eval_run.run("--kv", "turbo4", *self.SHORT, "--plugin", __file__)
        self.assertEqual(status, 1)
        self.assertIn("ggml refuses the plugin", eval_run.scheme(report, "turbo4")["error"])

    def test_errors_say_what_to_do(self):
        for arguments, expected in (
                (["--kv", "turbo9"], "turbo9"),
                (["--kv", "f16"], "name a scheme"),
                (["--kv", "q8_0", "--depth", "100000"], "trained for 8192 tokens"),
                (["--kv", "q8_0", "--text", __file__, "--depth", "8192"], "a longer --text")):
            status, report, _, stderr = eval_run.run(*arguments, "--tasks", "divergence")
            self.assertEqual(status, 1, arguments)
            self.assertIsNone(report)
            self.assertIn(expected, stderr)


if __name__ == "__main__":
    unittest.main()
