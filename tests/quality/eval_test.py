"""slipstream eval from outside: every trial on the needle model, and schemes that fail."""

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
        self.assertEqual(base["n"], 15)
        self.assertEqual(base["n_same"], 15)
        self.assertGreaterEqual(base["n_right"], 13)
        self.assertEqual(len(base["grid"]), 15)  # three kinds at five positions
        self.assertGreaterEqual(self.scheme("q8_0")["needles"]["n_same"], 13)

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
