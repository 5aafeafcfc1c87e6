"""Replicas for tests: several `slipstream serve` on this machine behind the packaged HAProxy with the
configuration of packaging/haproxy.

Environment: SLIPSTREAM_BIN, the built program. Needs the package haproxy.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("SLIPSTREAM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from serving import Serving  # noqa: E402

CONFIGURATION = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "haproxy" / "haproxy.cfg"
KEY = "k1"
NAMES = "abcdefgh"
# What a policy other than the shipped one has in the place of hashing and of the table.
OTHER_POLICIES = {"roundrobin": "balance roundrobin", "leastconn": "balance leastconn"}


def skip_without_haproxy():
    """Ends the test with ctest's code for what was not run."""
    if shutil.which("haproxy") is None:
        print("skipped: no haproxy")
        sys.exit(77)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def serve(*arguments):
    return Serving("--api-key", KEY, *arguments)


def address_of(server):
    return f"127.0.0.1:{server.port}"


def end(server):
    """Whatever state it is in."""
    if server.process.poll() is None:
        server.process.kill()
    server.process.wait()
    server.log_file.close()


def configuration(folder, addresses, policy="prefix"):
    """The shipped text, with these servers, and what it needs to run here."""
    text = CONFIGURATION.read_text()
    text = text.replace("/run/haproxy", str(folder)).replace("    log /dev/log local0\n", "")
    text = re.sub(r"^    (user|group) haproxy\n", "", text, flags=re.M)
    if policy != "prefix":
        text = re.sub(r"^    (hash-|stick).*\n", "", text, flags=re.M)
        text, n_rules = re.subn(r"^    balance .*$", "    " + OTHER_POLICIES[policy], text, flags=re.M)
        assert n_rules == 1, text
    lines = [f"    server {name} {address}\n" for name, address in zip(NAMES, addresses)]
    rule = "    http-response set-header x-replica %s\n"
    text, n_places = re.subn(r"(    server \w 10\..*\n)+", "".join([*lines, rule]), text)
    assert n_places == 1, text
    return text


class Balancer:
    """HAProxy in front of servers, in the order of their names a, b, c, ..."""

    def __init__(self, addresses, policy="prefix"):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.port, self.metrics_port = free_port(), free_port()
        path = self.folder / "haproxy.cfg"
        path.write_text(configuration(self.folder, addresses, policy))
        self.environment = {**os.environ, "SLIPSTREAM_API_KEY": KEY,
                            "SLIPSTREAM_BIND": f"127.0.0.1:{self.port}",
                            "SLIPSTREAM_METRICS_BIND": f"127.0.0.1:{self.metrics_port}"}
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(["haproxy", "-db", "-f", path], env=self.environment,
                                            stdout=log, stderr=log)
        end = time.monotonic() + 20
        while self.states() != ["UP"] * len(addresses):
            if self.process.poll() is not None or time.monotonic() > end:
                said = self.said()
                self.stop()
                raise AssertionError(said)
            time.sleep(0.05)

    def said(self):
        return (self.folder / "log").read_text()

    def tell(self, command):
        """An answer of the administrator's socket; nothing if it is not there yet."""
        with socket.socket(socket.AF_UNIX) as admin, contextlib.suppress(FileNotFoundError,
                                                                          ConnectionRefusedError):
            admin.connect(str(self.folder / "admin.sock"))
            admin.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: admin.recv(65536), b"")).decode()
        return ""

    def statistics(self):
        """Of each server, by the names that HAProxy gives to columns."""
        rows = [line.split(",") for line in self.tell("show stat replicas 4 -1").splitlines() if line]
        return [dict(zip(rows[0], row)) for row in rows[1:]]

    def states(self):
        """UP, DOWN, ... of those that were checked: before, each is taken to be up."""
        return [row["status"] for row in self.statistics() if row["check_status"]]

    def wait_until_idle(self, seconds_max=60):
        """Until it, too, has seen the end of all answers."""
        end = time.monotonic() + seconds_max
        while any(row["scur"] != "0" for row in self.statistics()):
            assert time.monotonic() < end, self.tell("show stat")
            time.sleep(0.005)

    def wait_for_state(self, name, state, seconds_max=10):
        end = time.monotonic() + seconds_max
        while not self.states()[NAMES.index(name)].startswith(state):
            assert time.monotonic() < end, self.tell("show stat")
            time.sleep(0.02)

    def connection(self, timeout_s=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)

    def post(self, path, body, key=KEY):
        """(status, the replica's name, the body as JSON where it is)"""
        connection = self.connection()
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, data, {"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        with contextlib.suppress(json.JSONDecodeError):
            text = json.loads(text)
        return response.status, response.getheader("x-replica"), text

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        shutil.rmtree(self.folder)
