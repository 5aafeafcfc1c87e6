#!/usr/bin/env python3
"""How good the answers of an index are, on data with judgments. Prints a table; docs/search.md has one.

    quality.py cranfield FOLDER   Cranfield: cran.all.1400, cran.qry, cranqrel; nDCG@10
    quality.py docstrings FOLDER  source with kernel-doc comments: the comment asks for its function, and
                                  is taken out of what is indexed; recall@8
    quality.py commits FOLDER     a Git repository: the subject of a commit asks for the files that it
                                  changed, in the tree before it; recall@8
    quality.py needles FOLDER     40 sentences of ours in a copy of the folder's files, each with a twin that differs in
                                  one word; asked for by their own words and by others; rank

Options: --queries N, --seed N, --until BRANCH, --work FOLDER (where copies and indexes go).
With --embedder MODEL every arm has a line: by words, by meaning, fused as searches are; with --reranker MODEL also
reranked. What fusion does was chosen on one half of the queries and is reported on the other: --half choose|report.
SLIPSTREAM_BIN and SEARCH_ARMS name the programs.
"""
import argparse
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

SLIPSTREAM = os.environ.get("SLIPSTREAM_BIN", "build/release/bin/slipstream")
SEARCH_ARMS = os.environ.get("SEARCH_ARMS", "build/release/bin/search_arms")


def index(folder, work, options):
    """Makes an index of the folder, with vectors if there is an embedder, and returns its path."""
    path = work / "index.db"
    for name in work.glob("index.db*"):
        name.unlink()
    done = subprocess.run([SLIPSTREAM, "index", "add", "--index", path, folder], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    print(done.stdout.strip(), file=sys.stderr)
    if options.embedder:
        subprocess.run([SLIPSTREAM, "index", "embed", "--index", path, options.embedder], stdout=sys.stderr, check=True)
    return path


def arms(options):
    """What each arm adds to the command line."""
    if not options.embedder:
        return {"words": ["--meaning", "0"]}
    embedder = ["--embedder", options.embedder]
    found = {"words": ["--meaning", "0"], "meaning": ["--meaning", "1", *embedder], "fused": embedder}
    if options.reranker:
        found["reranked"] = [*embedder, "--reranker", options.reranker]
    return found


def ask(path, queries, work, options, most=10):
    """(arm, the places of each query in order: path, first line, last line) for each arm."""
    file = work / "queries.txt"
    file.write_text("".join(query.replace("\n", " ") + "\n" for query in queries))
    for arm, arguments in arms(options).items():
        done = subprocess.run([SEARCH_ARMS, path, file, "-n", str(most), *arguments], capture_output=True, text=True)
        print(f"{arm}: {done.stderr.strip()}", file=sys.stderr)
        if done.returncode != 0:
            sys.exit(f"search_arms failed for {arm}")
        places = [[] for _ in queries]
        for line in done.stdout.splitlines():
            number, name, first, last = line.split("\t")[:4]
            places[int(number)].append((name, int(first), int(last)))
        yield arm, places


def half(items, options):
    """The half of the queries that was asked for, in a random order."""
    items = list(items)
    random.Random(options.seed).shuffle(items)
    middle = len(items) // 2
    return {"all": items, "choose": items[:middle], "report": items[middle:]}[options.half]


def recall(places, wanted, most):
    """The share of queries with a right place among the first `most`."""
    hits = [any(is_right(place) for place in found[:most]) for found, is_right in zip(places, wanted)]
    return sum(hits) / len(hits)


# Cranfield: fields .I (number), .T, .A, .B, .W (text).
def fields(path):
    items, field = [], None
    for line in path.read_text(encoding="latin-1").splitlines():
        if line.startswith(".I"):
            items.append({"I": int(line.split()[1])})
            field = None
        elif re.fullmatch(r"\.[TABWX]", line.strip()):
            field = line.strip()[1]
            items[-1].setdefault(field, "")
        elif field:
            items[-1][field] += line + "\n"
    return items


def cranfield(folder, work, options):
    texts = work / "cranfield"
    texts.mkdir()
    for item in fields(folder / "cran.all.1400"):
        (texts / f"{item['I']:04}.txt").write_text(item.get("W", ""))
    queries = [item["W"] for item in fields(folder / "cran.qry")]
    # Queries are judged by their place in the file. 1 is best, 4 worst; -1 and 5 are not relevant.
    gains = [{} for _ in queries]
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, grade = (int(word) for word in line.split()[:3])
        if 1 <= grade <= 4:
            gains[query - 1][f"{document:04}.txt"] = 5 - grade
    asked = half([(query, gain) for query, gain in zip(queries, gains) if gain], options)
    for arm, places in ask(index(texts, work, options), [query for query, _ in asked], work, options):
        scores = [ndcg(found, gain) for found, (_, gain) in zip(places, asked)]
        print(f"cranfield, {arm}: {len(scores)} queries, nDCG@10 {sum(scores) / len(scores):.4f}")


def ndcg(places, gain):
    """At 10 documents. gain: of each relevant document."""
    names = list(dict.fromkeys(name for name, _, _ in places))[:10]
    dcg = sum(gain.get(name, 0) / math.log2(i + 2) for i, name in enumerate(names))
    ideal = sum(value / math.log2(i + 2) for i, value in enumerate(sorted(gain.values(), reverse=True)[:10]))
    return dcg / ideal


# "/** name() - what it does", up to the function's own line.
KERNEL_DOC = re.compile(
    r"/\*\*\n \* (\w+)(?:\(\))? - ([^\n]{20,160})\n(?: \*[^\n]*\n)*? \*/\n([^\n;{}]*\b\1\s*\()")


def docstrings(folder, work, options):
    copy = work / "docstrings"
    shutil.copytree(folder, copy, symlinks=True)
    asked = []
    for path in sorted(copy.rglob("*.c")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in KERNEL_DOC.finditer(text):
            asked.append((path, match.group(1), match.group(2)))
    random.Random(options.seed).shuffle(asked)
    chosen, seen = [], set()
    for path, name, text in asked:
        # A comment that names its function asks for a name, not for what it does.
        if name.lower() in text.lower() or text in seen:
            continue
        seen.add(text)
        chosen.append((path, name, text))
        if len(chosen) == options.queries:
            break
    # The whole comments go, but not their lines.
    for path in {path for path, _, _ in chosen}:
        text = path.read_text(encoding="utf-8", errors="replace")
        names = {name for other, name, _ in chosen if other == path}
        path.write_text(KERNEL_DOC.sub(
            lambda match: "\n" * match.group(0).count("\n") + match.group(3)
            if match.group(1) in names else match.group(0), text))
    chosen = half(chosen, options)
    wanted = []
    for path, name, _ in chosen:
        lines = path.read_text(errors="replace").splitlines()
        pattern = re.compile(rf"^[^\s#*/][^;]*\b{name}\s*\(")
        at = next((i + 1 for i, line in enumerate(lines) if pattern.match(line)), 0)
        relative = str(path.relative_to(copy))
        wanted.append(lambda place, relative=relative, at=at:
                      place[0] == relative and place[1] <= at <= place[2])
    files = [lambda place, name=str(path.relative_to(copy)): place[0] == name for path, _, _ in chosen]
    for arm, places in ask(index(copy, work, options), [text for _, _, text in chosen], work, options):
        print(f"docstrings, {arm}: {len(chosen)} queries, recall of the function @1 {recall(places, wanted, 1):.3f}, "
              f"@8 {recall(places, wanted, 8):.3f}; of its file @1 {recall(places, files, 1):.3f}, "
              f"@8 {recall(places, files, 8):.3f}")


def commits(folder, work, options):
    def git(*arguments):
        return subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True).stdout

    head = git("rev-parse", "HEAD").strip()
    # Of a sparse checkout only what is there.
    files = {name for name in git("ls-tree", "-r", "--name-only", head).splitlines() if (folder / name).exists()}
    chosen = []
    for line in git("log", "--no-merges", "--format=%x01%s", "--name-only", f"{head}..{options.until}").split("\x01")[1:]:
        subject, *changed = [text for text in line.splitlines() if text]
        changed = [name for name in changed if name in files and name.endswith((".c", ".h", ".y", ".l", ".pl", ".sgml"))]
        if 1 <= len(changed) <= 3 and len(subject.split()) >= 4:
            chosen.append((subject, set(changed)))
    random.Random(options.seed).shuffle(chosen)
    chosen = half(chosen[:options.queries], options)
    wanted = [lambda place, changed=changed: place[0] in changed for _, changed in chosen]
    for arm, places in ask(index(folder, work, options), [subject for subject, _ in chosen], work, options):
        print(f"commits, {arm}: {len(chosen)} queries, recall of a changed file @1 {recall(places, wanted, 1):.3f}, "
              f"@8 {recall(places, wanted, 8):.3f}")


# A sentence with a name {e} and a number {n}, and a question in other words.
NEEDLES = [
    ("The door code of the {e} workshop is {n}.", "which digits open the {e} workshop"),
    ("The {e} ferry leaves from pier {n}.", "where do passengers of the {e} boat go on board"),
    ("Maintenance of the {e} turbine is due after {n} hours.", "how long may the {e} turbine run before it is serviced"),
    ("The {e} expedition ended at an altitude of {n} metres.", "how high did the {e} climbers get"),
    ("The {e} recipe wants {n} grams of saffron.", "how much saffron goes into the {e} dish"),
    ("The {e} library lends books for {n} days.", "when do I have to return what I borrowed from the {e} library"),
    ("The {e} orchestra rehearses in hall {n}.", "in which room do the {e} musicians practise"),
    ("Tickets for the {e} museum cost {n} crowns.", "what is the price of entry to the {e} museum"),
]
FIRST = ["amber", "copper", "silver", "marble", "velvet"]
SECOND = ["lantern", "anchor", "falcon", "meadow", "harbour", "compass", "orchid", "thimble"]


def needles(folder, work, options):
    copy = work / "needles"
    shutil.copytree(folder, copy, symlinks=True)
    dice = random.Random(options.seed)
    files = sorted(path for path in copy.rglob("*") if path.suffix in (".c", ".h", ".rs", ".rst", ".md", ".txt"))

    def hide(sentence):
        """In a file, where there is a blank line. Returns the file's name and the sentence's line."""
        while True:
            path = dice.choice(files)
            lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
            blank = [i for i, line in enumerate(lines) if not line.strip()]
            if len(lines) < 40 or not blank:
                continue
            at = dice.choice(blank)
            lines[at] = f"/* {sentence} */"
            path.write_text("\n".join(lines))
            return str(path.relative_to(copy)), at + 1

    literal, paraphrased, hidden, twins = [], [], [], []
    for i, (sentence, question) in enumerate(NEEDLES):
        for j, first in enumerate(FIRST):
            name, twin = f"{first} {SECOND[i]}", f"{first} {SECOND[(i + j + 1) % len(SECOND)]}"
            hidden.append(hide(sentence.format(e=name, n=dice.randrange(100, 10_000))))
            twins.append(hide(sentence.format(e=twin, n=dice.randrange(100, 10_000))))
            literal.append(sentence.format(e=name, n="").replace(" .", ""))
            paraphrased.append(question.format(e=name))
    path = index(copy, work, options)

    def rank(places, wanted):
        return next((i + 1 for i, (name, first, last) in enumerate(places)
                     if name == wanted[0] and first <= wanted[1] <= last), 1000)  # not found

    for kind, queries in (("literal", literal), ("paraphrased", paraphrased)):
        for arm, places in ask(path, queries, work, options, 100):
            ranks = sorted(map(rank, places, hidden))
            before = sum(rank(found, wanted) < rank(found, twin) for found, wanted, twin in zip(places, hidden, twins))
            print(f"needles, {kind}, {arm}: {len(ranks)}, median rank {ranks[len(ranks) // 2]}, worst {ranks[-1]}, "
                  f"first {ranks.count(1)}, in the first 8 {sum(r <= 8 for r in ranks)}, before its twin {before}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["cranfield", "docstrings", "commits", "needles"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--until", default="master", help="commits: of which branch")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--embedder", help="a GGUF model that makes vectors")
    parser.add_argument("--reranker", help="a GGUF model that ranks texts; needs --embedder")
    parser.add_argument("--half", choices=["all", "choose", "report"], default="all", help="of the queries")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        {"cranfield": cranfield, "docstrings": docstrings, "commits": commits, "needles": needles}[options.kind](
            options.folder, pathlib.Path(work), options)


if __name__ == "__main__":
    main()
