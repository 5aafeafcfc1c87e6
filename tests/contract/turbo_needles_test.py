"""Needles at every trained depth: does a compressed cache answer as f16 does, question by question?

Five names are planted evenly in a text and asked for one by one, greedily, through the packaged
llama-server. The test asks a few questions; --table asks them all, of every cache, and prints the
table of docs/quality.md (a few minutes).
"""

import argparse
import random
import sys
import unittest

import stock

DEPTHS = (256, 512, 1024, 2048, 3072)  # trained to 3,072 tokens
CONTEXT = 4096
NAMES_PER_TEXT = 5
# What is no text of the haystack: the planted sentences, the question, the chat template.
TOKENS_PER_NAME, TOKENS_OF_QUESTION = 16, 40

# Each cache: (scheme of the device, further arguments).
CACHES = {
    "f16": (None, []),
    "q4_0": (None, ["-ctk", "q4_0", "-ctv", "q4_0"]),
    **{scheme: (scheme, []) for scheme in ("turbo8", "turbo8v4", "turbo4", "turbo3")},
}

SENTENCES = ("We met {} today.", "The guest was {}.", "A letter from {} came.",
             "Then {} called again.")
# Everyday words; none is in the haystack, so that no name can be guessed from it.
WORDS = """
    acorn anchor apple apron arrow autumn badger baker banjo barley barn basil basket beach
    berry blanket boat bottle bread breeze brick bridge broom brush bucket butter button cabin
    camel candle canvas carpet carrot castle cedar cherry chimney circus clay cliff clover
    coffee comet copper coral cotton cousin cradle crane cricket crown curtain daisy desert
    diamond dolphin donkey dragon eagle ember engine feather fiddle flute forest fountain fox
    garden garlic ginger glove goose grape hammer harbor harvest hazel helmet honey horse island
    ivory jacket jungle kettle kitchen ladder lake lantern lemon lily linen lizard lobster maple
    marble meadow melon mirror monkey mountain mustard needle nest oak ocean olive onion orange
    orchard oven owl paint palace panda parrot pebble pencil pepper pigeon pillow pine planet
    plum pocket pond potato pumpkin rabbit raven ribbon river robin rocket saddle salmon salt
    scarf shell shepherd silver spider spoon stable star storm sugar sunset swan table tailor
    temple thunder ticket tiger tomato tower train tulip tunnel turtle valley velvet violin
    wagon walnut whale wheat willow window winter wolf yellow zebra
""".split()


class Questions:
    """The same texts and names for every cache; a server is asked only for its tokenizer."""

    def __init__(self, server, depths, n_texts):
        self.random = random.Random(7)
        self.server = server
        self.haystack = stock.HAYSTACK.read_text()
        # (depth, the name that is right, the text with its question)
        self.all = [question for depth in depths for _ in range(n_texts)
                    for question in self.about_one_text(depth)]

    def about_one_text(self, depth):
        words = self.random.sample(WORDS, 2 * NAMES_PER_TEXT)
        names = [f"{first} {last}" for first, last in zip(words[::2], words[1::2])]
        n_hay = depth - NAMES_PER_TEXT * TOKENS_PER_NAME - TOKENS_OF_QUESTION
        text = self.hay(n_hay // (NAMES_PER_TEXT + 1))
        for name in names:
            text += "\n" + self.random.choice(SENTENCES).format(name) + "\n"
            text += self.hay(n_hay // (NAMES_PER_TEXT + 1))
        for name in names:
            yield depth, name, f"{text}\nWhat is the full name of {name.split()[0]}?"

    def hay(self, n_tokens):
        """A piece of the haystack from a random place on; after its end its beginning follows."""
        start = self.random.randrange(len(self.haystack))
        piece = (self.haystack[start:] + self.haystack)[:8 * n_tokens]
        tokens = self.server.post("/tokenize", {"content": piece})["tokens"][:n_tokens]
        assert len(tokens) == n_tokens, "the haystack is too short"
        return self.server.post("/detokenize", {"tokens": tokens})["content"]


def cache_server(cache):
    scheme, arguments = CACHES[cache]
    # One thread: two would wait for each other wherever something else runs too.
    return stock.server(stock.NEEDLE_MODEL, "-c", CONTEXT, "-np", 1, "-t", 1, *arguments,
                        scheme=scheme)


def ask(server, questions):
    """The answers, in the order of the questions."""
    replies = [server.chat(text, max_tokens=40) for _, _, text in questions]
    return [(reply["choices"][0]["message"]["content"] or "").strip() for reply in replies]


def answers_of(caches, depths, n_texts):
    """The questions, and for each cache the answers to them."""
    answers = {}
    with cache_server("f16") as server:
        questions = Questions(server, depths, n_texts).all
        answers["f16"] = ask(server, questions)
    for cache in caches:
        if cache != "f16":
            with cache_server(cache) as server:
                answers[cache] = ask(server, questions)
    return questions, answers


def n_right(questions, answers):
    return sum(name in answer for (_, name, _), answer in zip(questions, answers))


def n_same(answers, others):
    return sum(a == b for a, b in zip(answers, others))


def print_table(n_texts):
    questions, answers = answers_of(CACHES, DEPTHS, n_texts)
    print("| KV cache |" + "".join(f" {depth} |" for depth in DEPTHS) + " all | as f16 |")
    print("|---|" + "---|" * (len(DEPTHS) + 2))
    for cache, given in answers.items():
        cells = []
        for depth in DEPTHS:
            at_depth = [i for i, question in enumerate(questions) if question[0] == depth]
            cells.append(n_right([questions[i] for i in at_depth], [given[i] for i in at_depth]))
        same = n_same(given, answers["f16"])
        print(f"| {cache} |" + "".join(f" {n} |" for n in (*cells, sum(cells), same)))
    print(f"\nof {len(questions) // len(DEPTHS)} questions per depth, {len(questions)} in all")


class Needles(unittest.TestCase):
    # Of 25 questions: the share of the table, and two standard deviations more, because another
    # processor's f16 is not the same to the last bit. turbo2 differs in nine.
    MAY_DIFFER = {"turbo8": 1, "turbo8v4": 2, "turbo4": 3}

    def test_answers_are_those_of_f16(self):
        questions, answers = answers_of(self.MAY_DIFFER, DEPTHS, n_texts=1)
        n_right_f16 = n_right(questions, answers["f16"])
        # Where f16 itself does not know, agreement says little.
        self.assertGreaterEqual(n_right_f16, len(questions) - 3)
        for cache, n in self.MAY_DIFFER.items():
            given = answers[cache]
            right, same = n_right(questions, given), n_same(given, answers["f16"])
            print(f"{cache}: {right} right, {same} as f16, of {len(questions)}")
            with self.subTest(cache):
                self.assertGreaterEqual(same, len(questions) - n)
                self.assertGreaterEqual(right, n_right_f16 - n)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Needles through llama-server, per KV cache.")
    parser.add_argument("--table", action="store_true", help="print the table of docs/quality.md")
    parser.add_argument("--texts", type=int, default=3, help="texts per depth, five questions each")
    options, rest = parser.parse_known_args()
    if options.table:
        print_table(options.texts)
    else:
        unittest.main(argv=[sys.argv[0], *rest])
