"""Messages that docs/troubleshooting.md quotes are messages that the program has."""

import pathlib
import re
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def literals():
    """Every string of the sources, on a line of its own, joined where it goes on in the next line."""
    sources = (re.sub(r'"\s*\n\s*"', "", path.read_text())
               for path in (CHECKOUT / "src").rglob("*.cpp"))
    return "\n".join(text for source in sources for text in LITERAL.findall(source))


class Troubleshooting(unittest.TestCase):
    def test_every_quoted_message_exists(self):
        page = (CHECKOUT / "docs" / "troubleshooting.md").read_text()
        known = literals()
        cells = [row.split("|")[1] for row in page.splitlines() if row.startswith("| ")]
        quoted = [text for cell in cells for text in re.findall(r"`([^`]* [^`]*)`", cell)]
        self.assertGreater(len(quoted), 20)
        for message in quoted:
            pattern = re.escape(message).replace("…", r"\{[^}]*\}")
            self.assertRegex(known, pattern)


if __name__ == "__main__":
    unittest.main()
