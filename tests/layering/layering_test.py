"""The arrows between rooms hold in src/, and tools/check-layering sees each way to break them."""

import pathlib
import subprocess
import tempfile
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


def check(checkout):
    result = subprocess.run([CHECKOUT / "tools" / "check-layering", checkout],
                            capture_output=True, text=True)
    return result.returncode, result.stdout


class Layering(unittest.TestCase):
    def check_file(self, path, text):
        """Checks a made-up checkout with the real arrows and one source file."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "cmake").mkdir()
            (root / "cmake" / "rooms.txt").write_text(
                (CHECKOUT / "cmake" / "rooms.txt").read_text())
            (root / path).parent.mkdir(parents=True)
            (root / path).write_text(text)
            return check(root)

    def test_this_checkout_obeys(self):
        status, output = check(CHECKOUT)
        self.assertEqual((status, output), (0, ""))

    def test_allowed_arrow_passes(self):
        status, output = self.check_file("src/server/a.cpp", '#include "engine/b.h"\n')
        self.assertEqual((status, output), (0, ""))

    def test_arrow_upwards_fails_and_names_the_line(self):
        status, output = self.check_file("src/base/a.h", '#pragma once\n#include "engine/b.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("src/base/a.h:2: base must not include engine", output)

    def test_nothing_includes_device(self):
        for room in ("base", "engine", "server", "retrieval", "hub", "bench", "cli"):
            status, _ = self.check_file(f"src/{room}/a.cpp", '#include "device/codec/codec.h"\n')
            self.assertEqual(status, 1, room)

    def test_unknown_room_fails(self):
        status, output = self.check_file("src/utils/a.h", "")
        self.assertEqual(status, 1)
        self.assertIn("src/utils is not a room", output)

    def test_relative_include_fails(self):
        for include in ("b.h", "../engine/b.h"):
            status, _ = self.check_file("src/base/a.h", f'#include "{include}"\n')
            self.assertEqual(status, 1, include)


if __name__ == "__main__":
    unittest.main()
