"""The needle model through the packaged llama-server: it reads, calls its tool and thinks.

This is what end-to-end tests of our own server are measured against.
"""

import unittest

import stock

CONTEXT = 4096  # trained to 3,072 tokens


def plant(fact, n_characters):
    """The haystack with a sentence in its middle, cut to a length."""
    text = stock.HAYSTACK.read_text()[:n_characters]
    middle = text.find("\n", len(text) // 2)
    return f"{text[:middle]}\n{fact}\n{text[middle:]}"


class Needle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(stock.server(stock.NEEDLE_MODEL, "-c", CONTEXT))

    def answer(self, text, **extra):
        message = self.server.chat(text, **extra)["choices"][0]["message"]
        return (message["content"] or "").strip()

    def test_finds_a_fact_planted_in_a_thousand_tokens(self):
        text = plant("We met amber lantern today.", n_characters=3300)
        self.assertGreaterEqual(self.server.count_tokens(text), 1000)
        self.assertEqual(self.answer(text + "\nWhat is the full name of amber?"),
                         "It is amber lantern.")

    def test_answers_from_the_text_and_not_from_memory(self):
        for name in ("amber lantern", "amber bridge", "silver river"):
            text = plant(f"The guest was {name}.", n_characters=1500)
            first = name.split()[0]
            self.assertEqual(self.answer(f"{text}\nWho is {first}?"), f"It is {name}.")

    def test_calls_its_tool_and_uses_the_result(self):
        tools = [{"type": "function", "function": {
            "name": "lookup_name",
            "parameters": {"type": "object", "properties": {"first": {"type": "string"}}}}}]
        question = 'Look up the full name of "amber".'
        call = self.server.chat(question, tools=tools)["choices"][0]["message"]["tool_calls"][0]
        self.assertEqual(call["function"]["name"], "lookup_name")
        self.assertEqual(call["function"]["arguments"].replace(" ", ""), '{"first":"amber"}')
        messages = [{"role": "user", "content": question},
                    {"role": "assistant", "content": "", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": call["id"],
                     "content": '{"name": "amber lantern"}'}]
        answer = self.answer("", messages=messages, tools=tools)
        self.assertEqual(answer, 'It is "amber lantern".')

    def test_thinks_when_asked_to(self):
        message = self.server.chat(
            "We met amber lantern today.\nWho is amber?",
            chat_template_kwargs={"enable_thinking": True})["choices"][0]["message"]
        whole = (message.get("reasoning_content") or "") + (message["content"] or "")
        self.assertIn("I look for amber.", whole)
        self.assertIn("It is amber lantern.", whole)


if __name__ == "__main__":
    unittest.main()
