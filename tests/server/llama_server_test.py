"""What `slipstream serve` answers under llama-server's names, beside what llama-server answers.

Environment: SLIPSTREAM_BIN, the built program.
"""

import shutil
import unittest

from serving import LlamaServing, Serving

HI = [{"role": "user", "content": "We met amber lantern today.\nWhat is the full name of amber?"}]
CHAT = {"messages": HI, "temperature": 0, "max_tokens": 64}


def types_of(value):
    """The keys of objects, and what kind of value each has."""
    if isinstance(value, dict):
        return {key: types_of(item) for key, item in value.items()}
    return "number" if type(value) in (int, float) else type(value).__name__


@unittest.skipUnless(shutil.which("llama-server"), "llama-server is not installed")
class BesideLlamaServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mine = Serving("--name", "needle", "--ctx", "4096", "--kv", "f16", "--parallel", "2")
        cls.stock = LlamaServing("--jinja", "--ctx-size", "4096", "--parallel", "2", "--kv-unified",
                                 "--slots")

    @classmethod
    def tearDownClass(cls):
        assert cls.mine.stop() == 0
        cls.stock.stop()

    def assert_known(self, mine, stock, path):
        """Whatever I answer is there and of the same type, to any depth."""
        if not isinstance(mine, dict):
            return self.assertEqual(mine, stock, path)
        for key, value in mine.items():
            self.assertIn(key, stock, path)
            self.assert_known(value, stock[key], f"{path}.{key}")

    def test_props_have_its_keys_and_types(self):
        (_, mine, _), (_, stock, _) = (server.ask("GET", "/props") for server in (self.mine, self.stock))
        self.assert_known(types_of(mine), types_of(stock), "props")
        for key in ("total_slots", "model_alias", "chat_template", "bos_token", "eos_token", "modalities",
                    "endpoint_slots", "endpoint_props"):
            self.assertEqual(mine[key], stock[key], key)
        self.assertEqual(*(props["default_generation_settings"]["n_ctx"] for props in (mine, stock)))

    def test_slots_that_are_idle_are_the_same(self):
        fresh = [server.ask("GET", "/slots")[1] for server in (self.mine, self.stock)]
        self.assertEqual(*([{key: slot[key] for key in ("id", "n_ctx", "speculative", "is_processing")}
                            for slot in slots] for slots in fresh))

    def test_a_template_becomes_the_same_text(self):
        for messages in (HI, [{"role": "system", "content": "Be brief."}, *HI]):
            self.assertEqual(*(server.post("/apply-template", {"messages": messages})
                               for server in (self.mine, self.stock)))

    def test_timings_have_its_keys(self):
        mine, stock = (server.post("/v1/chat/completions", CHAT)[1] for server in (self.mine, self.stock))
        drafts = {"draft_n", "draft_n_accepted"}  # both name them only if there were some
        self.assertEqual(*(types_of({key: value for key, value in answer["timings"].items() if key not in drafts})
                           for answer in (mine, stock)))
        self.assertEqual(types_of(mine["system_fingerprint"]), types_of(stock["system_fingerprint"]))
        mine, stock = (server.events("/v1/chat/completions", {**CHAT, "timings_per_token": True})
                       for server in (self.mine, self.stock))
        for events in (mine, stock):
            words = [event for event in events if event["choices"][0]["delta"].get("content")]
            self.assertTrue(all("timings" in event for event in words))

    def test_a_message_goes_on_the_same_way(self):
        begun = [*HI, {"role": "assistant", "content": "It is am"}]
        answers = [server.post("/v1/chat/completions", {
            **CHAT, "messages": begun, "continue_final_message": True, "add_generation_prompt": False})
            for server in (self.mine, self.stock)]
        texts = [answer["choices"][0]["message"]["content"] for _, answer in answers]
        self.assertEqual(texts[0], "ber lantern.")
        self.assertEqual(texts[1].removeprefix("It is am"), texts[0])


if __name__ == "__main__":
    unittest.main()
