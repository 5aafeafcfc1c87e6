"""libggml-turbo.so as a plugin: what it exports, what it offers, what it says."""

import os
import pathlib
import re
import subprocess
import unittest

import stock


def devices(scheme):
    stdout, _ = stock.run("llama-bench", "--list-devices", scheme=scheme)
    return stdout


def completion(n_tokens, scheme, pattern):
    """The last match of a pattern in the log of a completion by the needle model, and the log."""
    (found,), log = stock.said("llama-completion", "-m", stock.NEEDLE_MODEL, "-c", n_tokens, "-n", 1,
                               "-p", "x", "-no-cnv", "-v", *stock.THREADS, scheme=scheme,
                               patterns=[pattern])
    return found, log


def kv_buffer(scheme, n_tokens):
    """The device and size (MiB) of the KV buffer that llama.cpp reports.

    It reports one of 0.00 MiB first: a trial of whether the model fits.
    """
    found, _ = completion(n_tokens, scheme, r"(\w+) KV buffer size =\s+(\d*[1-9]\d*\.\d+) MiB")
    return found[1], float(found[2])


class Plugin(unittest.TestCase):
    def test_exports_its_two_entry_points_and_nothing_else(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", os.environ["TURBO_PLUGIN"]],
                                 capture_output=True, text=True, check=True).stdout
        self.assertEqual({line.split()[-1] for line in symbols.splitlines()},
                         {"ggml_backend_init", "ggml_backend_score"})

    def test_without_a_scheme_there_is_no_device_and_one_line_says_how(self):
        self.assertNotIn("TURBO", devices(""))
        _, log = completion(256, "", "GGML_TURBO_KV=turbo8v4")
        self.assertEqual(log.count("turbo: loaded, and off"), 1)

    def test_with_a_scheme_there_is_one(self):
        self.assertIn("TURBO0: CPU with a compressed KV cache", devices("turbo8v4"))

    def test_a_scheme_that_does_not_exist_is_named_and_the_program_runs_on(self):
        completion(256, "turbo5", "there is no scheme 'turbo5'")

    def test_the_reported_cache_shrinks_by_the_schemes_ratio(self):
        device, plain = kv_buffer(None, 32768)
        self.assertEqual(device, "CPU")
        # Of 64 chunks one is kept in 8 bits beside its codes.
        for scheme, at_least in (("turbo8", 1.9), ("turbo8v4", 2.5), ("turbo4", 3.75),
                                 ("turbo3", 4.9)):
            device, compressed = kv_buffer(scheme, 32768)
            self.assertEqual(device, "TURBO")
            self.assertGreaterEqual(plain / compressed, at_least, scheme)

    def test_test_backend_ops_passes_on_the_device(self):
        for op, parameters in (("FLASH_ATTN_EXT", "hsk=128,.*kv=113,nb=(1|32),.*type_K=f16"),
                               ("SET_ROWS", "type_dst=f16"), ("MUL_MAT", "type_a=q8_0.*m=16,n=1"),
                               ("ROPE", "type=f32,ne_a=.128,32,2,1.,n_dims=128,mode=2")):
            stdout, _ = stock.run(stock.libexec("test-backend-ops"), "test", "-b", "TURBO0", "-o",
                                  op, "-p", parameters, scheme="turbo4")
            n_passed, n_run = map(int, re.search(r"(\d+)/(\d+) tests passed", stdout).groups())
            self.assertGreater(n_run, 0, op)
            self.assertEqual(n_passed, n_run, op)


class Hook(unittest.TestCase):
    """libggml-cpu-turbo.so. ggml looks for backends in the current directory too: here the build's."""

    def devices(self, **environment):
        return subprocess.run(["llama-bench", "--list-devices"], capture_output=True, text=True,
                              check=True, cwd=pathlib.Path(os.environ["TURBO_PLUGIN"]).parent,
                              env={**os.environ, **environment}).stdout

    def test_exports_its_entry_point_and_nothing_else(self):
        hook = pathlib.Path(os.environ["TURBO_PLUGIN"]).with_name("libggml-cpu-turbo.so")
        symbols = subprocess.run(["nm", "-D", "--defined-only", hook], capture_output=True,
                                 text=True, check=True).stdout
        self.assertEqual([line.split()[-1] for line in symbols.splitlines()],
                         ["ggml_backend_score"])

    def test_a_scheme_or_memory_for_experts_is_enough(self):
        self.assertIn("TURBO0", self.devices(GGML_TURBO_KV="turbo8v4"))
        self.assertIn("TURBO0", self.devices(GGML_TURBO_EXPERTS="2M"))

    def test_without_either_nothing_is_loaded(self):
        self.assertNotIn("TURBO", self.devices())
        self.assertNotIn("TURBO", self.devices(GGML_TURBO_KV=""))

    def test_a_backend_that_the_user_names_is_left_alone(self):
        self.assertNotIn("TURBO", self.devices(GGML_TURBO_KV="turbo4",
                                               GGML_BACKEND_PATH="/nonexistent.so"))


if __name__ == "__main__":
    unittest.main()
