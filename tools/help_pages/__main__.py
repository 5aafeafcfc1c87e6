"""python3 tools/help_pages PROGRAM PROSE OUT: man pages and completions, from what --help prints.

PROSE is packaging/man: slipstream.mdoc with places to fill in, and COMMAND.mdoc where a command's
description has more to say than --help. OUT gets man1/ and completions/, whole and nothing else.
"""

import pathlib
import shutil
import sys

import completions
import help_text
import man_page


def main(program, prose, out):
    top, commands = help_text.read_program(program)
    template = (prose / "slipstream.mdoc").read_text()
    files = {"man1/slipstream.1": man_page.program_page(top, commands, template),
             "completions/slipstream.bash": completions.bash(top, commands),
             "completions/_slipstream": completions.zsh(top, commands),
             "completions/slipstream.fish": completions.fish(top, commands)}
    for command in commands:
        notes = prose / f"{command.name}.mdoc"
        files[f"man1/slipstream-{command.name}.1"] = man_page.command_page(
            command, man_page.date_of(template), notes.read_text() if notes.exists() else "")
    shutil.rmtree(out, ignore_errors=True)  # pages of commands that are gone
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
