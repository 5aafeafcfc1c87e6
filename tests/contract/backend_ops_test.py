"""The packaged test-backend-ops, on the operations that our fixtures' caches go through.

It is the oracle for the turbo device, which will be tested with the same filters. Its verdict is
"OK" even when a filter matches nothing, so these tests count.
"""

import re
import unittest

import stock

# Head sizes of the fixtures (keys, values); both attention paths: one query (decode) and many.
HEADS = ((64, 64), (80, 80), (96, 96), (128, 128), (256, 256), (576, 512))


def passed(op, parameters):
    stdout, _ = stock.run(stock.libexec("test-backend-ops"), "test", "-b", "CPU", "-o", op,
                          "-p", parameters)
    counts = re.search(r"(\d+)/(\d+) tests passed", stdout)
    return int(counts[1]), int(counts[2])


class BackendOps(unittest.TestCase):
    def test_attention_of_every_head_size(self):
        for keys, values in HEADS:
            for n_queries in (1, 32):
                with self.subTest(keys=keys, n_queries=n_queries):
                    n_passed, n_run = passed(
                        "FLASH_ATTN_EXT",
                        f"hsk={keys},hsv={values},.*kv=(113|512),nb={n_queries},mask=1,"
                        ".*type_K=f16,type_V=f16")
                    self.assertGreater(n_run, 0)
                    self.assertEqual(n_passed, n_run)

    def test_writing_rows_into_the_cache(self):
        n_passed, n_run = passed("SET_ROWS", "type_dst=f16")
        self.assertGreater(n_run, 0)
        self.assertEqual(n_passed, n_run)

    def test_experts(self):
        n_passed, n_run = passed("MUL_MAT_ID", "type_a=q4_K.*,n_mats=8,n_used=2")
        self.assertGreater(n_run, 0)
        self.assertEqual(n_passed, n_run)


if __name__ == "__main__":
    unittest.main()
