"""Replicas that share --kv-disk: one continues a conversation that it has never seen.

Environment: SLIPSTREAM_BIN, the built program.
"""

import pathlib
import tempfile
import time
import unittest

from serving import FIXTURES, Serving

TEXT = (FIXTURES / "haystack.txt").read_text()[:6000]


def ask(server, messages, headers=None):
    status, answer = server.post("/v1/chat/completions",
                                 {"messages": messages, "max_tokens": 12, "temperature": 0}, headers)
    assert status == 200, answer
    usage = answer["usage"]
    return (answer["choices"][0]["message"], usage["prompt_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"])


class SharedDisk(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def replica(self, *more):
        server = Serving("--kv", "turbo4", "--ctx", "8192", "--kv-disk", self.folder, *more)
        self.addCleanup(server.stop)
        return server

    def files(self):
        return set(self.folder.rglob("*.kv"))

    def wait_for_other_files(self, before):
        end = time.monotonic() + 60
        while self.files() == before:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        time.sleep(2)  # each looks once a second

    def test_a_conversation_goes_on_at_another_replica_and_at_a_successor(self):
        first, second = self.replica(), self.replica()
        messages = [{"role": "user", "content": TEXT + "\nWho is amber?"}]
        answer, n_prompt, n_cached = ask(first, messages)
        self.assertEqual(n_cached, 0)
        self.wait_for_other_files(set())
        saved = self.files()
        same, _, n_cached = ask(second, messages)
        self.assertEqual(same["content"], answer["content"])
        self.assertGreaterEqual(n_cached, 0.9 * n_prompt)
        messages += [answer, {"role": "user", "content": "Who is amber? " * 100}]
        ask(second, messages)
        self.wait_for_other_files(saved)
        for server in (first, second):
            self.assertEqual(server.stop(), 0)
        _, n_prompt, n_cached = ask(self.replica(), messages)
        self.assertGreaterEqual(n_cached, 0.9 * n_prompt)

    def test_keys_share_nothing(self):
        first, second = (self.replica("--api-key", key) for key in ("one", "two"))
        messages = [{"role": "user", "content": TEXT}]
        ask(first, messages, {"Authorization": "Bearer one"})
        self.wait_for_other_files(set())
        self.assertEqual(ask(second, messages, {"Authorization": "Bearer two"})[2], 0)


if __name__ == "__main__":
    unittest.main()
