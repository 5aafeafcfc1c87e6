"""Reads what `PROGRAM COMMAND --help` prints, as CLI11 lays it out.

A line of OPTIONS has names and the kind of value on the left and the text from column 30 on; where the
left side is longer, the text begins on the next line.
"""

import dataclasses
import re
import subprocess

TEXT_COLUMN = 30
# What follows a name, in this order: kind of value, default, "...", variable, relations.
LEFT = re.compile(
    r"(?:(?P<short>-\w),\s+)?(?P<name>--?[\w-]+|[\w-]+)"
    r"(?: (?P<kind>(?!REQUIRED|Needs:|Excludes:)[A-Z](?:\[[^]\s]*\]|[^\s:\[])*)(?::(?P<check>.*?))?)?"
    r"(?P<optional>\s+\[(?P<default>\[?[^\s\]]*\]?)\])?"
    r"(?P<repeats>\s+\.\.\.)?(?:\s+\(Env:(?P<variable>\w+)\))?(?P<required>\s+REQUIRED)?"
    r"(?:\s+(?:Needs|Excludes): .*)?\s*")


@dataclasses.dataclass
class Entry:
    """An option, or a positional, whose name has no dash."""
    name: str
    text: str
    short: str = ""
    kind: str = ""  # of the value, such as DIR; "" for a flag
    default: str = ""
    variable: str = ""  # of the environment
    choices: tuple = ()
    repeats: bool = False
    required: bool = False


@dataclasses.dataclass
class Command:
    name: str  # "" for the program itself
    text: str
    positionals: list
    options: list
    commands: list  # (name, text)


def help_of(program, *words):
    return subprocess.run([program, *words, "--help"], capture_output=True, text=True,
                          check=True).stdout


def split_line(line):
    """(left side, beginning of the text) of the first line of an entry."""
    left, text = line[:TEXT_COLUMN], line[TEXT_COLUMN:].strip()
    continues = re.match(r"\[|\.\.\.|\(Env:|REQUIRED|Needs:|Excludes:", text)
    if left.endswith(" ") and text and not continues and LEFT.fullmatch(left.strip()):
        return left.strip(), text
    return line.strip(), ""


def entry(left, text):
    found = LEFT.fullmatch(left)
    if not found or not text:
        raise ValueError(f"cannot read this line of --help: {left!r} {text!r}")
    check = found["check"] or ""
    choices = re.search(r"\{(.*)\}", check)
    return Entry(name=found["name"], text=text, short=found["short"] or "",
                 kind=found["kind"] or "", default=(found["default"] or "").strip("[]"),
                 variable=found["variable"] or "",
                 choices=tuple(choices[1].split(",")) if choices else (),
                 repeats=bool(found["repeats"]), required=bool(found["required"]))


def section(page, title):
    """[(left, text)] of the entries below "TITLE:"."""
    found = re.search(rf"^{title}:\n((?:  .*\n)+)", page, flags=re.M)
    entries = []
    for line in found[1].splitlines() if found else ():
        if line.startswith(" " * TEXT_COLUMN):
            left, text = entries[-1]
            entries[-1] = (left, f"{text} {line.strip()}".strip())
        else:
            entries.append(split_line(line))
    return entries


def without_size_units(left):
    """CLI11 adds the units that it knows: UINT:SIZE [b, kb(=1024b), ...]."""
    return left.replace("UINT:SIZE [b, kb(=1024b), ...]", "BYTES")


def parse(name, page):
    text = " ".join(page.split("\n\n", 1)[0].split())
    both = {title: [entry(without_size_units(left), words) for left, words in section(page, title)]
            for title in ("POSITIONALS", "OPTIONS")}
    return Command(name, text, both["POSITIONALS"], both["OPTIONS"], section(page, "SUBCOMMANDS"))


def read_program(program):
    """The program, and each of its commands."""
    top = parse("", help_of(program))
    return top, [parse(name, help_of(program, name)) for name, _ in top.commands]
