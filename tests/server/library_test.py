"""`slipstream serve --hub`: the routes by which the web app lists, loads, unloads, finds and pulls models.

The hub is one of our own, on loopback. Environment: SLIPSTREAM_BIN, the built program.
"""

import contextlib
import json
import os
import pathlib
import random
import socket
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hub"))
from hub_server import Hub, Repo  # noqa: E402
from serving import NEEDLE_MODEL, Serving  # noqa: E402

NEEDLE = pathlib.Path(NEEDLE_MODEL).read_bytes()
KEY = "a-key-of-the-test"
REPO, QUANT = "org/needle-GGUF", "Q8_0"
NAME = f"{REPO}:{QUANT}"
QUESTION = {"messages": [{"role": "user", "content": "We met amber lantern today. Who is amber?"}],
            "max_tokens": 8, "temperature": 0}


class LibraryCase(unittest.TestCase):
    arguments = ("--name", "first", "--ctx", "2048", "--hub")
    model = NEEDLE_MODEL

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="slipstream-library-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.hub = Hub()
        self.addCleanup(self.hub.stop)
        self.hub.repos[REPO] = Repo({"needle-Q8_0.gguf": NEEDLE, "needle-F16.gguf": b"x" * 1000,
                                     "mmproj-needle.gguf": b"y"}, downloads=5)
        self.hub.repos["org/slow-GGUF"] = Repo({"s-Q4_0.gguf": random.Random(1).randbytes(3 << 20)},
                                               downloads=7)
        environment = {"HF_HOME": str(self.home), "HF_ENDPOINT": self.hub.endpoint, "no_proxy": "*",
                       "HF_HUB_CACHE": "", "HF_TOKEN": "hf_test", "HF_HUB_OFFLINE": ""}
        patch = unittest.mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)
        self.server = Serving(*self.arguments, model=self.model)
        self.addCleanup(self.stop)

    def stop(self):
        if self.server.process.poll() is None:
            self.assertEqual(self.server.stop(), 0)

    def get(self, path):
        return self.server.ask("GET", path)[:2]

    def models(self):
        status, answer = self.get("/slipstream/models")
        self.assertEqual(status, 200, answer)
        return {model["name"]: model for model in answer["models"]}

    def post(self, path, **body):
        return self.server.post(f"/slipstream/{path}", body)

    def refused(self, status, words, path, **body):
        found, answer = self.post(path, **body)
        self.assertEqual(found, status, answer)
        self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
        self.assertIn(words, answer["error"]["message"])

    def pull(self, repo=REPO, quant=QUANT):
        """The events of a pull to its end."""
        status, text, headers = self.server.ask("POST", "/slipstream/hub/pull",
                                                {"repo": repo, "quant": quant})
        self.assertEqual(status, 200, text)
        self.assertEqual(headers["Content-Type"], "text/event-stream")
        return [json.loads(event.removeprefix("data: ")) for event in text.split("\n\n") if event]

    @contextlib.contextmanager
    def pulling(self, repo="org/slow-GGUF", quant="Q4_0"):
        """While a pull goes on; its client leaves at the end."""
        connection = self.server.connection()
        connection.request("POST", "/slipstream/hub/pull", json.dumps({"repo": repo, "quant": quant}))
        response = connection.getresponse()
        try:
            yield response
        finally:
            # As when a browser leaves: the socket is closed though there is more to read.
            with contextlib.suppress(OSError):
                connection.sock and connection.sock.shutdown(socket.SHUT_RDWR)
            response.close()
            connection.close()


    @contextlib.contextmanager
    def answering(self):
        """While the pulled model answers; its client leaves at the end."""
        self.assertEqual(self.post("models/load", name=NAME)[0], 200)
        connection = self.server.connection()
        # Eight answers of which the context has room for one at a time: unload() waits a second.
        connection.request("POST", "/v1/chat/completions", json.dumps(
            {**QUESTION, "model": NAME, "stream": True, "ignore_eos": True, "max_tokens": 1800, "n": 8}))
        response = connection.getresponse()
        self.assertTrue(response.readline())
        yield
        response.close()
        connection.close()


class Models(LibraryCase):
    def test_a_model_is_found_pulled_loaded_asked_and_unloaded(self):
        status, answer = self.get("/slipstream/hub/search?q=NEEDLE+gguf")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["results"], [{"repo": REPO, "downloads": 5, "files": [
            {"quant": "F16", "bytes": 1000}, {"quant": QUANT, "bytes": len(NEEDLE)}]}])
        self.assertEqual(list(self.models()), ["first"])

        self.hub.piece_seconds = 0.002
        events = self.pull()
        self.assertEqual(events[-1], {"done": True})
        self.assertGreater(len(events), 2, events)
        counts = [event["bytes"] for event in events[:-1]]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual({event["bytes_all"] for event in events[:-1]}, {len(NEEDLE)})
        self.assertEqual(counts[-1], len(NEEDLE))
        self.assertGreater(events[-2]["bytes_per_s"], 0)

        model = self.models()[NAME]
        self.assertEqual((model["state"], model["quant"], model["bytes"]),
                         ("on disk", QUANT, len(NEEDLE)))
        self.assertEqual(pathlib.Path(model["path"]).read_bytes(), NEEDLE)
        self.assertEqual((model["fit"]["fits"], model["fit"]["n_ctx"], model["fit"]["why"]),
                         (True, 2048, ""))
        self.assertTrue(model["fit"]["kv"])
        self.assertEqual(self.post("models/load", name=NAME), (200, {"name": NAME, "state": "loaded"}))
        self.assertEqual(self.models()[NAME]["state"], "loaded")
        self.assertEqual(self.post("models/unload", name=NAME)[0], 200)
        self.assertEqual(self.models()[NAME]["state"], "idle")
        self.assertEqual(self.post("models/unload", name=NAME)[0], 200)  # that is what was asked

    def test_a_chat_may_name_what_is_installed_however_it_is_written(self):
        self.pull()
        self.pull(quant="F16")  # no model: it cannot be named
        listed = {model["id"]: model["loaded"] for model in self.get("/v1/models")[1]["data"]}
        self.assertEqual(listed, {"first": True, NAME: False}, "before it is asked for")
        self.assertEqual(self.get(f"/v1/models/{NAME}")[1]["id"], NAME)
        self.assertEqual(self.get("/v1/models/org/nothing")[0], 404)
        for name in (NAME, "org/needle-GGUF:q8_0", REPO):
            status, answer = self.server.post("/v1/chat/completions", {**QUESTION, "model": name})
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer["model"], NAME)
            status, answer = self.server.post("/v1/chat/completions", {
                **QUESTION, "model": name, "stream": True,
                "messages": [{"role": "user", "content": "amber " * 4000}]})
            self.assertEqual(status, 400, "it is loaded: what is wrong is known before the headers")
        names = [model["id"] for model in self.get("/v1/models")[1]["data"]]
        self.assertEqual(names, ["first", NAME])

    def test_what_cannot_be_is_said(self):
        self.refused(409, "stays loaded", "models/unload", name="first")
        self.refused(404, "slipstream pull org/nothing", "models/load", name="org/nothing")
        self.refused(404, "does not exist", "models/load", name="../../etc/passwd")
        self.refused(404, "does not exist", "models/unload", name="other")
        self.refused(400, "'name'", "models/load", name=7)
        self.refused(400, "'name'", "models/unload")
        self.refused(400, "org/repo", "hub/pull", repo="../repo", quant="Q8_0")
        self.refused(400, "org/repo", "hub/pull", repo=REPO, quant="../Q8_0")
        self.refused(400, "'quant'", "hub/pull", repo=REPO)
        self.assertEqual(self.get("/slipstream/hub/search?q=")[1], {"results": []})
        self.assertEqual(self.get("/slipstream/hub/search?q=" + "x" * 300)[0], 400)
        self.assertEqual(self.get("/slipstream/hub/pull")[0], 405)

    def test_a_model_is_removed_unless_it_is_in_use_or_of_the_command_line(self):
        self.pull()
        self.pull(quant="F16")
        path = pathlib.Path(self.models()[NAME]["path"])
        self.assertEqual([(name, model["removable"]) for name, model in self.models().items()],
                         [("first", False), (f"{REPO}:F16", True), (NAME, True)])
        self.refused(409, "stays loaded", "models/remove", name="first")
        self.refused(400, "org/repo:quant", "models/remove", name=REPO)
        self.refused(400, "org/repo", "models/remove", name="../../etc/passwd")
        self.refused(404, "not installed", "models/remove", name="org/nothing-GGUF:Q8_0")
        self.refused(404, "not installed", "models/remove", name=f"{REPO}:Q2_K")
        self.refused(400, "'name'", "models/remove")
        with self.answering():
            self.refused(409, "in use", "models/remove", name=NAME)
            self.assertTrue(path.exists())
        end = time.monotonic() + 20
        while (removed := self.post("models/remove", name=NAME))[0] == 409 and time.monotonic() < end:
            time.sleep(0.1)  # until it is noticed that the client has left
        self.assertEqual(removed, (200, {"name": NAME, "state": "removed"}))
        self.assertFalse(path.exists())
        self.assertEqual(list(self.models()), ["first", f"{REPO}:F16"])
        self.assertEqual([model["id"] for model in self.get("/v1/models")[1]["data"]], ["first"])
        status, answer = self.server.post("/v1/chat/completions", {**QUESTION, "model": NAME})
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))
        self.refused(404, "not installed", "models/remove", name=NAME)
        self.assertEqual(self.post("models/remove", name=f"{REPO}:F16")[0], 200)  # not even a model
        self.assertEqual(list((self.home / "hub").rglob("blobs/*")), [])

        self.pull()  # and it can be had again
        status, answer = self.server.post("/v1/chat/completions", {**QUESTION, "model": NAME})
        self.assertEqual(status, 200, answer)

    def test_what_is_being_pulled_is_not_removed(self):
        self.hub.piece_seconds = 0.05
        with self.pulling() as response:
            self.assertTrue(response.readline().startswith(b"data: "))
            found, answer = self.post("models/remove", name="org/slow-GGUF:Q4_0")
            self.assertIn(found, (404, 409), answer)
            self.assertTrue(response.readline())
            self.assertTrue(response.readline().startswith(b"data: "), "it goes on")

    def test_a_file_that_is_no_model_does_not_fit_and_is_not_loaded(self):
        self.assertEqual(self.pull(quant="F16")[-1], {"done": True})
        fit = self.models()[f"{REPO}:F16"]["fit"]
        self.assertFalse(fit["fits"])
        self.assertIn("GGUF", fit["why"])
        status, answer = self.post("models/load", name=f"{REPO}:F16")
        self.assertIn(status, (404, 500, 503), answer)
        self.assertIn("GGUF", answer["error"]["message"])
        self.assertEqual(self.server.post("/v1/chat/completions", QUESTION)[0], 200)

    def test_a_model_in_use_is_not_unloaded(self):
        self.pull()
        with self.answering():
            self.refused(409, "in use", "models/unload", name=NAME)


class Pull(LibraryCase):
    def test_errors_of_the_hub_are_events(self):
        error = self.pull("org/nothing", "Q8_0")[-1]["error"]
        self.assertIn("org/nothing", error["message"])
        self.assertEqual(error["type"], "not_found_error")
        self.assertIn("it has F16, Q8_0", self.pull(quant="Q2_K")[-1]["error"]["message"])
        self.hub.change_content = lambda content: b"z" * len(content)
        self.assertIn("should have", self.pull()[-1]["error"]["message"])
        self.assertNotIn(NAME, self.models())
        self.hub.api_status = (500, {})
        status, answer = self.get("/slipstream/hub/search?q=needle")
        self.assertGreaterEqual(status, 429, answer)
        self.assertIn("message", answer["error"])

    def test_a_second_one_is_refused_and_leaving_ends_the_first(self):
        self.hub.piece_seconds = 0.05  # 3 MiB take 5 s over four connections
        with self.pulling() as response:
            self.assertTrue(response.readline().startswith(b"data: "))
            self.refused(409, "org/slow-GGUF:Q4_0", "hub/pull", repo=REPO, quant=QUANT)
        self.server.wait_for_line(r"event=hub\.pulled .*stopped", seconds_max=10)
        time.sleep(0.5)  # what is under way arrives
        n_served = self.hub.n_served_bytes()
        self.assertLess(n_served, 3 << 20)
        time.sleep(0.5)
        self.assertEqual(self.hub.n_served_bytes(), n_served, "it still downloads")
        # The next one goes on where it was.
        self.hub.piece_seconds = 0
        events = self.pull("org/slow-GGUF", "Q4_0")
        self.assertEqual(events[-1], {"done": True})
        self.assertLess(self.hub.n_repeated_bytes("s-Q4_0.gguf"), 2 << 20)

    def test_the_end_of_the_server_ends_a_pull(self):
        self.hub.piece_seconds = 0.05
        with self.pulling() as response:
            self.assertTrue(response.readline().startswith(b"data: "))
            started = time.monotonic()
            self.assertEqual(self.server.stop(), 0)
            self.assertLess(time.monotonic() - started, 10)


class WithoutModel(LibraryCase):
    """A server that starts with nothing but the hub, for who has a key."""
    arguments = ("--ctx", "2048", "--hub", "--api-key", KEY)
    model = None

    def test_every_route_wants_the_key(self):
        for method, path in (("GET", "models"), ("POST", "models/load"), ("POST", "models/unload"),
                             ("POST", "models/remove"), ("GET", "hub/search?q=x"), ("POST", "hub/pull")):
            status, answer, _ = self.server.ask(method, f"/slipstream/{path}", "{}")
            self.assertEqual(status, 401, answer)
        self.assertEqual(self.hub.requests, [])

    def test_the_first_model_comes_from_the_hub(self):
        key = {"Authorization": f"Bearer {KEY}"}
        status, answer, _ = self.server.ask("POST", "/v1/chat/completions", QUESTION, key)
        self.assertEqual(status, 404, answer)
        status, text, _ = self.server.ask("POST", "/slipstream/hub/pull",
                                          {"repo": REPO, "quant": QUANT}, key)
        self.assertIn('{"done":true}', text)
        status, answer, _ = self.server.ask("POST", "/v1/chat/completions",
                                            {**QUESTION, "model": NAME}, key)
        self.assertEqual(status, 200, answer)


class WithoutHub(LibraryCase):
    arguments = ("--name", "first", "--ctx", "2048")

    def test_the_routes_are_not_there(self):
        for path in ("models", "hub/search?q=x"):
            status, answer = self.get(f"/slipstream/{path}")
            self.assertEqual(status, 404)
            self.assertIn("--hub", answer["error"]["message"])
        self.refused(404, "--hub", "hub/pull", repo=REPO, quant=QUANT)
        self.assertEqual(self.server.post("/v1/chat/completions", {**QUESTION, "model": NAME})[0], 404)
        self.assertEqual(self.hub.requests, [])


if __name__ == "__main__":
    unittest.main()
