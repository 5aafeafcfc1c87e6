"""`slipstream mcp`: the Model Context Protocol over standard input and output.

Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import signal
import time
import unittest

from mcp_process import McpProcess, Project, call, initialize, legacy, modern


class Stdio(unittest.TestCase):
    def setUp(self):
        self.project = Project()
        self.addCleanup(self.project.close)

    def start(self, *arguments):
        mcp = McpProcess(*self.project.options(), *arguments)
        self.addCleanup(mcp.close)
        return mcp

    def start_on_project(self):
        mcp = self.start("--project", str(self.project.root))
        self.assertTrue(mcp.result("wait_until_fresh", {"seconds": 30})["index"]["is_fresh"])
        return mcp

    def test_a_client_of_the_latest_revision(self):
        mcp = self.start_on_project()
        found = mcp.ask(modern("server/discover"))["result"]
        self.assertEqual(found["supportedVersions"], ["2026-07-28"])
        names = [tool["name"] for tool in mcp.ask(modern("tools/list"))["result"]["tools"]]
        self.assertEqual(names, ["search", "read_lines", "find_symbol", "find_related",
                                 "list_projects", "index_status", "wait_until_fresh"])
        places = mcp.result("search", {"query": "where does the heron wait"})["places"]
        self.assertEqual(places[0]["path"], "docs/birds.md")
        lines = mcp.result("read_lines", {"path": "docs/birds.md", "first_line": 3})
        self.assertEqual(lines["text"], "The heron stands in the river and waits.\n")
        self.assertEqual(mcp.end(), (0, []))

    def test_clients_that_begin_with_initialize(self):
        for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
            mcp = self.start_on_project()
            self.assertEqual(mcp.ask(initialize(revision))["result"]["protocolVersion"], revision)
            mcp.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            self.assertEqual(mcp.ask(legacy("ping", id="p"))["id"], "p")
            called = mcp.ask(legacy("tools/call", {"name": "search", "arguments": {"query": "heron"}}))
            self.assertIn("docs/birds.md:1-3", called["result"]["content"][0]["text"])
            self.assertEqual(mcp.end(), (0, []))

    def test_messages_that_are_sent_together_are_all_answered(self):
        mcp = self.start_on_project()
        mcp.send(initialize("2025-11-25"), legacy("tools/list", id=1),
                 *(legacy("tools/call", {"name": "search", "arguments": {"query": "heron"}}, id=i)
                   for i in range(2, 30)), legacy("ping", id=30))
        status, replies = mcp.end()
        self.assertEqual(status, 0)
        self.assertEqual(sorted(reply["id"] for reply in replies), list(range(31)))
        self.assertTrue(all("result" in reply for reply in replies), replies)

    def test_an_edit_is_found_at_once(self):
        mcp = self.start_on_project()
        for bird in ("stork", "egret", "crane"):
            self.project.write("docs/new.md", f"Today a {bird} has come.\n")
            found = mcp.result("search", {"query": bird})
            self.assertTrue(found["index"]["is_fresh"], found)
            self.assertEqual(found["places"][0]["path"], "docs/new.md")

    def test_secrets_and_other_folders_are_out_of_reach(self):
        outside = self.project.root.parent / "outside.txt"
        outside.write_text("PASSWORD of the other\n")
        (self.project.root / "link.txt").symlink_to(outside)
        mcp = self.start_on_project()
        self.assertEqual(mcp.result("search", {"query": "PASSWORD"})["places"], [])
        for path in (".env", "link.txt", "../outside.txt", str(outside), "/etc/passwd",
                     f"{self.project.root}/../outside.txt"):
            reply = mcp.ask(call("read_lines", {"path": path}))
            self.assertTrue(reply["result"]["isError"], reply)
            self.assertNotIn("PASSWORD", json.dumps(reply))
            reply = mcp.ask(modern("resources/read", {"uri": f"file://{self.project.root}/{path}"}))
            self.assertEqual(reply["error"]["code"], -32602, reply)
        self.assertEqual({one["name"] for one in mcp.ask(modern("resources/list"))["result"]["resources"]},
                         {"docs/birds.md", "src/heron.py"})

    def test_what_is_no_message_is_refused_and_the_next_one_answered(self):
        mcp = self.start_on_project()
        for wrong, code in ((b"{", -32700), (b"\xff\xfe", -32700), (b"[" * 100_000, -32600),
                            (b"[]", -32600), (b"7", -32600), (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
                            (b" " * (1 << 20), -32600), (b'{"a":"' + b"x" * (8 << 20) + b'"}', -32600)):
            reply = mcp.ask(wrong)
            self.assertEqual(reply["error"]["code"], code, wrong[:40])
            self.assertNotIn("id", reply)
        mcp.send("", "   ")  # no message: no answer
        self.assertIn("result", mcp.ask(legacy("ping")))
        self.assertEqual(mcp.end(), (0, []))

    def test_folders_are_added_only_if_the_user_allows_it(self):
        folder = {"folder": str(self.project.root)}
        mcp = self.start()
        self.assertEqual(mcp.ask(call("add_project", folder))["error"]["code"], -32602)
        self.assertEqual(mcp.result("list_projects", {}), {"projects": []})
        mcp = self.start("--allow-add")
        mcp.result("add_project", folder)
        self.assertTrue(mcp.result("wait_until_fresh", {"seconds": 30})["index"]["is_fresh"])
        self.assertEqual(mcp.result("search", {"query": "heron"})["places"][0]["project"],
                         str(self.project.root))
        self.assertEqual(mcp.ask(call("add_project", {"folder": "/"}))["result"]["isError"], True)

    def test_several_processes_share_an_index(self):
        first = self.start_on_project()
        second = self.start_on_project()
        self.project.write("docs/new.md", "Today a stork has come.\n")
        self.assertEqual(second.result("search", {"query": "stork"})["places"][0]["path"], "docs/new.md")
        first.process.kill()
        first.process.wait()
        self.project.write("docs/new.md", "Today an egret has come.\n")
        self.assertTrue(second.result("wait_until_fresh", {"seconds": 30})["index"]["is_fresh"])
        self.assertEqual(second.result("search", {"query": "egret"})["places"][0]["path"], "docs/new.md")

    def test_it_ends_with_its_input_or_a_signal(self):
        for end in ("input", signal.SIGTERM, signal.SIGINT):
            mcp = self.start_on_project()
            began = time.monotonic()
            if end != "input":
                mcp.process.send_signal(end)
                self.assertEqual(mcp.process.wait(timeout=20), 0, end)
            self.assertEqual(mcp.end(), (0, []), end)
            self.assertLess(time.monotonic() - began, 10)

    def test_it_ends_while_a_call_waits(self):
        with self.project.writer_lock():
            for end in ("input", signal.SIGTERM):
                mcp = self.start("--project", str(self.project.root))
                mcp.send(call("wait_until_fresh", {"seconds": 50}, id="wait"))
                self.assertIn("result", mcp.ask(modern("tools/list")))  # which does not wait for it
                began = time.monotonic()
                if end != "input":
                    mcp.process.send_signal(end)
                    mcp.process.wait(timeout=20)
                status, replies = mcp.end()
                self.assertLess(time.monotonic() - began, 10)
                self.assertEqual(status, 0)
                self.assertEqual([reply["id"] for reply in replies], ["wait"])
                self.assertFalse(replies[0]["result"]["structuredContent"]["index"]["is_fresh"])

    def test_only_messages_go_to_standard_output(self):
        mcp = self.start_on_project()
        mcp.ask(modern("tools/list"))
        self.assertEqual(mcp.end(), (0, []))  # every line is JSON
        self.assertIn("event=mcp.ready", mcp.log())


if __name__ == "__main__":
    unittest.main()
