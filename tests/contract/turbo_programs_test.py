"""Stock programs with our device: answers stay right, and every way of using the cache works."""

import itertools
import pathlib
import tempfile
import unittest

import stock

NAMES = ("amber lantern", "silver river", "copper garden", "gentle harbor")


def complete(server, prompt, n_predict, **extra):
    return server.post("/completion", {"prompt": prompt, "n_predict": n_predict, "temperature": 0,
                                       "ignore_eos": True, "return_tokens": True, **extra})


class Programs(unittest.TestCase):
    def test_llama_server_finds_every_slots_own_fact(self):
        for scheme in ("turbo8v4", "turbo4"):
            for unified in ("-kvu", "-no-kvu"):
                with stock.server(stock.NEEDLE_MODEL, "-c", 8192, "-np", 4, unified,
                                  scheme=scheme) as server:
                    for slot, name in enumerate(NAMES):
                        reply = server.chat(stock.question(name), id_slot=slot)
                        answer = reply["choices"][0]["message"]["content"].strip()
                        self.assertEqual(answer, f"It is {name}.", (scheme, unified))

    def test_a_saved_slot_continues_as_it_would_have(self):
        with tempfile.TemporaryDirectory() as folder:
            with stock.server(stock.NEEDLE_MODEL, "-c", 4096, "-np", 2, "--slot-save-path", folder,
                              scheme="turbo4") as server:
                prompt = stock.question(NAMES[0])
                first = complete(server, prompt, 8, id_slot=0, cache_prompt=True)
                self.post_slot(server, 0, "save")
                unbroken = complete(server, prompt, 8, id_slot=0, cache_prompt=True)
                self.post_slot(server, 1, "restore")
                restored = complete(server, prompt, 8, id_slot=1, cache_prompt=True)
                self.assertEqual(restored["tokens"], unbroken["tokens"])
                self.assertEqual(first["tokens"], unbroken["tokens"])
                # It was taken from the restored cache, not computed anew.
                self.assertLess(restored["timings"]["prompt_n"], 4)

    def test_a_slot_restored_by_another_process_continues_as_it_would_have(self):
        """The new process finds its own centre in the restored rows, nearly that of the old one.

        At 8 bits nothing comes of it. At 4 bits a few codes change, and with them a word where two are
        about as probable; which depends on how the CPU rounds. Of four texts 48, 48, 26 and 22 tokens
        stayed the same with AMX, 48, 48, 22 and 7 with AVX-512 alone. Restored wrongly, none do.
        """
        for scheme, n_same, n_texts in (("turbo8", 48, 4), ("turbo4", 16, 3)):
            n_alike = [self.tokens_alike_after_a_restart(scheme, name) for name in NAMES[:4]]
            self.assertGreaterEqual(sum(n >= n_same for n in n_alike), n_texts, (scheme, n_alike))

    def tokens_alike_after_a_restart(self, scheme, name):
        prompt = stock.question(name)
        with tempfile.TemporaryDirectory() as folder:
            options = (stock.NEEDLE_MODEL, "-c", 4096, "-np", 1, "-t", 1, "--slot-save-path", folder)
            with stock.server(*options, scheme=scheme) as server:
                complete(server, prompt, 8, id_slot=0, cache_prompt=True)
                self.post_slot(server, 0, "save")
                unbroken = complete(server, prompt, 48, id_slot=0, cache_prompt=True)
            with stock.server(*options, scheme=scheme) as server:
                self.post_slot(server, 0, "restore")
                restored = complete(server, prompt, 48, id_slot=0, cache_prompt=True)
        # It was taken from the restored cache, not computed anew.
        self.assertLess(restored["timings"]["prompt_n"], 4)
        pairs = zip(restored["tokens"], unbroken["tokens"], strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))

    @staticmethod
    def post_slot(server, slot, action):
        return server.post(f"/slots/{slot}?action={action}", {"filename": "slot.bin"})

    def test_choices_of_one_short_prompt_are_the_same(self):
        """The second choice's cache is copied from the first's, while the centre is still open."""
        with stock.server(stock.NEEDLE_MODEL, "-c", 2048, "-np", 2, "-no-kvu", "-t", 1,
                          scheme="turbo8") as server:
            choices = complete(server, "The settings of the program are", 40, n_cmpl=2)
        self.assertEqual(choices[0]["tokens"], choices[1]["tokens"])

    def test_shifting_the_context_keeps_stocks_tokens(self):
        """Past the window llama-server drops old cells and turns the keys of the rest."""
        tokens = {}
        for scheme in (None, "f16", "turbo8"):
            with stock.server(stock.NEEDLE_MODEL, "-c", 256, "-np", 1, "--context-shift",
                              "-t", "1", scheme=scheme) as server:
                tokens[scheme] = complete(server, "The settings of the program are", 400,
                                          n_keep=4)["tokens"]
        self.assertEqual(len(tokens[None]), 400)
        self.assertEqual(tokens["f16"], tokens[None])
        self.assertEqual(len(tokens["turbo8"]), 400)
        # The window is full after 250 tokens; what follows was read through shifted keys.
        same = next((i for i, (a, b) in enumerate(zip(tokens["turbo8"], tokens[None])) if a != b),
                    400)
        self.assertGreater(same, 260)

    def test_llama_batched_bench_runs_many_sequences(self):
        for unified in ([], ["-kvu"]):
            stock.said("llama-batched-bench", "-m", stock.NEEDLE_MODEL, "-c", 4096, "-npp", 64,
                       "-ntg", 8, "-npl", "1,4", "-fa", "on", *unified, "--output-format", "jsonl",
                       *stock.THREADS, scheme="turbo4", patterns=[r'"pl": 1\b', r'"pl": 4\b'])

    def test_flash_attention_off_stays_plain_and_exact(self):
        with tempfile.TemporaryDirectory() as folder:
            files = {}
            for scheme in (None, "turbo4"):
                files[scheme] = pathlib.Path(folder) / f"{scheme}"
                stock.run("llama-perplexity", "-m", stock.NEEDLE_MODEL, "-f", stock.HAYSTACK, "-c",
                          256, "--chunks", 2, "-fa", "off", "-t", 1, "--kl-divergence-base",
                          files[scheme], scheme=scheme)
            self.assertEqual(files["turbo4"].read_bytes(), files[None].read_bytes())


class StreamedExperts(unittest.TestCase):
    """With plain kernels (--no-repack), which streamed experts use, nothing changes but memory."""

    def test_llama_server_generates_the_same_with_a_compressed_cache(self):
        for shape in ("qwen3moe", "gpt-oss"):
            answers = []
            for experts in (None, "1M", "1G"):
                with stock.server(stock.model(shape), "-c", 2048, "-np", 2, "-t", 1, "--no-repack",
                                  scheme="turbo4", experts=experts) as server:
                    answers.append(complete(server, "Once upon a time", 24)["tokens"])
            self.assertEqual(answers[0], answers[1], shape)
            self.assertEqual(answers[0], answers[2], shape)

    def test_llama_bench_runs(self):
        stock.run("llama-bench", "-m", stock.model("qwen3moe"), "-p", 16, "-n", 4, "-r", 1, "-t", 1,
                  scheme="f16", experts="1M")

    def test_a_wrong_setting_is_said(self):
        _, stderr = stock.run("llama-bench", "--list-devices", scheme="f16", experts="much")
        self.assertIn("no size for the expert cache", stderr)


if __name__ == "__main__":
    unittest.main()
