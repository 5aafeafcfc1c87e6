"""`slipstream serve --retrieve` with TinyLlama, which others trained: facts that only the index has.

Skipped (77) where the model is neither there nor to be had. Some minutes on two cores.
Environment: SLIPSTREAM_BIN, the built program.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from serving import FIXTURES, Serving

SKIPPED = 77
# Made up: no model has read them.
FACTS = [(role, town, name) for role, town, name in (line.split(", ") for line in """\
harbour master, Oakford, Mirel Tanner
head gardener, Lindow Hall, Tomas Wren
night watchman, Pellan, Agda Ferrow
chief librarian, Castor Bay, Ilse Brandt
bell ringer, Saint Orrin, Petrus Vale
ferry captain, Drummel, Hanna Okoro
lighthouse keeper, Skarn Point, Osric Dahl
school principal, Wexmoor, Leda Quist
station master, Harlow Junction, Bram Colder
town clerk, Minnow Creek, Sunniva Holt
master baker, Vellum Street, Jory Pask
museum director, Tarn Valley, Edda Morrow
fire chief, Brackwater, Niall Strand
choir leader, Upper Fenn, Rosalind Keane
forest ranger, Hollin Wood, Viktor Ames
postmaster, Greyling, Maud Sorrel
head surgeon, Cotter Hospital, Anselm Roy
orchard owner, Plumley, Greta Lunn
bridge engineer, Sable River, Cyrus Dane
theatre manager, Old Mercer, Beatrix Low""".splitlines())]


def fetch(model):
    result = subprocess.run([sys.executable, FIXTURES / "real" / "fetch.py", model],
                            stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode == SKIPPED:
        sys.exit(SKIPPED)
    assert result.returncode == 0, f"{model} cannot be fetched"
    return result.stdout.strip()


class TinyLlama(unittest.TestCase):
    def test_facts_of_the_index(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name).resolve() / "towns"
        root.mkdir()
        lines = (FIXTURES / "haystack.txt").read_text().splitlines()
        for i, (role, town, name) in enumerate(FACTS):
            part = [lines[(7 * i + k) % len(lines)] for k in range(8)]
            part.insert(i % len(part), f"\nThe {role} of {town} is {name}.\n")
            (root / f"notes{i}.txt").write_text("\n".join(part) + "\n")
        index = root.parent / "index.db"
        server = Serving("--ctx", "2048", "--kv", "f16", "--index", str(index), "--retrieve", str(root),
                         "--retrieve-budget", "300", model=fetch("tinyllama"))
        self.addCleanup(server.stop)

        def n_right(**fields):
            n = 0
            for role, town, name in FACTS:
                status, answer = server.post("/v1/chat/completions", {
                    "messages": [{"role": "user", "content": f"Who is the {role} of {town}?"}],
                    "temperature": 0, "max_tokens": 40, **fields})
                self.assertEqual(status, 200, answer)
                said = answer["choices"][0]["message"]["content"]
                print(f"{name}: {said!r}", flush=True)
                n += name in said
            return n

        found, without = n_right(), n_right(retrieval=False)
        print(f"of {len(FACTS)} questions answered: {found} with retrieval, {without} without")
        self.assertGreaterEqual(found, 14)
        self.assertEqual(without, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
