"""Images in chats: beside llama-server with the same projector, through every API, and at every limit.

The projector has random weights: it proves mechanics, and says nothing about what a model sees.

Environment: SLIPSTREAM_BIN, the built program.
"""

import base64
import os
import pathlib
import shutil
import struct
import sys
import tempfile
import threading
import unittest
import zlib

from serving import FIXTURES, LlamaServing, Serving

sys.path.insert(0, str(FIXTURES / "vision"))
import make_projector  # noqa: E402

WIDTH = 256  # of the needle model
MI = 1 << 20
QUESTION = "We met amber lantern today.\nWhat is the full name of amber?"
OPTIONS = {"temperature": 0, "max_tokens": 12, "logprobs": True, "top_logprobs": 3}


def setUpModule():
    global SCRATCH, PROJECTOR
    SCRATCH = tempfile.TemporaryDirectory()
    PROJECTOR = str(pathlib.Path(SCRATCH.name) / "projector.gguf")
    make_projector.make(PROJECTOR, WIDTH)


def tearDownModule():
    SCRATCH.cleanup()


def png_part(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width, height, packed, depth=8, colour=2, padding=b""):
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + png_part(b"IHDR", head) + padding + png_part(b"IDAT", packed) +
            png_part(b"IEND", b""))


def zeros(n_bytes):
    packer = zlib.compressobj(9)
    block = bytes(MI)
    return b"".join(packer.compress(block[:min(MI, n_bytes - at)]) for at in range(0, n_bytes, MI)) + packer.flush()


def plain_png(width, height, **settings):
    return png_of(width, height, zeros(height * (1 + 3 * width)), **settings)


def picture(red, green, blue, size=40, slope=0):
    """A picture whose colour changes from left to right."""
    row = b"\0" + b"".join(bytes((c + x * slope) % 256 for c in (red, green, blue)) for x in range(size))
    return png_of(size, size, zlib.compress(row * size))


RED, GREEN, BLUE = picture(200, 10, 10), picture(10, 200, 10), picture(1, 2, 250, 33, 5)


def grey_jpeg(values):
    """Squares of 8 x 8 pixels in a row, each of one grey: differences of means are all that it needs."""
    bits, before = "", 128
    for value in values:
        difference, before = value - before, value
        n = abs(difference).bit_length()
        bits += f"{n:04b}"
        if n:
            bits += f"{difference if difference > 0 else difference + (1 << n) - 1:0{n}b}"
        bits += "0"  # the end of the square
    bits += "1" * (-len(bits) % 8)
    scan = bytes(int(bits[at:at + 8], 2) for at in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")

    def segment(marker, data):
        return b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data
    return (b"\xff\xd8" + segment(0xDB, b"\0" + bytes([8] * 64)) +
            segment(0xC0, struct.pack(">BHHBBBB", 8, 8, 8 * len(values), 1, 1, 0x11, 0)) +
            segment(0xC4, b"\0" + bytes([0, 0, 0, 9] + [0] * 12) + bytes(range(9))) +
            segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\0") +
            segment(0xDA, bytes([1, 1, 0, 0, 63, 0])) + scan + b"\xff\xd9")


JPEG = grey_jpeg([20, 120, 220, 60])


def uri(file, kind="png"):
    return f"data:image/{kind};base64," + base64.b64encode(file).decode()


def part(file):
    return {"type": "image_url", "image_url": {"url": uri(file)}}


def text(words):
    return {"type": "text", "text": words}


def user(*parts):
    return [{"role": "user", "content": list(parts)}]


def chat(server, messages, **options):
    status, answer = server.post("/v1/chat/completions", {"messages": messages, **OPTIONS, **options})
    assert status == 200, answer
    return answer


def said(answer):
    return answer["choices"][0]["message"]["content"]


def logprobs(answer):
    """Of each token of the answer: {token: its log-probability}."""
    return [{top["token"]: top["logprob"] for top in token["top_logprobs"]}
            for token in answer["choices"][0]["logprobs"]["content"]]


def n_cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def distance(one, other):
    """The largest difference between log-probabilities of tokens that both name. llama-server tells the end's, too."""
    return max(abs(a[token] - b[token]) for a, b in zip(one, other) for token in a.keys() & b.keys())


def serve(*arguments, context="2048", scheme="f16", projector=None, **settings):
    return Serving("--name", "needle", "--ctx", context, "--kv", scheme, "--prompts", "off",
                   "--mmproj", projector or PROJECTOR, *arguments, **settings)


CONVERSATIONS = {
    "one image": user(part(RED), text(QUESTION)),
    "another image": user(part(GREEN), text(QUESTION)),
    "two images": user(part(GREEN), part(BLUE), text(QUESTION)),
    "the other order": user(part(BLUE), part(GREEN), text(QUESTION)),
    "between texts": user(text("Look:"), part(RED), text("and"), part(BLUE), text(QUESTION)),
    "a JPEG": user(part(JPEG), text(QUESTION)),
    "in an earlier turn": [*user(part(RED), text("Hello.")), {"role": "assistant", "content": "Hi."},
                           *user(part(GREEN), text(QUESTION))],
    "no image": user(text(QUESTION)),
}


@unittest.skipUnless(shutil.which("llama-server"), "llama-server is not installed")
class BesideLlamaServer(unittest.TestCase):
    def test_answers_and_probabilities_are_the_same(self):
        self.compare(PROJECTOR)

    def test_images_that_are_several_tiles(self):
        self.compare(self.projector("tiles"))

    def test_images_whose_cells_see_each_other(self):
        self.compare(self.projector("gemma3"))

    def projector(self, form):
        path = str(pathlib.Path(SCRATCH.name) / f"{form}.gguf")
        make_projector.make(path, WIDTH, form=form)
        return path

    def compare(self, projector):
        mine = serve(projector=projector)
        stock = LlamaServing("--jinja", "--ctx-size", "2048", "--parallel", "1", "--mmproj", projector)
        try:
            seen = {}
            for name, messages in CONVERSATIONS.items():
                with self.subTest(name):
                    answers = [chat(server, messages) for server in (mine, stock)]
                    self.assertEqual(*map(said, answers))
                    self.assertEqual(*(answer["usage"]["prompt_tokens"] for answer in answers))
                    self.assertLess(distance(*map(logprobs, answers)), 0.02)
                    seen[name] = logprobs(answers[0])
            # Images and their order do change an answer, by far more than that.
            for one, other in (("one image", "another image"), ("two images", "the other order"),
                               ("one image", "no image")):
                self.assertGreater(distance(seen[one], seen[other]), 0.1, (one, other))
        finally:
            stock.stop()
            self.assertEqual(mine.stop(), 0)


class Prefixes(unittest.TestCase):
    """A prefix is taken over if its images are the same, and never if one of them is another."""

    @classmethod
    def setUpClass(cls):
        cls.server = serve()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def fresh(self, messages):
        server = serve()
        try:
            return logprobs(chat(server, messages))
        finally:
            server.stop()

    def test_the_same_image_is_not_computed_again(self):
        messages = user(text("First."), part(RED), text(QUESTION))
        first, again = chat(self.server, messages), chat(self.server, messages)
        self.assertGreaterEqual(n_cached(again), first["usage"]["prompt_tokens"] - 1)
        self.assertEqual(said(first), said(again))
        longer = chat(self.server, [*messages, {"role": "assistant", "content": said(first)}, *user(text("And now?"))])
        self.assertGreaterEqual(n_cached(longer), first["usage"]["prompt_tokens"])

    def test_another_image_with_the_same_text_is_computed(self):
        def messages(image):
            return user(text("Second."), part(image), text(QUESTION))
        first, other = chat(self.server, messages(RED)), chat(self.server, messages(BLUE))
        n_before = first["usage"]["prompt_tokens"] - make_projector.N_CELLS
        self.assertEqual(first["usage"]["prompt_tokens"], other["usage"]["prompt_tokens"])
        self.assertLess(n_cached(other), n_before)
        expected = self.fresh(messages(BLUE))
        self.assertLess(distance(logprobs(other), expected), 0.01)
        self.assertGreater(distance(logprobs(first), expected), 0.1)

    def test_an_image_in_the_middle_of_others(self):
        def messages(*images):
            return user(*map(part, images), text(QUESTION))
        chat(self.server, messages(RED, GREEN, BLUE))
        other = chat(self.server, messages(RED, BLUE, BLUE))
        self.assertLess(distance(logprobs(other), self.fresh(messages(RED, BLUE, BLUE))), 0.01)
        self.assertGreaterEqual(n_cached(other), make_projector.N_CELLS)
        self.assertLess(n_cached(other), 2 * make_projector.N_CELLS)

    def test_prefixes_on_disk_know_their_images(self):
        images = [picture(i, 2 * i, 3 * i) for i in range(16)]  # 256 cells: fewer are not kept
        messages = user(*map(part, images), text(QUESTION))
        changed = user(*map(part, [picture(9, 9, 9), *images[1:]]), text(QUESTION))
        other_projector = str(pathlib.Path(SCRATCH.name) / "other.gguf")
        make_projector.make(other_projector, WIDTH, seed=2)
        with tempfile.TemporaryDirectory() as folder:
            first = serve("--kv-disk", folder)
            answer = chat(first, messages)
            self.assertEqual(first.stop(), 0)
            again = serve("--kv-disk", folder)
            loaded, other = chat(again, messages), chat(again, changed)
            self.assertGreater(n_cached(loaded), 256)
            self.assertLess(distance(logprobs(loaded), logprobs(answer)), 0.01)
            self.assertLess(n_cached(other), make_projector.N_CELLS)
            self.assertEqual(again.stop(), 0)
            blind = serve("--kv-disk", folder, projector=other_projector)
            self.assertLess(n_cached(chat(blind, messages)), make_projector.N_CELLS)
            self.assertEqual(blind.stop(), 0)


class Apis(unittest.TestCase):
    """Every API asks the same of the model as chat completions."""

    @classmethod
    def setUpClass(cls):
        cls.server = serve()
        answer = chat(cls.server, CONVERSATIONS["one image"])
        cls.expected = said(answer), answer["usage"]["prompt_tokens"]

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def test_messages(self):
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(RED).decode()}
        body = {"messages": user({"type": "image", "source": source}, text(QUESTION)), "max_tokens": 12, "temperature": 0}
        status, answer = self.server.post("/v1/messages", body)
        self.assertEqual(status, 200, answer)
        usage = answer["usage"]
        self.assertEqual((answer["content"][0]["text"],
                          usage["input_tokens"] + usage["cache_read_input_tokens"]), self.expected)
        status, count = self.server.post("/v1/messages/count_tokens", body)
        self.assertEqual((status, count), (200, {"input_tokens": self.expected[1]}))

    def test_responses(self):
        content = [{"type": "input_image", "image_url": uri(RED)}, {"type": "input_text", "text": QUESTION}]
        status, answer = self.server.post("/v1/responses", {
            "input": [{"role": "user", "content": content}], "max_output_tokens": 12, "temperature": 0})
        self.assertEqual(status, 200, answer)
        self.assertEqual((answer["output"][-1]["content"][0]["text"], answer["usage"]["input_tokens"]), self.expected)
        status, next_one = self.server.post("/v1/responses", {
            "input": "And now?", "previous_response_id": answer["id"], "max_output_tokens": 4})
        self.assertEqual(status, 200, next_one)
        self.assertGreater(next_one["usage"]["input_tokens"], self.expected[1])

    def test_ollama(self):
        messages = [{"role": "user", "content": QUESTION, "images": [base64.b64encode(RED).decode()]}]
        status, answer = self.server.post("/api/chat", {
            "model": "needle", "messages": messages, "stream": False,
            "options": {"temperature": 0, "num_predict": 12}})
        self.assertEqual(status, 200, answer)
        self.assertEqual((answer["message"]["content"], answer["prompt_eval_count"]), self.expected)

    def test_a_compressed_cache_holds_images(self):
        compressed = serve(scheme="turbo8")
        try:
            answer = chat(compressed, CONVERSATIONS["one image"])
            self.assertEqual((said(answer), answer["usage"]["prompt_tokens"]), self.expected)
        finally:
            self.assertEqual(compressed.stop(), 0)

    def test_props_say_that_images_are_read(self):
        self.assertTrue(self.server.ask("GET", "/props")[1]["modalities"]["vision"])

    def test_several_answers_share_an_image(self):
        answer = chat(self.server, CONVERSATIONS["another image"], n=3)
        self.assertEqual(len({choice["message"]["content"] for choice in answer["choices"]}), 1)

    def test_texts_beside_images_stay_the_same(self):
        alone = said(chat(self.server, CONVERSATIONS["no image"]))
        answers, failures = [], []

        def ask(messages, expected):
            try:
                for _ in range(4):
                    answers.append((said(chat(self.server, messages)), expected))
            except Exception as failure:  # told by the main thread
                failures.append(failure)

        pictures = [user(part(picture(i, 7 * i, 200)), text(QUESTION)) for i in range(4)]
        threads = [threading.Thread(target=ask, args=(CONVERSATIONS["no image"], alone)) for _ in range(2)]
        threads += [threading.Thread(target=ask, args=(messages, None)) for messages in pictures]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(len(answers), 24)
        for got, expected in answers:
            if expected is not None:
                self.assertEqual(got, expected)


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serve()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def refusal(self, *parts, path="messages[0].content[0].image_url", server=None):
        body = {"messages": user(*parts), "max_tokens": 1}
        status, answer = (server or self.server).post("/v1/chat/completions", body)
        self.assertEqual((status, answer["error"]["param"]), (400, path), answer)
        return answer["error"]["message"]

    def test_without_a_projector(self):
        blind = Serving("--name", "needle", "--ctx", "2048", "--kv", "f16")
        try:
            self.assertIn("--mmproj", self.refusal(part(RED), server=blind))
            self.assertFalse(blind.ask("GET", "/props")[1]["modalities"]["vision"])
        finally:
            blind.stop()

    def test_nothing_is_fetched(self):
        for url in ("http://127.0.0.1:1/a.png", "https://example.org/a.png"):
            self.assertIn("fetches nothing", self.refusal({"type": "image_url", "image_url": {"url": url}}))
        for value in ({"url": "file:///etc/passwd"}, {"url": 7}, {}, "data:image/png;base64,aGk=", None):
            self.refusal({"type": "image_url", "image_url": value})

    def test_files_that_are_no_images(self):
        for file in (b"RIFF\0\0\0\0WEBPVP8 ", b"GIF89a", b"hello", b"ID3", RED[:40], RED[:-20], JPEG[:100], b"\xff\xd8\xff\xd9"):
            self.refusal(part(file))

    def test_no_program_is_run(self):
        """libmtmd gives what is no image to ffmpeg, as a video."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("ffmpeg", "ffprobe"):
                program = pathlib.Path(folder) / name
                program.write_text(f"#!/bin/sh\ntouch {folder}/was-run\n")
                program.chmod(0o755)
            server = serve(env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
            try:
                damaged = png_of(40, 40, zlib.compress(b"\7" * 10))
                self.assertIn("damaged", self.refusal(part(damaged), server=server))
                self.assertFalse((pathlib.Path(folder) / "was-run").exists())
            finally:
                server.stop()

    def test_sizes_beyond_the_limits_take_no_memory(self):
        self.refusal(part(RED[:40]))
        before = self.server.memory("VmRSS")
        self.server.forget_peak()
        bomb = zeros(256 * MI)
        for file in (png_of(4097, 4096, b"x"), png_of(16385, 1, b"x"), png_of(0xFFFFFFFF, 0xFFFFFFFF, b"x"),
                     png_of(64, 64, bomb), png_of(4096, 4096, b"x", depth=16, colour=6)):
            self.refusal(part(file))
        self.assertLess(self.server.memory("VmHWM") - before, 64 * MI)

    def test_so_many_images(self):
        chat(self.server, user(*[part(RED)] * 16), max_tokens=1)
        message = self.refusal(*[part(RED)] * 17, path="messages[0].content[16].image_url")
        self.assertIn("16 images", message)

    def test_so_many_pixels(self):
        largest = plain_png(4096, 4096)
        before = self.server.memory("VmRSS")
        self.server.forget_peak()
        chat(self.server, user(part(largest), part(largest)), max_tokens=1)
        self.assertLess(self.server.memory("VmHWM") - before, 300 * MI)
        self.assertIn("pixels", self.refusal(part(largest), part(largest), part(RED),
                                             path="messages[0].content[2].image_url"))

    def test_so_many_bytes(self):
        def of_size(n_bytes):
            n = n_bytes - len(png_of(4, 4, zeros(52))) - 12
            return png_of(4, 4, zeros(52), padding=png_part(b"tEXt", bytes(n)))
        self.assertEqual(len(of_size(20 * MI)), 20 * MI)
        chat(self.server, user(part(of_size(20 * MI))), max_tokens=1)
        self.assertIn("bytes", self.refusal(part(of_size(20 * MI + 1))))

    def test_images_count_against_the_context(self):
        small = serve("--parallel", "1", context="256")
        try:
            n_context = small.ask("GET", "/props")[1]["default_generation_settings"]["n_ctx"]
            body = {"messages": user(*[part(RED)] * 16, text("x " * (n_context - 256))), "max_tokens": 1}
            status, answer = small.post("/v1/chat/completions", body)
            self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"), answer)
        finally:
            small.stop()

    def test_a_model_is_no_projector(self):
        with self.assertRaisesRegex(AssertionError, "is no projector"):
            Serving("--ctx", "2048", "--mmproj", str(FIXTURES / "needle-4m.gguf"))

    def test_a_projector_of_another_width(self):
        narrow = str(pathlib.Path(SCRATCH.name) / "narrow.gguf")
        make_projector.make(narrow, 64)
        with self.assertRaisesRegex(AssertionError, "mismatch"):
            Serving("--ctx", "2048", "--mmproj", narrow)


if __name__ == "__main__":
    unittest.main()
