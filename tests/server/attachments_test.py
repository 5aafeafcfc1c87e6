"""Files that are attached to chats: found by their chat alone, kept over a restart, bounded, removed.

Environment: SLIPSTREAM_BIN, the built program.
"""

import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mcp"))

from mcp_process import call  # noqa: E402
from retrieval_test import NAMES, QUESTION, SENTENCES, content_of  # noqa: E402
from serving import FIXTURES, PROGRAM, Serving  # noqa: E402

ROUTE = "/slipstream/attachments"
HAYSTACK = (FIXTURES / "haystack.txt").read_text().splitlines()
DAY = 24 * 3600


def path_of(chat, name=None):
    return f"{ROUTE}/{chat}" + ("" if name is None else "/" + urllib.parse.quote(name, safe=""))


def page(name, n_lines=12):
    """Prose with one name in it."""
    at = NAMES.index(name)
    lines = [HAYSTACK[(7 * at + k) % len(HAYSTACK)] for k in range(n_lines)]
    lines.insert(n_lines // 2, SENTENCES[at % len(SENTENCES)].format(" ".join(name)))
    return "\n".join(lines) + "\n"


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


class Attaching(unittest.TestCase):
    ARGUMENTS = ()
    CONTEXT = "4096"

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="slipstream-attachments-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name).resolve()
        cls.server = cls.serve()
        cls.addClassCleanup(lambda: cls.server.stop())

    @classmethod
    def serve(cls, *arguments):
        return Serving("--name", "needle", "--ctx", cls.CONTEXT, "--kv", "f16", "--attachments",
                       str(cls.folder / "attached"), *cls.ARGUMENTS, *arguments)

    def attach(self, chat, name, body, headers=None, server=None):
        return (server or self.server).ask("POST", path_of(chat, name), body, headers)[:2]

    def attached(self, chat, name, body, **others):
        status, answer = self.attach(chat, name, body, **others)
        self.assertEqual(status, 200, answer)
        return answer

    def names(self, chat, headers=None, server=None):
        status, answer, _ = (server or self.server).ask("GET", path_of(chat), headers=headers)
        return [one["name"] for one in answer["files"]] if status == 200 else status

    def chat(self, messages, retrieval=None, headers=None, server=None, **fields):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return (server or self.server).post("/v1/chat/completions", {
            "messages": messages, "temperature": 0, "max_tokens": 16, **fields,
            **({} if retrieval is None else {"retrieval": retrieval})}, headers)

    def answer(self, *arguments, **fields):
        status, answer = self.chat(*arguments, **fields)
        self.assertEqual(status, 200, answer)
        return answer

    def prompt(self, messages, retrieval):
        status, answer = self.server.post("/apply-template", {"messages": messages, "retrieval": retrieval})
        self.assertEqual(status, 200, answer)
        return answer["prompt"]


class Chats(Attaching):
    def test_a_fact_of_an_attachment_is_answered_in_its_chat_only(self):
        n_right, n_other, n_without = 0, 0, 0
        for i, name in enumerate(NAMES[:20]):
            answer = self.attached(f"chat{i}", f"page {i}.txt", page(name).encode())
            self.assertGreaterEqual(answer["chunks"], 1)
            question = QUESTION.format(name[0])
            n_right += " ".join(name) in content_of(self.answer(question, {"chat": f"chat{i}"}))
            n_without += " ".join(name) in content_of(self.answer(question))
        for i, name in enumerate(NAMES[:20]):
            other = self.answer(QUESTION.format(name[0]), {"chat": f"chat{(i + 1) % 20}"})
            n_other += " ".join(name) in content_of(other)
        print(f"\nof 20 questions answered: {n_right} in the chat with the file, {n_other} in another, "
              f"{n_without} without")
        self.assertGreaterEqual(n_right, 17)
        self.assertLessEqual(n_other + n_without, 1)

    def test_a_source_leads_to_its_lines(self):
        name = NAMES[21]
        self.attached("sources", "a b#c?.txt", page(name).encode())
        answer = self.answer(QUESTION.format(name[0]), {"chat": "sources"})
        (annotation,) = answer["choices"][0]["message"]["annotations"]
        citation = annotation["url_citation"]
        self.assertEqual(citation["title"], "a b#c?.txt:1-13")
        path, _, lines = citation["url"].partition("#")
        self.assertEqual((path, lines), (path_of("sources", "a b#c?.txt"), "L1-L13"))
        status, text, _ = self.server.ask("GET", path + "?first_line=7&last_line=7")
        self.assertEqual((status, text["text"].strip(), text["n_lines"]), (200, page(name).splitlines()[6], 13))
        self.assertIn(" ".join(name), text["text"])
        events = self.server.events("/v1/chat/completions", {
            "messages": [{"role": "user", "content": QUESTION.format(name[0])}], "temperature": 0,
            "max_tokens": 16, "retrieval": {"chat": "sources"}})
        ends = [event["choices"][0] for event in events if event["choices"]]
        self.assertEqual([one["delta"]["annotations"] for one in ends if one["finish_reason"]], [[annotation]])

    def test_a_short_file_is_given_whole_whatever_is_asked(self):
        """`Summarise` has no word in common with it. It stays, and is not given again."""
        name = NAMES[22]
        text = page(name, 20)
        self.attached("whole", "letter.txt", text.encode())
        first = [{"role": "user", "content": "Summarise"}]
        prompt = self.prompt(first, {"chat": "whole"})
        self.assertIn(f"[1] letter.txt:1-21\n{text}", prompt)
        one = self.answer(first, {"chat": "whole"})
        second = [*first, {"role": "assistant", "content": content_of(one)},
                  {"role": "user", "content": QUESTION.format(name[0])}]
        self.assertEqual(self.prompt(second, {"chat": "whole"}).count("letter.txt:"), 1)
        two = self.answer(second, {"chat": "whole"})
        self.assertIn(" ".join(name), content_of(two))
        n_cached = two["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertGreaterEqual(n_cached, 0.95 * one["usage"]["prompt_tokens"])

    def test_a_long_file_is_searched_and_its_beginning_is_given_once(self):
        """More than the context: 3,000 lines, a fact far below."""
        name = NAMES[23]
        lines = [HAYSTACK[i % len(HAYSTACK)] + f" {i}" for i in range(3000)]
        lines[0] = "A report on nothing."
        lines[2500] = f"The guest was {' '.join(name)}."
        self.attached("long", "report.md", "\n".join(lines).encode())
        first = [{"role": "user", "content": "Summarise"}]
        self.assertIn("[1] report.md:1-", self.prompt(first, {"chat": "long"}))
        self.assertIn("A report on nothing.", self.prompt(first, {"chat": "long"}))
        said = content_of(self.answer(first, {"chat": "long"}))
        second = [*first, {"role": "assistant", "content": said},
                  {"role": "user", "content": QUESTION.format(name[0])}]
        prompt = self.prompt(second, {"chat": "long"})
        self.assertEqual(prompt.count("A report on nothing."), 1)
        self.assertIn(f"The guest was {' '.join(name)}.", prompt)
        self.assertIn(" ".join(name), content_of(self.answer(second, {"chat": "long"})))
        third = [*second, {"role": "assistant", "content": "x"}, {"role": "user", "content": "zyzzyva"}]
        self.assertEqual(self.prompt(third, {"chat": "long"}).count("From the user's files"), 2)

    def test_the_budget_bounds_it(self):
        for i, n_lines in enumerate((5, 60, 3000)):
            self.attached("budget", f"file{i}.txt", page(NAMES[24 + i], n_lines).encode())
        question = QUESTION.format(NAMES[26][0])
        without = self.answer(question)["usage"]["prompt_tokens"]
        for budget in (100, 400, 2000):
            n = self.answer(question, {"chat": "budget", "budget": budget})["usage"]["prompt_tokens"]
            self.assertGreater(n, without, budget)
            self.assertLessEqual(n, without + budget + 40, budget)
        n = self.answer(question, {"chat": "budget"})["usage"]["prompt_tokens"]
        self.assertLessEqual(n, without + 1024 + 40, "a quarter of the context")
        n = self.answer(question, {"chat": "budget", "budget": 0})["usage"]["prompt_tokens"]
        self.assertGreater(n, without, "what was given stays")

    def test_one_line_longer_than_the_budget_is_cut_and_says_so(self):
        self.attached("line", "line.txt", ("word ä " * 4000).encode())
        prompt = self.prompt([{"role": "user", "content": "Summarise"}], {"chat": "line", "budget": 100})
        self.assertIn("[1] line.txt:1-1\nword ä word", prompt)
        self.assertIn("…\n", prompt)

    def test_what_is_removed_or_replaced_leaves_the_conversation(self):
        self.attached("gone", "a.txt", page(NAMES[27]).encode())
        self.attached("gone", "b.txt", page(NAMES[28]).encode())
        first = [{"role": "user", "content": "Summarise"}]
        self.assertIn(" ".join(NAMES[27]), self.prompt(first, {"chat": "gone"}))
        more = [*first, {"role": "assistant", "content": "x"}, {"role": "user", "content": "And now?"}]
        self.assertEqual(self.server.ask("DELETE", path_of("gone", "a.txt"))[0], 200)
        prompt = self.prompt(more, {"chat": "gone"})
        self.assertNotIn(" ".join(NAMES[27]), prompt)
        self.assertIn("[1] b.txt:1-13", prompt)
        self.attached("gone", "b.txt", page(NAMES[29]).encode())
        prompt = self.prompt(more, {"chat": "gone"})
        self.assertNotIn(" ".join(NAMES[28]), prompt)
        self.assertIn(" ".join(NAMES[29]), prompt)

    def test_a_chat_without_files_is_told(self):
        for chat, why in (("nobody", "no files are attached"), ("a/b", "letters, digits")):
            status, refusal = self.chat("amber", {"chat": chat})
            self.assertEqual((status, refusal["error"]["param"]), (400, "retrieval.chat"), refusal)
            self.assertIn(why, refusal["error"]["message"])
        status, refusal = self.chat("amber", {"chat": 7})
        self.assertEqual((status, refusal["error"]["param"]), (400, "retrieval.chat"))
        self.attached("wrong", "a.txt", b"text\n")
        for project in (True, 7, [], "somewhere"):
            status, refusal = self.chat("amber", {"chat": "wrong", "project": project})
            self.assertEqual(status, 400, refusal)
            self.assertIn("retrieval", refusal["error"]["param"])
        self.assertEqual(self.chat("amber", {"chat": "wrong", "project": False})[0], 200)

    def test_other_apis_find_it_as_well(self):
        name = NAMES[30]
        self.attached("apis", "page.txt", page(name).encode())
        question, retrieval = QUESTION.format(name[0]), {"chat": "apis"}
        status, answer = self.server.post("/v1/responses", {
            "input": question, "temperature": 0, "max_output_tokens": 16, "retrieval": retrieval})
        self.assertIn(" ".join(name), answer["output"][-1]["content"][0]["text"])
        status, answer = self.server.post("/v1/messages", {
            "model": "needle", "max_tokens": 16, "temperature": 0, "retrieval": retrieval,
            "messages": [{"role": "user", "content": question}]})
        self.assertIn(" ".join(name), answer["content"][0]["text"])


class Long(Attaching):
    ARGUMENTS = ("--context-overflow", "rescue")
    CONTEXT = "1024"

    def test_a_file_that_left_the_window_comes_back(self):
        """Told in the first turn, asked for after three windows of talk, twice."""
        name = NAMES[36]
        self.attached("long", "letter.txt", page(name, 4).encode())
        messages = [{"role": "user", "content": "Keep this."}, {"role": "assistant", "content": "I see."}]
        self.answer(messages[:1], {"chat": "long"})
        for i in range(24):
            messages += [{"role": "user", "content": f"{i}: " + "The log is the first place to look. " * 12},
                         {"role": "assistant", "content": "I see."}]
        messages.append({"role": "user", "content": QUESTION.format(name[0])})
        prompt = self.prompt(messages, {"chat": "long"})
        self.assertNotIn("Keep this.", prompt)
        self.assertEqual(prompt.count(" ".join(name)), 1)
        self.assertIn("letter.txt:1-5", prompt, "whole")
        first = self.answer(messages, {"chat": "long"})
        self.assertGreater(first["usage"]["prompt_tokens_details"]["dropped_turns"], 1)
        self.assertIn(" ".join(name), content_of(first))
        messages += [{"role": "assistant", "content": content_of(first)}, {"role": "user", "content": "And now?"}]
        self.assertEqual(self.prompt(messages, {"chat": "long"}).count("letter.txt:"), 1, "it is there already")
        events = self.server.events("/v1/chat/completions", {
            "messages": messages, "max_tokens": 4, "stream_options": {"include_usage": True}})
        self.assertGreater(events[-1]["usage"]["prompt_tokens_details"]["dropped_turns"], 1)


class Files(Attaching):
    def test_they_are_listed_read_and_removed(self):
        self.assertEqual(self.names("files"), 404)
        self.attached("files", "b.txt", b"one\ntwo\n")
        answer = self.attached("files", "a.md", b"# One\n")
        self.assertEqual(answer, {"name": "a.md", "bytes": 6, "lines": 1, "chunks": 1})
        self.assertEqual(self.names("files"), ["a.md", "b.txt"])
        status, lines, _ = self.server.ask("GET", path_of("files", "b.txt"))
        self.assertEqual((status, lines["text"], lines["first_line"], lines["last_line"]), (200, "one\ntwo\n", 1, 2))
        for query in ("first_line=2", "first_line=2&last_line=9999999999", "first_line=2&last_line=x"):
            self.assertEqual(self.server.ask("GET", path_of("files", "b.txt") + "?" + query)[1]["text"], "two\n")
        self.assertEqual(self.server.ask("GET", path_of("files", "b.txt") + "?first_line=3")[0], 400)
        self.assertEqual(self.server.ask("GET", path_of("files", "c.txt"))[0], 404)
        self.assertEqual(self.server.ask("DELETE", path_of("files", "c.txt"))[0], 404)
        self.assertEqual(self.server.ask("DELETE", path_of("files", "b.txt"))[0], 200)
        self.assertEqual(self.names("files"), ["a.md"])
        self.assertEqual(self.server.ask("DELETE", path_of("files"))[0], 200)
        self.assertEqual(self.names("files"), 404)
        self.assertEqual(self.server.ask("DELETE", path_of("files"))[0], 404)
        status, limits, _ = self.server.ask("GET", ROUTE)
        self.assertEqual((status, limits["file_bytes_max"], limits["bytes_max"]), (200, 16 << 20, 1 << 30))

    def test_deleting_leaves_nothing_on_the_disk(self):
        self.attached("secret", "a.txt", b"the word zyzzyva stands here\n" * 50)
        self.attached("secret", "b.txt", b"other\n")
        self.server.ask("DELETE", path_of("secret", "a.txt"))
        texts = b"".join(path.read_bytes() for path in (self.folder / "attached").rglob("*") if path.is_file())
        self.assertFalse(b"zyzzyva" in texts)
        self.server.ask("DELETE", path_of("secret"))
        self.assertFalse(list((self.folder / "attached").rglob("secret")))

    def test_only_the_owner_can_read_them(self):
        self.attached("modes", "a.txt", b"text\n")
        self.assertEqual((self.folder / "attached").stat().st_mode & 0o777, 0o700)
        for path in (self.folder / "attached").rglob("*"):
            if path.is_file():
                self.assertEqual(path.stat().st_mode & 0o077, 0, path)

    def test_documents(self):
        def zipped(**files):
            data = io.BytesIO()
            with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text in files.items():
                    archive.writestr(name.replace("__", "/") + ".xml", text)
            return data.getvalue()
        word = '<w:document xmlns:w="x"><w:body><w:p><w:r><w:t>The platypus lays eggs.</w:t></w:r></w:p></w:body></w:document>'
        if shutil.which("docx2txt"):
            self.attached("documents", "a.docx", zipped(word__document=word))
            self.assertIn("platypus", self.server.ask("GET", path_of("documents", "a.docx"))[1]["text"])
            started = time.monotonic()
            bomb = zipped(word__document="<w:t>" + "word " * (40 << 20))
            self.assertLess(len(bomb), 1 << 20)
            status, refusal = self.attach("documents", "bomb.docx", bomb)
            self.assertEqual(status, 415, refusal)
            self.assertLess(time.monotonic() - started, 90)
        self.attached("documents", "a.html", b"<p>The <b>heron</b> stands</p><script>alert(1)</script>")
        self.assertNotIn("alert", self.server.ask("GET", path_of("documents", "a.html"))[1]["text"])

    def test_what_has_no_text_is_refused_with_the_reason(self):
        for name, body, why in (
                ("a.bin", b"\0\1\2" * 100, "binary"), ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "binary"),
                ("a.pdf", b"%PDF-1.7\n" + os.urandom(10_000), ""), ("a.docx", b"PK\3\4" + os.urandom(10_000), ""),
                ("empty.txt", b"", "no text"), (".env", b"A=1\n", "keys or passwords"), ("id_rsa", b"x\n", "keys"),
                ("key.txt", b"-----BEGIN PRIVATE KEY-----\n" + b"A" * 64, "private key"),
                ("long.txt", b"x" * (6 << 20), "larger than 5 MiB"), ("data.js", b"x" * 100_000, "long lines")):
            status, refusal = self.attach("refused", name, body)
            self.assertEqual(status, 415, (name, refusal))
            self.assertIn(why, refusal["error"]["message"])
        self.assertEqual(self.names("refused"), 404)

    def test_hostile_names_and_ids(self):
        outside = self.folder / "outside"
        outside.mkdir()
        for name in ("..", ".", "../../outside/a", "a/b", "a\nb", "a\0b", "a" * 201, "\x7f"):
            self.assertEqual(self.attach("names", name, b"text\n")[0], 400, name)
        self.assertEqual(self.server.ask("POST", f"{ROUTE}/names/%FF", b"text\n")[0], 400)
        self.assertEqual(self.server.ask("POST", f"{ROUTE}/names/", b"text\n")[0], 400)
        self.assertEqual(self.server.ask("POST", f"{ROUTE}/names", b"text\n")[0], 400)
        for chat in ("..", "%2e%2e", "a.b", "a%2Fb", "a" * 65, "%00", "'", "\u00e4".encode().hex() + "."):
            for method in ("GET", "DELETE"):
                self.assertEqual(self.server.ask(method, f"{ROUTE}/{chat}")[0], 400, chat)
            self.assertEqual(self.server.ask("POST", f"{ROUTE}/{chat}/a.txt", b"text\n")[0], 400, chat)
        for name in ("-rf", "'; DROP TABLE file; --", "a\u202egpj.txt", "%s%n", "CON", "漢字.md", " "):
            self.attached("names", name, b"text\n")
        self.assertEqual(len(self.names("names")), 7)
        self.assertEqual(list(outside.iterdir()), [])

    def test_a_body_that_is_too_large_is_a_413(self):
        status, refusal = self.attach("large", "a.txt", b"x" * ((16 << 20) + 1))
        self.assertEqual(status, 413, refusal)
        self.assertIn("16 MiB", refusal["error"]["message"])

    def test_uploads_at_once_are_bounded(self):
        """Whoever is not refused is done; a chat does not wait for them."""
        statuses = []

        def upload(i):
            statuses.append(self.attach(f"many{i}", "a.txt", (HAYSTACK[0] + "\n").encode() * 20_000)[0])
        threads = [threading.Thread(target=upload, args=(i,)) for i in range(40)]
        for thread in threads:
            thread.start()
        self.answer("Who is amber?")
        for thread in threads:
            thread.join()
        self.assertLessEqual(set(statuses), {200, 429})
        self.assertIn(200, statuses)
        done = [self.names(f"many{i}") for i in range(40)]
        self.assertEqual(done.count(["a.txt"]), statuses.count(200))

    def test_methods(self):
        for path, allowed in ((path_of("a", "b"), "POST, GET, HEAD, DELETE"), (ROUTE, "GET, HEAD"),
                              ("/v1/completions", "POST"), ("/", "GET, HEAD")):
            status, _, headers = self.server.ask("PUT", path, b"")
            self.assertEqual((status, headers["Allow"]), (405, allowed), path)

    def test_z_they_are_there_after_a_restart(self):
        name = NAMES[31]
        self.attached("kept", "page.txt", page(name).encode())
        for how in (15, 9):
            self.server.stop(how)
            type(self).server = self.serve()
            self.assertEqual(self.names("kept"), ["page.txt"])
            self.assertIn(" ".join(name), content_of(self.answer(QUESTION.format(name[0]), {"chat": "kept"})))

    def test_zz_idle_chats_are_removed(self):
        self.attached("idle", "a.txt", b"text\n")
        self.attached("used", "a.txt", b"text\n")
        self.server.stop()
        (idle,), (used,) = ((self.folder / "attached").rglob(name) for name in ("idle", "used"))
        os.utime(idle, (time.time() - 31 * DAY,) * 2)
        os.utime(used, (time.time() - 29 * DAY,) * 2)
        type(self).server = self.serve()
        self.assertEqual((self.names("idle"), self.names("used")), (404, ["a.txt"]))
        self.assertFalse(idle.exists())


class Quotas(Attaching):
    ARGUMENTS = ("--attachments-size", "4MiB")

    def test_what_does_not_fit_is_refused_and_nothing_is_removed(self):
        refusals = []
        for i in range(40):
            status, answer = self.attach(f"chat{i}", "a.txt", f"{HAYSTACK[0]} {i}\n".encode() * 1000)
            if status != 200:
                refusals.append((status, answer["error"]["code"], answer["error"]["message"]))
        self.assertTrue(refusals)
        self.assertEqual({refusal[:2] for refusal in refusals}, {(409, "attachments_full")})
        self.assertIn("remove some", refusals[0][2])
        self.assertEqual(self.names("chat0"), ["a.txt"])
        n_bytes = sum(path.stat().st_size for path in (self.folder / "attached").rglob("*") if path.is_file())
        self.assertLess(n_bytes, 5 << 20)
        self.assertEqual(self.server.ask("DELETE", path_of("chat0"))[0], 200)
        self.assertEqual(self.server.ask("DELETE", path_of("chat1"))[0], 200)
        self.attached("another", "a.txt", b"text\n")

    def test_a_chat_has_so_many_files(self):
        statuses = [self.attach("many", f"{i}.txt", b"text\n")[0] for i in range(33)]
        if 409 in statuses[:32]:
            self.skipTest("the other test has filled it")
        self.assertEqual(statuses, [200] * 32 + [409])


class Keys(Attaching):
    @classmethod
    def serve(cls, *arguments):
        keys = cls.folder / "keys.json"
        keys.write_text(json.dumps({"keys": [{"name": "ann", "key": "sk-ann"}, {"name": "bob", "key": "sk-bob"}]}))
        keys.chmod(0o600)
        index = cls.folder / "index.db"
        docs = cls.folder / "docs"
        docs.mkdir(exist_ok=True)
        (docs / "a.txt").write_text("Nothing of note.\n")
        return super().serve("--keys", str(keys), "--mcp", "--mcp-project", str(docs), "--index", str(index))

    def test_another_key_finds_nothing(self):
        name = NAMES[32]
        ann, bob = bearer("sk-ann"), bearer("sk-bob")
        self.attached("chat", "page.txt", page(name).encode(), headers=ann)
        question = QUESTION.format(name[0])
        self.assertIn(" ".join(name), content_of(self.answer(question, {"chat": "chat"}, headers=ann)))
        status, refusal = self.chat(question, {"chat": "chat"}, headers=bob)
        self.assertEqual((status, refusal["error"]["param"]), (400, "retrieval.chat"))
        self.assertNotIn(name[1], json.dumps(refusal))
        for method in ("GET", "DELETE"):
            for path in (path_of("chat"), path_of("chat", "page.txt")):
                self.assertEqual(self.server.ask(method, path, headers=bob)[0], 404)
                self.assertEqual(self.server.ask(method, path)[0], 401)
        self.assertEqual(self.server.ask("POST", path_of("chat", "page.txt"), b"x\n")[0], 401)
        self.attached("chat", "page.txt", b"of bob\n", headers=bob)
        self.assertIn(" ".join(name), content_of(self.answer(question, {"chat": "chat"}, headers=ann)))
        self.assertEqual(self.server.ask("DELETE", path_of("chat"), headers=bob)[0], 200)
        self.assertEqual(self.names("chat", headers=ann), ["page.txt"])
        # What was shown to ann in an earlier turn is not shown to bob.
        self.attached("chat", "page.txt", b"of bob\n", headers=bob)
        answer = self.answer([{"role": "user", "content": question}, {"role": "assistant", "content": "x"},
                              {"role": "user", "content": "And now?"}], {"chat": "chat"}, headers=bob)
        self.assertNotIn(name[1], json.dumps(answer))

    def test_no_other_way_leads_to_them(self):
        name = NAMES[33]
        ann = bearer("sk-ann")
        self.attached("private", "page.txt", page(name).encode(), headers=ann)
        for tool, arguments in (("list_projects", {}), ("search", {"query": " ".join(name)}),
                                ("find_symbol", {"name": name[1]}), ("index_status", {})):
            _, reply, _ = self.server.ask("POST", "/mcp", call(tool, arguments), {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool, **ann})
            self.assertNotIn("page.txt", json.dumps(reply))
            self.assertNotIn("attached", json.dumps(reply))
        found = subprocess.run([PROGRAM, "search", "--index", str(self.folder / "index.db"), *name],
                               capture_output=True, text=True, check=False)
        self.assertNotIn("page.txt", found.stdout)
        for retrieval in ({}, {"project": str(self.folder / "docs")}, None):
            answer = self.answer(QUESTION.format(name[0]), retrieval, headers=ann)
            self.assertNotIn(name[1], content_of(answer))

    def test_folders_and_files_go_together(self):
        ann = bearer("sk-ann")
        fact, other = NAMES[34], NAMES[35]
        (self.folder / "docs" / "fact.txt").write_text(page(fact))
        self.attached("both", "page.txt", page(other).encode(), headers=ann)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            answer = self.answer(QUESTION.format(fact[0]), {"chat": "both", "project": ""}, headers=ann)
            if " ".join(fact) in content_of(answer):
                break
        urls = [one["url_citation"]["url"] for one in answer["choices"][0]["message"]["annotations"]]
        self.assertTrue(any(url.startswith("file://") for url in urls), urls)
        self.assertTrue(any(url.startswith(ROUTE) for url in urls), urls)
        for project in ({"project": False}, {}):
            answer = self.answer(QUESTION.format(fact[0]), {"chat": "both", **project}, headers=ann)
            self.assertNotIn(" ".join(fact), content_of(answer), "folders were not asked for")


class Without(unittest.TestCase):
    def test_a_server_without_them_says_so(self):
        server = Serving("--ctx", "2048", "--kv", "f16")
        self.addCleanup(server.stop)
        for method, path in (("GET", ROUTE), ("GET", path_of("a")), ("POST", path_of("a", "b")), ("DELETE", path_of("a"))):
            status, refusal, _ = server.ask(method, path, b"x" if method == "POST" else None)
            self.assertEqual(status, 404)
            self.assertIn("--attachments", refusal["error"]["message"])
        status, refusal = server.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "x"}], "retrieval": {"chat": "a"}})
        self.assertEqual((status, refusal["error"]["param"]), (400, "retrieval.chat"))
        self.assertIn("--attachments", refusal["error"]["message"])


@unittest.skipUnless(os.geteuid() == 0 and hasattr(os, "unshare"), "needs root, for a small file system of its own")
class FullDisk(unittest.TestCase):
    def test_a_full_disk_refuses_and_keeps_what_is_there(self):
        with tempfile.TemporaryDirectory(prefix="slipstream-attachments-") as folder:
            os.unshare(os.CLONE_NEWNS)
            for command in (["mount", "--make-rprivate", "/"], ["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder]):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    self.skipTest(done.stderr)
            server = Serving("--ctx", "2048", "--kv", "f16", "--attachments", folder + "/attached")
            try:
                status, answer, _ = server.ask("POST", path_of("one", "a.txt"), b"the heron stands\n")
                self.assertEqual(status, 200, answer)
                text = "\n".join(f"{line} {i}" for i, line in enumerate(HAYSTACK * 200)).encode()
                for chat in ("one", "two"):
                    status, refusal, _ = server.ask("POST", path_of(chat, "b.txt"), text)
                    self.assertEqual(status, 507, refusal)
                    self.assertIn("full", refusal["error"]["message"])
                self.assertEqual(server.ask("GET", path_of("two"))[0], 404)
                self.assertEqual([one["name"] for one in server.ask("GET", path_of("one"))[1]["files"]], ["a.txt"])
                subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
                self.assertEqual(server.ask("POST", path_of("two", "b.txt"), text)[0], 200)
                self.assertEqual(server.ask("GET", path_of("one", "a.txt"))[1]["text"], "the heron stands\n")
            finally:
                server.stop()
                subprocess.run(["umount", folder], check=False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
