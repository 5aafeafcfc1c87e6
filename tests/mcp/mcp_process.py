"""`slipstream mcp` as a process, and messages of both eras of the protocol.

Environment: SLIPSTREAM_BIN, the built program.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import subprocess
import tempfile
import threading

PROGRAM = os.environ["SLIPSTREAM_BIN"]
MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {}}


def modern(method, params=None, id=1):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": META}}


def legacy(method, params=None, id=1):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def initialize(revision, id=0):
    return legacy("initialize", {"protocolVersion": revision, "capabilities": {},
                                 "clientInfo": {"name": "test", "version": "1"}}, id)


def call(tool, arguments, id=1):
    return modern("tools/call", {"name": tool, "arguments": arguments}, id)


class Project:
    """A folder with a few files, and a place for an index."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        base = pathlib.Path(self.folder.name).resolve()
        self.root = base / "birds"
        self.index = base / "index.db"
        self.write("src/heron.py", "class Heron:\n    def wade_slowly(self, river_depth):\n        return river_depth\n")
        self.write("docs/birds.md", "# Waders\n\nThe heron stands in the river and waits.\n")
        self.write(".env", "PASSWORD=heron\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def options(self):
        return ["--index", str(self.index)]

    @contextlib.contextmanager
    def writer_lock(self):
        """Nobody else writes the index meanwhile, so nobody brings it up to date."""
        with open(f"{self.index}-writer", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def close(self):
        self.folder.cleanup()


class McpProcess:
    """The program, with standard input and output as pipes."""

    def __init__(self, *arguments):
        self.errors = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen([PROGRAM, "mcp", *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)

    def send(self, *messages):
        """Texts as they are, others as JSON, each on a line, in one piece."""
        lines = [message if isinstance(message, bytes) else
                 (message if isinstance(message, str) else json.dumps(message)).encode()
                 for message in messages]
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def receive(self, seconds_max=60):
        timer = threading.Timer(seconds_max, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        assert line, f"no answer:\n{self.log()}"
        return json.loads(line)

    def ask(self, message, seconds_max=60):
        self.send(message)
        return self.receive(seconds_max)

    def result(self, tool, arguments):
        """Of a call that must succeed: what it says as JSON."""
        reply = self.ask(call(tool, arguments))
        assert not reply["result"]["isError"], reply
        return reply["result"]["structuredContent"]

    def log(self):
        return pathlib.Path(self.errors.name).read_text()

    def end(self, seconds_max=20):
        """Closes its input. Returns the status and what it still wrote."""
        rest, _ = self.process.communicate(timeout=seconds_max)
        return self.process.returncode, [json.loads(line) for line in rest.splitlines()]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.errors.close()
