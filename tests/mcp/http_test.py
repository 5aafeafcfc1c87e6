"""`POST /mcp` of `slipstream serve --mcp`.

Environment: SLIPSTREAM_BIN, the built program.
"""

import pathlib
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))

from mcp_process import MODERN, PROGRAM, Project, call, initialize, legacy, modern  # noqa: E402
from serving import NEEDLE_MODEL, Serving  # noqa: E402

KEY = "a-key-of-the-test"


def headers(message, **more):
    """As a client of the latest revision sends them."""
    found = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
             "MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
    name = message["params"].get("name") or message["params"].get("uri")
    return {**found, **({"Mcp-Name": name} if name else {}), **more}


class Http(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.project = Project()
        cls.addClassCleanup(cls.project.close)
        cls.server = cls.serve("--mcp", "--mcp-project", str(cls.project.root), *cls.project.options())
        cls.addClassCleanup(cls.server.stop)
        assert cls.result("wait_until_fresh", {"seconds": 30})["index"]["is_fresh"]

    @classmethod
    def serve(cls, *arguments):
        return Serving("--name", "needle", "--ctx", "2048", "--kv", "f16", *arguments)

    @classmethod
    def ask(cls, message, **more):
        return cls.server.ask("POST", "/mcp", message, headers(message, **more))

    @classmethod
    def result(cls, tool, arguments):
        status, reply, _ = cls.ask(call(tool, arguments))
        assert status == 200 and not reply["result"]["isError"], reply
        return reply["result"]["structuredContent"]

    def test_a_client_of_the_latest_revision(self):
        status, reply, answered = self.ask(modern("server/discover"))
        self.assertEqual((status, answered["Content-Type"]), (200, "application/json"))
        self.assertEqual(reply["result"]["supportedVersions"], [MODERN])
        self.assertEqual(self.result("search", {"query": "heron waits"})["places"][0]["path"], "docs/birds.md")
        uri = f"file://{self.project.root}/docs/birds.md"
        status, reply, _ = self.ask(modern("resources/read", {"uri": uri}))
        self.assertEqual(reply["result"]["contents"][0]["text"],
                         "# Waders\n\nThe heron stands in the river and waits.\n")

    def test_a_client_that_begins_with_initialize(self):
        status, reply, answered = self.server.ask("POST", "/mcp", initialize("2025-11-25"))
        self.assertEqual((status, reply["result"]["protocolVersion"]), (200, "2025-11-25"))
        self.assertNotIn("Mcp-Session-Id", answered)
        agreed = {"MCP-Protocol-Version": "2025-11-25"}
        status, reply, _ = self.server.ask(
            "POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, agreed)
        self.assertEqual((status, reply), (202, ""))
        status, reply, _ = self.server.ask("POST", "/mcp", legacy("tools/list"), agreed)
        self.assertEqual(status, 200)
        self.assertNotIn("add_project", [tool["name"] for tool in reply["result"]["tools"]])
        status, reply, _ = self.server.ask("POST", "/mcp", legacy("nothing"), agreed)
        self.assertEqual((status, reply["error"]["code"]), (200, -32601))

    def test_headers_and_body_must_agree(self):
        asked = call("search", {"query": "heron"})
        for wrong in ({"Mcp-Name": "read_lines"}, {"Mcp-Method": "tools/list"},
                      {"MCP-Protocol-Version": "2025-11-25"}):
            status, reply, _ = self.ask(asked, **wrong)
            self.assertEqual((status, reply["error"]["code"]), (400, -32020), wrong)
        status, reply, _ = self.server.ask("POST", "/mcp", modern("tools/list"))
        self.assertEqual((status, reply["error"]["code"]), (400, -32020), "no headers")
        status, reply, _ = self.ask(modern("nothing"))
        self.assertEqual((status, reply["error"]["code"]), (404, -32601))
        status, reply, _ = self.server.ask("POST", "/mcp", legacy("tools/list"),
                                           {"MCP-Protocol-Version": "1900-01-01"})
        self.assertEqual((status, reply["error"]["code"]), (400, -32022))
        self.assertEqual(reply["error"]["data"]["supported"], [MODERN])

    def test_other_methods_are_refused(self):
        for method in ("GET", "DELETE", "PUT"):
            self.assertEqual(self.server.ask(method, "/mcp")[0], 405, method)

    def test_foreign_pages_are_refused(self):
        for foreign in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            status, reply, _ = self.ask(modern("tools/list"), **foreign)
            self.assertEqual(status, 403, reply)
        own = f"http://127.0.0.1:{self.server.port}"
        self.assertEqual(self.ask(modern("tools/list"), Origin=own)[0], 200)

    def test_what_is_no_message_is_refused(self):
        for body, status, code in (("", 400, -32700), ("{", 400, -32700), ("[" * 100_000, 400, -32600),
                                   ("7", 400, -32600), ("[]", 400, -32600), ("x" * (300 << 10), 413, 413)):
            answered, reply, _ = self.server.ask("POST", "/mcp", body)
            self.assertEqual((answered, reply["error"]["code"]), (status, code), body[:20])
            self.assertEqual(reply["jsonrpc"], "2.0")

    def test_a_client_of_the_network_does_not_choose_folders(self):
        status, reply, _ = self.ask(call("add_project", {"folder": "/tmp"}))
        self.assertEqual((status, reply["error"]["code"]), (200, -32602))
        self.assertEqual([one["project"] for one in self.result("list_projects", {})["projects"]],
                         [str(self.project.root)])

    def test_waits_are_few_and_hold_up_nobody(self):
        project = Project()
        self.addCleanup(project.close)
        with project.writer_lock():  # so that nothing is ever fresh
            server = self.serve("--mcp", "--mcp-project", str(project.root), *project.options())
            replies = []

            def wait(seconds):
                message = call("wait_until_fresh", {"seconds": seconds})
                replies.append(server.ask("POST", "/mcp", message, headers(message))[1]["result"])

            waits = [threading.Thread(target=wait, args=(4,)) for _ in range(6)]
            for thread in waits:
                thread.start()
            time.sleep(0.5)
            began = time.monotonic()
            for _ in range(5):
                self.assertEqual(server.ask("GET", "/health")[0], 200)
                message = modern("tools/list")
                self.assertEqual(server.ask("POST", "/mcp", message, headers(message))[0], 200)
            self.assertLess(time.monotonic() - began, 2)
            for thread in waits:
                thread.join()
            waited = [reply["structuredContent"]["index"] for reply in replies if not reply["isError"]]
            self.assertEqual([index["is_fresh"] for index in waited], [False, False])
            self.assertEqual({reply["content"][0]["text"].split(":")[0] for reply in replies if reply["isError"]},
                             {"others wait already"})
            last = threading.Thread(target=wait, args=(50,))
            last.start()
            time.sleep(0.5)
            began = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - began, 10)
            last.join()
            self.assertFalse(replies[-1]["structuredContent"]["index"]["is_fresh"])

    def test_keys_guard_it(self):
        server = self.serve("--mcp", *self.project.options(), "--api-key", KEY)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        message = modern("tools/list")
        status, reply, _ = server.ask("POST", "/mcp", message, headers(message))
        self.assertEqual((status, reply["error"]["code"]), (401, 401))
        status, reply, _ = server.ask("POST", "/mcp", message,
                                      headers(message, Authorization=f"Bearer {KEY}"))
        self.assertEqual(status, 200, reply)

    def test_it_is_offered_only_if_it_is_asked_for(self):
        server = self.serve()
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        status, reply, _ = server.ask("POST", "/mcp", modern("tools/list"))
        self.assertEqual(status, 404)
        self.assertIn("without --mcp", reply["error"]["message"])
        wrong = subprocess.run([PROGRAM, "serve", NEEDLE_MODEL, "--port", "0", "--mcp-allow-add"],
                               capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("are for --mcp", wrong.stderr)

    def test_it_adds_folders_where_the_user_allows_it(self):
        other = Project()
        self.addCleanup(other.close)
        server = self.serve("--mcp", "--mcp-allow-add", *other.options())
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        message = call("add_project", {"folder": str(other.root)})
        status, reply, _ = server.ask("POST", "/mcp", message, headers(message))
        self.assertFalse(reply["result"]["isError"], reply)


if __name__ == "__main__":
    unittest.main()
