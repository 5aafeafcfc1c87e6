"""slipstream pull, list, show and rm, against a hub of our own with faults, and beside stock llama.cpp.

Environment: SLIPSTREAM_BIN, the built program.
"""

import hashlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

from hub_server import Hub, Repo, git_blob_sha1

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from serving import Serving  # noqa: E402

PROGRAM = os.environ["SLIPSTREAM_BIN"]
NEEDLE_MODEL = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "needle-4m.gguf"
CHUNK_BYTES = 256 << 10  # of files up to 64 MiB
CONNECTIONS = 4
TOKEN = "hf_testtoken"


def content(n_bytes, seed=1):
    return random.Random(seed).randbytes(n_bytes)


class HubCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="slipstream-hub-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.hub = Hub()
        self.addCleanup(self.hub.stop)
        self.environment = {**os.environ, "HF_HOME": str(self.home), "HF_ENDPOINT": self.hub.endpoint,
                            "no_proxy": "*", "HF_TOKEN": TOKEN}
        for name in ("HF_HUB_CACHE", "HF_TOKEN_PATH", "HF_HUB_OFFLINE"):
            self.environment.pop(name, None)

    def start(self, *arguments):
        return subprocess.Popen([PROGRAM, *arguments], env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run_program(self, *arguments):
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=600)
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def pull(self, *arguments):
        return self.run_program("pull", *arguments)

    def pulled(self, *arguments):
        """The path of a model that must have been pulled."""
        result = self.pull(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return pathlib.Path(result.stdout.strip())

    def refused(self, expected, *arguments):
        """A pull that must fail with one line that says so, and leave no file under its name."""
        result = self.pull(*arguments)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stderr, expected)
        self.assertEqual(result.stdout, "")
        self.assertEqual(self.final_names(), [])
        self.assertNotIn(TOKEN, result.stderr)
        self.assertNotIn("s3cret", result.stderr)
        return result.stderr

    def folder(self, repo_id="org/repo"):
        return self.home / "hub" / ("models--" + repo_id.replace("/", "--"))

    def final_names(self):
        """Files where readers of the cache look: blobs that are not ours in progress, snapshots."""
        return [path for path in self.home.rglob("*")
                if (path.parent.name == "blobs" and ".slipstream." not in path.name)
                or ("snapshots" in path.parts and not path.is_dir())]


class Pull(HubCase):
    def test_a_model_lies_where_huggingface_hub_would_have_put_it(self):
        data = content(3_000_000)
        self.hub.repos["org/repo"] = repo = Repo({"README.md": b"hello", "M-Q4_K_M.gguf": data,
                                                  "M-Q8_0.gguf": b"other", "mmproj-M-Q4_K_M.gguf": b"x"})
        result = self.pull("org/repo")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("no quant was named: taking Q4_K_M of Q4_K_M, Q8_0", result.stderr)
        path = pathlib.Path(result.stdout.strip())
        self.assertEqual(path, self.folder() / "snapshots" / repo.commit / "M-Q4_K_M.gguf")
        sha256 = hashlib.sha256(data).hexdigest()
        self.assertEqual(os.readlink(path), f"../../blobs/{sha256}")
        self.assertEqual(path.read_bytes(), data)
        self.assertEqual((self.folder() / "refs" / "main").read_text(), repo.commit)
        self.assertEqual([p.name for p in (self.folder() / "blobs").iterdir()], [sha256])

    def test_what_is_there_is_not_fetched_again(self):
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": content(300_000)})
        self.pulled("org/repo")
        n_asked = len(self.hub.asked("cdn"))
        again = self.pull("org/repo:Q8_0")
        self.assertIn("installed already", again.stderr)
        self.assertEqual(len(self.hub.asked("cdn")), n_asked)
        # A download of another program: only the blob is there.
        for link in (self.folder() / "snapshots").rglob("*.gguf"):
            link.unlink()
        self.assertTrue(self.pulled("org/repo").is_symlink())
        self.assertEqual(len(self.hub.asked("cdn")), n_asked)

    def test_the_token_goes_to_the_hub_and_nowhere_else(self):
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": content(300_000)})
        self.pulled("org/repo")
        for path, headers in self.hub.asked("hub"):
            self.assertEqual(headers.get("Authorization"), f"Bearer {TOKEN}", path)
        self.assertTrue(self.hub.asked("cdn"))
        for path, headers in self.hub.asked("cdn"):
            self.assertNotIn("Authorization", headers, path)
            self.assertNotIn(TOKEN, str(headers) + path)

    def test_all_parts_of_a_split_model_and_no_other_quant(self):
        parts = {f"Q2/M-Q2_K-0000{i}-of-00003.gguf": content(400_000, i) for i in (3, 1, 2)}
        self.hub.repos["org/repo"] = Repo({**parts, "M-Q8_0.gguf": b"other"})
        first = self.pulled("org/repo:q2_k")
        self.assertEqual(first.name, "M-Q2_K-00001-of-00003.gguf")
        for path, data in parts.items():
            self.assertEqual((first.parents[1] / path).read_bytes(), data)
        self.assertEqual(len(list((self.folder() / "blobs").iterdir())), 3)

    def test_a_quant_that_is_not_there_names_those_that_are(self):
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": b"x", "M-Q4_0.gguf": b"y"})
        self.refused("org/repo has no Q6_K; it has Q4_0, Q8_0", "org/repo:Q6_K")

    def test_many_connections_ask_for_ranges_side_by_side(self):
        data = content(8_000_000)
        self.hub.repos["org/repo"] = Repo({"a b#M-Q8_0.gguf": data})
        self.assertEqual(self.pulled("org/repo", "--connections", "4").read_bytes(), data)
        self.assertEqual(self.hub.n_served_bytes(), len(data))
        ranges = [headers["Range"] for _, headers in self.hub.asked("cdn")]
        self.assertEqual(len(set(ranges)), len(ranges))
        self.assertGreaterEqual(len(ranges), 4)

    def test_a_second_pull_of_the_same_file_waits(self):
        data = content(2_000_000)
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": data})
        self.hub.piece_seconds = 0.01
        first = self.start("pull", "org/repo")
        while self.hub.n_served_bytes() == 0:
            time.sleep(0.01)
        second = self.start("pull", "org/repo")
        for process in (first, second):
            process.wait(timeout=60)
        self.assertEqual((first.returncode, second.returncode), (0, 0))
        errors = first.communicate()[1] + second.communicate()[1]
        self.assertEqual(errors.count("another process is downloading M-Q8_0.gguf: waiting"), 1, errors)
        self.assertEqual(self.hub.n_served_bytes(), len(data))


class Interrupted(HubCase):
    def test_killed_five_times_it_ends_whole_and_fetches_little_twice(self):
        n_kills = 5
        name = "M-Q8_0.gguf"
        data = content(24 << 20)
        self.hub.repos["org/repo"] = Repo({name: data})
        self.hub.piece_seconds = 0.004
        dice = random.Random()
        for _ in range(n_kills):
            until = self.hub.n_served_bytes() + dice.randrange(2 << 20, 4 << 20)
            process = self.start("pull", "org/repo", "--connections", str(CONNECTIONS))
            while self.hub.n_served_bytes() < until:
                self.assertIsNone(process.poll(), "it ended before it could be killed")
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.assertEqual(self.final_names(), [])
        self.hub.piece_seconds = 0
        result = self.pull("org/repo")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("resuming", result.stderr)
        self.assertEqual(pathlib.Path(result.stdout.strip()).read_bytes(), data)
        n_repeated = self.hub.n_repeated_bytes(name)
        self.assertEqual(self.hub.n_served_bytes(), len(data) + n_repeated)
        self.assertLessEqual(n_repeated, n_kills * CONNECTIONS * CHUNK_BYTES)

    def test_dropped_connections_go_on_at_the_byte_where_they_were(self):
        data = content(3_000_000)
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": data})
        self.hub.drop_after_bytes = [100_000, 0, 300_001, 7, 250_000, 1]
        self.assertEqual(self.pulled("org/repo").read_bytes(), data)
        self.assertEqual(self.hub.drop_after_bytes, [])
        self.assertEqual(self.hub.n_served_bytes(), len(data))

    def test_busy_servers_are_asked_again(self):
        data = content(300_000)
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": data})
        self.hub.cdn_statuses = [(500,), (503,)]
        self.assertEqual(self.pulled("org/repo").read_bytes(), data)

    def test_a_server_that_names_a_time_is_left_alone_so_long(self):
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": content(1000)})
        self.hub.cdn_statuses = [(429, {"Retry-After": "2"})]
        started = time.monotonic()
        self.pulled("org/repo")
        self.assertGreaterEqual(time.monotonic() - started, 2)

    def test_a_refused_download_goes_on_later(self):
        data = content(2_000_000)
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": data})
        self.hub.drop_after_bytes = [600_000] + [0] * 50
        self.refused("failed: .*", "org/repo", "--connections", "1", "--retries", "0")
        self.hub.drop_after_bytes = []
        self.assertEqual(self.pulled("org/repo").read_bytes(), data)
        self.assertLessEqual(self.hub.n_repeated_bytes("M-Q8_0.gguf"), CHUNK_BYTES)


class Refused(HubCase):
    def setUp(self):
        super().setUp()
        self.data = content(3_000_000)
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": self.data})

    def test_gated_private_and_unknown_models(self):
        page = re.escape(self.hub.endpoint + "/org/repo")
        self.hub.resolve_status = (403, {"X-Error-Code": "GatedRepo"})
        self.refused(f"org/repo is gated: accept its licence at {page}, then set HF_TOKEN", "org/repo")
        self.hub.api_status = (401, {})
        self.refused("check HF_TOKEN", "org/repo")
        del self.environment["HF_TOKEN"]
        self.refused("check the name; if it is private or gated, accept", "org/repo")
        self.hub.api_status = None
        self.refused(r"the hub has no org/other: check the name", "org/other")

    def test_a_server_that_stays_out_of_order(self):
        self.hub.cdn_statuses = [(500,)] * 20
        self.refused(r"is busy or out of order \(500\)", "org/repo", "--retries", "1")
        self.hub.api_status = (503, {"Retry-After": "7200"})
        self.refused("run the same command again in 7200 s", "org/repo")

    def test_a_wrong_hash_removes_the_download(self):
        self.hub.change_content = lambda data: data[:-1] + bytes([data[-1] ^ 1])
        self.refused("has the hash [0-9a-f]{64} and should have .* the download was removed", "org/repo")
        self.assertEqual(list((self.folder() / "blobs").iterdir()), [])
        self.hub.change_content = lambda data: data
        self.assertEqual(self.pulled("org/repo").read_bytes(), self.data)

    def test_bytes_that_were_not_asked_for(self):
        self.hub.ignore_ranges = True
        self.refused("sends the whole file when asked for bytes .* it was discarded", "org/repo")
        self.hub.ignore_ranges = False
        self.hub.shift_ranges = 1
        self.refused(r"sent 'bytes \d+-\d+/3000000' when asked for bytes \d+-.* it was discarded", "org/repo")
        self.hub.shift_ranges = 0
        self.assertEqual(self.pulled("org/repo").read_bytes(), self.data)

    def test_a_small_file_may_come_whole(self):
        self.hub.repos["org/repo"] = Repo({"M-Q8_0.gguf": b"small"})
        self.hub.ignore_ranges = True
        self.assertEqual(self.pulled("org/repo").read_bytes(), b"small")

    def test_redirects_without_end(self):
        self.hub.redirect_to_self = True
        self.refused("redirects", "org/repo")

    def test_names_that_would_leave_the_cache(self):
        for path in ("../../../evil.gguf", "/tmp/evil.gguf", "a/../../evil.gguf"):
            def add(listing, path=path):
                listing["siblings"][0]["rfilename"] = path
                return listing
            self.hub.change_listing = add
            self.refused("nothing is downloaded", "org/repo")
        self.hub.change_listing = lambda listing: {**listing, "sha": "../../../../evil"}
        self.refused("has an invalid commit", "org/repo")
        self.assertEqual(list(self.home.rglob("*evil*")), [])
        self.hub.change_listing = lambda listing: "no listing"
        self.refused("not a listing", "org/repo")

    def test_small_files_are_verified_by_their_git_hash(self):
        def in_git(listing):
            del listing["siblings"][0]["lfs"]
            listing["siblings"][0]["blobId"] = git_blob_sha1(self.data)
            return listing
        self.hub.change_listing = in_git
        self.hub.change_content = lambda data: b"x" + data[1:]
        self.refused("has the hash [0-9a-f]{40} and should have", "org/repo")
        self.hub.change_content = lambda data: data
        self.assertEqual(os.readlink(self.pulled("org/repo")), f"../../blobs/{git_blob_sha1(self.data)}")

    def test_what_cannot_be_verified_is_not_downloaded(self):
        def without_hash(listing):
            for key in ("lfs", "blobId"):
                del listing["siblings"][0][key]
            return listing
        self.hub.change_listing = without_hash
        self.refused("gives no hash .* for M-Q8_0.gguf", "org/repo")
        self.assertEqual(self.hub.asked("cdn"), [])

    def test_no_room_is_said_before_a_byte_is_fetched(self):
        def huge(listing):
            listing["siblings"][0]["size"] = 1 << 49
            return listing
        self.hub.change_listing = huge
        self.refused("524288.0 GiB are to be downloaded and .* are free in .* HF_HUB_CACHE", "org/repo")
        self.assertEqual(self.hub.asked("cdn"), [])

    def test_a_file_that_is_shorter_or_longer_than_listed(self):
        self.hub.change_content = lambda data: data[:-1000]
        self.refused("it was discarded", "org/repo")

    def test_offline_is_said_at_once(self):
        self.hub.stop()
        started = time.monotonic()
        self.refused("cannot reach .* check the network", "org/repo")
        self.assertLess(time.monotonic() - started, 5)
        self.environment["HF_HUB_OFFLINE"] = "1"
        self.refused("HF_HUB_OFFLINE is set", "org/repo")

    def test_what_is_no_name(self):
        for name in ("repo", "../../etc", "org/repo:", "a/b/c"):
            self.refused("is not the name of a model: it is written org/repo", name)


class InstalledModel(HubCase):
    """What the other commands do with a model that was pulled: the small chat model of the fixtures."""

    def setUp(self):
        super().setUp()
        self.hub.repos["org/needle-GGUF"] = Repo({"needle-Q8_0.gguf": NEEDLE_MODEL.read_bytes()})
        self.path = self.pulled("org/needle-GGUF")

    def test_run_show_doctor_and_serve_take_its_name(self):
        by_name = self.run_program("run", "org/needle-GGUF:q8_0", "-p", "Once upon", "--temp", "0", "-n", "4")
        by_file = self.run_program("run", str(NEEDLE_MODEL), "-p", "Once upon", "--temp", "0", "-n", "4")
        self.assertEqual(by_name.returncode, 0, by_name.stderr)
        self.assertTrue(by_name.stdout.strip())
        self.assertEqual(by_name.stdout, by_file.stdout)
        doctor = self.run_program("doctor", "org/needle-GGUF").stdout
        self.assertRegex(doctor, r"ok +model +\S+, needs \d+ MiB")
        with unittest.mock.patch.dict(os.environ, self.environment):
            server = Serving("--model", "other=org/needle-GGUF", model="org/needle-GGUF")
        _, models, _ = server.ask("GET", "/v1/models")
        server.stop()
        self.assertEqual(sorted(model["id"] for model in models["data"]), ["needle-Q8_0", "other"])

    def test_show_says_what_it_is_and_whether_it_fits(self):
        shown = self.run_program("show", "org/needle-GGUF")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(str(self.path), shown.stdout)
        self.assertRegex(shown.stdout, r"parameters +4\.\d+ M \(\d+\)")
        self.assertRegex(shown.stdout, r"context +\d+ tokens")
        self.assertRegex(shown.stdout, r"--kv turbo8v4 +\d+ tokens \(all\), \d+ MiB in all")
        self.assertRegex(shown.stdout, r"calibrated +no: slipstream calibrate")
        self.assertEqual(self.run_program("show", str(NEEDLE_MODEL)).stdout.splitlines()[2:],
                         shown.stdout.splitlines()[2:])
        template = self.run_program("show", "org/needle-GGUF", "--template").stdout
        self.assertIn("messages", template)
        self.assertIn(template.splitlines()[0][:60], shown.stdout)

    def test_list_and_rm(self):
        listed = self.run_program("list")
        self.assertRegex(listed.stdout, r"(?m)^org/needle-GGUF:Q8_0 +9 MiB +just now +needle-Q8_0\.gguf$")
        self.assertIn(str(self.path), self.run_program("list", "--paths").stdout)
        nobody = self.run_program("rm", "org/needle-GGUF:Q8_0")
        self.assertEqual(nobody.returncode, 1)
        self.assertIn("use --yes", nobody.stderr)
        self.assertTrue(self.path.exists())
        removed = self.run_program("rm", "org/needle-GGUF:Q8_0", "--yes")
        self.assertEqual(removed.stdout, "removed org/needle-GGUF:Q8_0, 9 MiB freed\n")
        self.assertFalse(self.folder("org/needle-GGUF").exists())
        self.assertEqual(self.run_program("list").stdout, "")

    def test_what_is_not_installed_names_the_pull(self):
        for arguments in (["run", "org/other:Q8_0", "-p", "x"], ["serve", "org/other:Q8_0"],
                          ["serve", "--model", "a=org/other:Q8_0"], ["show", "org/other:Q8_0"]):
            result = self.run_program(*arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn("not installed: slipstream pull org/other:Q8_0", result.stderr)
        self.assertIn("slipstream pull org/other", self.run_program("doctor", "org/other").stdout)
        self.assertIn("not installed", self.run_program("rm", "org/other", "--yes").stderr)


class WithStock(HubCase):
    """One cache with the packaged llama.cpp."""

    def setUp(self):
        super().setUp()
        self.hub.repos["org/needle-GGUF"] = Repo({"needle-Q8_0.gguf": NEEDLE_MODEL.read_bytes()})

    def run_stock(self, *arguments):
        result = subprocess.run(
            ["llama-completion", "-hf", "org/needle-GGUF:Q8_0", "-p", "Once upon", "-n", "1", "-no-cnv",
             *arguments], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Once upon", result.stdout)

    def test_stock_finds_what_was_pulled(self):
        self.pulled("org/needle-GGUF")
        self.hub.stop()
        self.run_stock("--offline")

    def test_what_stock_downloaded_is_installed(self):
        self.run_stock()
        n_served = self.hub.n_served_bytes()
        self.assertEqual(n_served, NEEDLE_MODEL.stat().st_size)
        self.assertIn("org/needle-GGUF:Q8_0", self.run_program("list").stdout)
        self.assertIn("installed already", self.pull("org/needle-GGUF:Q8_0").stderr)
        self.assertEqual(self.hub.n_served_bytes(), n_served)


if __name__ == "__main__":
    unittest.main()
