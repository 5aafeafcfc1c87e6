"""`slipstream index` and `slipstream search` as a person uses them, and what they do when they are ended or the disk is full.

Environment: SLIPSTREAM_BIN, the built program.
"""

import contextlib
import io
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
import zipfile

PROGRAM = os.environ["SLIPSTREAM_BIN"]
CTAGS = pathlib.Path("/usr/bin/ctags-universal")


class Folder(unittest.TestCase):
    """A project in a folder of its own, and an index beside it."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        self.root = self.folder / "project"
        self.root.mkdir()
        self.index = self.folder / "index.db"

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def slipstream(self, *words, **settings):
        return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False,
                              env={**os.environ, "SLIPSTREAM_INDEX": str(self.index)}, timeout=300, **settings)

    def add(self, root=None):
        done = self.slipstream("index", "add", root or self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def found(self, *words):
        """The places of a query; [] if nothing answers it."""
        done = self.slipstream("search", "--json", *words)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def paths(self, *words):
        return [place["path"] for place in self.found(*words)]

    def check_integrity(self):
        with contextlib.closing(sqlite3.connect(self.index)) as index:
            tables = [name for name, in index.execute("SELECT name FROM sqlite_master WHERE name GLOB 'chunk_words_[0-9]'")]
            # The full-text tables have a tokenizer that only slipstream knows: their shadow tables are checked.
            self.assertEqual(index.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            for table in tables:
                n_chunks, = index.execute("SELECT count(*) FROM chunk").fetchone()
                n_sizes, = index.execute(f"SELECT count(*) FROM {table}_docsize").fetchone()
                self.assertEqual(n_chunks, n_sizes)

    @contextlib.contextmanager
    def watching(self):
        watch = subprocess.Popen([PROGRAM, "index", "watch"], stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, "SLIPSTREAM_INDEX": str(self.index)})
        try:
            watch.stderr.readline()  # it has begun
            yield watch
        finally:
            watch.send_signal(signal.SIGTERM)
            self.assertEqual(watch.wait(timeout=30), 0)
            watch.stderr.close()


class Commands(Folder):
    def test_add_search_change_and_remove(self):
        self.write("src/parser.c", "/* Reads a header. */\nint parse_http_header(const char *line) {\n  return 0;\n}\n")
        self.write("docs/cats.md", "# Cats\n\nCats sleep on warm windowsills.\n")
        self.assertIn("2 files", self.add())
        self.assertEqual(self.paths("parseHttpHeader"), ["src/parser.c"])
        self.assertEqual(self.paths("where", "does", "a", "cat", "sleep"), ["docs/cats.md"])
        place, = self.found("parse_http_header")
        self.assertEqual((place["first_line"], place["last_line"]), (1, 4))
        if CTAGS.exists():
            self.assertTrue(place["defines_name"])
        self.assertFalse(place["is_changed"])

        self.write("docs/cats.md", "# Dogs\n\nDogs bark at the postman.\n")
        self.assertEqual(self.paths("postman"), ["docs/cats.md"])  # it looks for changes first
        self.assertEqual(self.paths("windowsills"), [])
        self.assertEqual(self.slipstream("index", "list").stdout, f"{self.root}\n")
        self.assertIn("files       2", self.slipstream("index", "status").stdout)
        self.assertEqual(self.slipstream("index", "rm", "-y", self.root).returncode, 0)
        self.assertEqual(self.slipstream("index", "list").stdout, "")
        self.assertTrue((self.root / "docs/cats.md").exists())

    def test_nothing_relevant_is_an_answer(self):
        self.write("a.md", "Cats sleep on warm windowsills.\n")
        self.add()
        done = self.slipstream("search", "quantum", "chromodynamics")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("nothing in the index answers this", done.stderr)

    def test_wrong_command_lines_are_named(self):
        for words, expected in ((["index"], "action"), (["index", "frob"], "frob"), (["index", "add"], "name a folder"),
                                (["index", "list", "/x"], "takes no folder")):
            done = self.slipstream(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(expected, done.stderr)

    def test_what_cannot_be_had_says_what_to_do(self):
        done = self.slipstream("search", "cats")
        self.assertEqual(done.returncode, 2)
        self.assertIn("slipstream index add FOLDER", done.stderr)
        for folder, expected in (("/etc", "folder of the system"), ("/nonexistent", "there is no folder")):
            done = self.slipstream("index", "add", folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn(expected, done.stderr)

    def test_git_decides_what_belongs_to_a_repository(self):
        git = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
        self.write(".gitignore", "ignored/\n")
        self.write("ignored/a.txt", "walrus")
        self.write("kept.txt", "octopus")
        self.write("new.txt", "penguin")
        subprocess.run([*git, "add", "kept.txt"], check=True)
        self.add()
        self.assertEqual(self.paths("octopus"), ["kept.txt"])
        self.assertEqual(self.paths("penguin"), ["new.txt"])
        self.assertEqual(self.paths("walrus"), [])
        # Another branch, and back: the texts are known.
        subprocess.run([*git, "commit", "-qam", "one"], check=True)
        subprocess.run([*git, "checkout", "-qb", "other"], check=True)
        self.write("kept.txt", "squid")
        subprocess.run([*git, "commit", "-qam", "two"], check=True)
        self.assertIn("1 new", self.add())
        subprocess.run([*git, "checkout", "-q", "main"], check=True)
        self.assertIn(" 0 new", self.add())
        self.assertEqual(self.paths("octopus"), ["kept.txt"])
        self.assertEqual(self.paths("squid"), [])

    def test_secrets_are_never_read(self):
        self.write(".env", "PASSWORD=hippopotamus\n")
        self.write("deploy/server.pem", "hippopotamus\n")
        self.write(".ssh/config", "hippopotamus\n")
        self.write("notes.txt", "hippopotamus\n-----BEGIN RSA PRIVATE KEY-----\n" + "A" * 64 + "\n")
        self.write("zoo.txt", "hippopotamus\n")
        self.assertIn("3 by their names", self.add())
        self.assertEqual(self.paths("hippopotamus"), ["zoo.txt"])
        self.assertNotIn(b"PASSWORD", self.index.read_bytes())


def pdf_of(text):
    """One page, with an xref table of its objects."""
    content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
               b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
               b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
               b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    out, places = b"%PDF-1.4\n", []
    for i, thing in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj%s\nendobj\n" % (i, thing)
    xref = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (xref, len(out))


class Documents(Folder):
    def check(self, name, program, content):
        if not pathlib.Path(program).exists():
            self.skipTest(f"{program} is not installed")
        (self.root / name).write_bytes(content)
        self.add()
        place, = self.found("platypus")
        self.assertEqual(place["path"], name)
        self.assertIn("platypus lays eggs", place["text"])

    def zipped(self, **files):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name, text in files.items():
                archive.writestr(name.replace("__", "/") + ".xml", text)
        return out.getvalue()

    def test_pdf(self):
        self.check("a.pdf", "/usr/bin/pdftotext", pdf_of("The platypus lays eggs."))

    def test_docx(self):
        space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        self.check("a.docx", "/usr/bin/docx2txt", self.zipped(word__document=(
            f'<?xml version="1.0"?><w:document xmlns:w="{space}"><w:body><w:p><w:r><w:t>The platypus lays eggs.</w:t></w:r></w:p>'
            "</w:body></w:document>")))

    def test_odt(self):
        space = "urn:oasis:names:tc:opendocument:xmlns"
        self.check("a.odt", "/usr/bin/odt2txt", self.zipped(content=(
            f'<?xml version="1.0"?><office:document-content xmlns:office="{space}:office:1.0" xmlns:text="{space}:text:1.0">'
            "<office:body><office:text><text:p>The platypus lays eggs.</text:p></office:text></office:body>"
            "</office:document-content>")))

    def test_html(self):
        self.write("a.html", "<html><script>var zebra;</script>\n<p>The <b>platy</b>pus lays eggs.\n")
        self.add()
        place, = self.found("platypus")
        self.assertEqual((place["first_line"], place["last_line"]), (1, 2))
        self.assertEqual(self.paths("zebra"), [])


class Hostile(Folder):
    def test_a_thousand_hostile_files_are_indexed_or_refused(self):
        dice = random.Random(7)
        n_files = 0

        def file(name, content):
            nonlocal n_files
            path = os.fsencode(self.root) + b"/" + (name if isinstance(name, bytes) else os.fsencode(name))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(content)
            n_files += 1

        for i in range(300):
            file(f"binary/{i}.bin", dice.randbytes(dice.randrange(5000)))
            file(f"invalid/{i}.c", b"int a = 1; // \xff\xfe\xc3(" + dice.randbytes(300).replace(b"\0", b"x"))
            file(f"nested/{i}.html", b"<div>" * 20_000 + b"deep")
        for i in range(100):
            file(b"names/new\nline \xff%d.txt" % i, b"text in a file with a name\n")
            file("names/" + "\N{ZERO WIDTH SPACE}" * (i % 60) + f" '\";--{i}.txt", b"quoted\n")
            file(f"keys/{i}.py", b"x = '''" + b"(" * 100_000)
            file(f"empty/{i}.txt", b"")
        file("long_line.txt", b"a " * (2 << 20))
        file("fake.pdf", b"%PDF-1.7\n" + dice.randbytes(10_000))
        file("fake.docx", b"PK\x03\x04" + dice.randbytes(10_000))
        file("deep/" + "d/" * 300 + "a.txt", b"too deep\n")
        with open(self.root / "one_line.txt", "wb") as out:  # of a gigabyte
            out.truncate(1 << 30)
        os.symlink(".", self.root / "loop")
        os.symlink("/etc/passwd", self.root / "outside.txt")
        os.mkfifo(self.root / "pipe.txt")
        self.write("good.txt", "the aardvark is here\n")
        self.assertGreater(n_files, 1000)

        began = time.monotonic()
        text = self.add()
        self.assertLess(time.monotonic() - began, 120)
        self.assertIn("binary", text)
        self.assertIn("larger than", text)
        self.assertEqual(self.paths("aardvark"), ["good.txt"])
        self.assertEqual(self.paths("root:x:0:0"), [])
        self.check_integrity()
        # Every one of them is in the status, read or refused; what has no name in UTF-8 is not listed.
        with contextlib.closing(sqlite3.connect(self.index)) as index:
            n_known, = index.execute("SELECT count(*) FROM file").fetchone()
        self.assertGreaterEqual(n_known, 1000)

    def test_queries_are_text_and_nothing_else(self):
        self.write("a.txt", "the aardvark is here\n")
        self.add()
        for query in ('aardvark" OR "1', "aardvark) NEAR(", "names:aardvark", "aardvark*", "'; DROP --aardvark",
                      "aardvark " * 3000, "\N{COMBINING ACUTE ACCENT}" * 500 + " aardvark", '"' * 999 + "aardvark"):
            done = self.slipstream("search", "--json", "--", query)
            self.assertIn(done.returncode, (0, 1), (query[:40], done.stderr))
            self.assertIn("a.txt", done.stdout, query[:40])


class Ends(Folder):
    """What an index is after its writer ended in the middle."""

    N_FILES = 3000

    def setUp(self):
        super().setUp()
        for i in range(self.N_FILES):
            self.write(f"{i % 50}/f{i}.c", f"int function_{i}(void) {{ return {i}; }}\n" + f"/* number{i} */\n" * 40)

    def test_kill_9_loses_nothing_and_corrupts_nothing(self):
        dice = random.Random(3)
        for _ in range(6):
            adding = subprocess.Popen([PROGRAM, "index", "add", str(self.root)], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL,
                                      env={**os.environ, "SLIPSTREAM_INDEX": str(self.index)})
            time.sleep(dice.uniform(0.05, 1.5))
            adding.kill()
            adding.wait()
            if self.index.exists():
                self.check_integrity()
        self.assertIn(f"{self.N_FILES:,} files", self.add())
        self.check_integrity()
        for i in dice.sample(range(self.N_FILES), 5):
            self.assertEqual(self.paths(f"function_{i}")[:1], [f"{i % 50}/f{i}.c"])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root, for a small file system of its own")
    def test_a_full_disk_is_told_and_mended(self):
        """The disk is a tmpfs of 1 MiB within a mount namespace; then one that is large enough."""
        small = self.folder / "small"
        small.mkdir()
        script = ('mount -t tmpfs -o size=1m none "$1" && SLIPSTREAM_INDEX="$1/index.db" "$2" index add "$3"; echo "status $?"; '
                  'SLIPSTREAM_INDEX="$1/index.db" "$2" index status; mount -o remount,size=200m "$1"; '
                  'SLIPSTREAM_INDEX="$1/index.db" "$2" index add "$3"; echo "status $?"; '
                  'SLIPSTREAM_INDEX="$1/index.db" "$2" search --as-it-is function_77; cp "$1/index.db" "$4"')
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", small, PROGRAM, self.root, self.index],
                              capture_output=True, text=True, check=False, timeout=300)
        if "mount" in done.stderr:
            self.skipTest(done.stderr)
        self.assertIn("full", done.stderr)
        first, second = [line for line in done.stdout.splitlines() if line.startswith("status ")]
        self.assertEqual((first, second), ("status 1", "status 0"), done.stdout + done.stderr)
        self.assertIn("f77.c", done.stdout)
        self.check_integrity()


class Watch(Folder):
    def test_an_edit_is_found_soon(self):
        """Bound: half a second at the median. Each search is a process of its own, which takes some of it."""
        for i in range(200):
            self.write(f"{i % 10}/f{i}.txt", f"file number {i}\n" * 30)
        self.add()
        times = []
        with self.watching():
            for i in range(20):
                word = f"edit{i}word"
                began = time.monotonic()
                self.write(f"{i % 10}/f{i}.txt", f"now it says {word}\n")
                while not (done := self.slipstream("search", "--as-it-is", word).stdout):
                    self.assertLess(time.monotonic() - began, 20, "the edit is not found")
                    time.sleep(0.01)
                self.assertIn(f"f{i}.txt", done)
                times.append(time.monotonic() - began)
            new = self.root / "moved"
            shutil.move(self.root / "3", new)
            self.assertEqual(self.paths("edit3word"), ["moved/f3.txt"])  # it asks the watcher, and waits
        self.assertLess(sorted(times)[len(times) // 2], 0.5)

    def test_only_one_process_writes(self):
        self.write("a.txt", "one\n")
        with self.watching(), self.watching():
            self.add()  # the watcher reads it
            self.assertEqual(self.paths("one"), ["a.txt"])
            self.write("b.txt", "elephant\n")
            self.assertEqual(self.paths("elephant"), ["b.txt"])


if __name__ == "__main__":
    unittest.main()
