"""docs/fleet.md's ssh tunnels, between machines that are network namespaces: commands, rights and settings are read
from there. In the place of ggml-rpc-server is a program that, as it does, serves one client and lets others wait.

Needs root, network namespaces and the packages openssh-server and openssh-client; skipped without.
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import fleet

DOCUMENT = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "fleet.md").read_text()
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
ONE_CLIENT = """
import socket
listener = socket.create_server(("127.0.0.1", %d))
print("listening", flush=True)
while True:
    client, _ = listener.accept()
    while data := client.recv(100):
        client.sendall(data)
    client.close()
""" % fleet.PORT


def documented(pattern):
    found = re.findall(pattern, DOCUMENT, re.M)
    assert len(found) == 1, (pattern, found)
    return found[0]


BY_HAND = documented(r"^\$ (ssh -N .*) &$")
UNIT = documented(r"^ExecStart=/usr/bin/(ssh -N .*)$")
KEY_RIGHTS = documented(r"`(restrict,[^`]*)` before the key")
SERVER_SETTINGS = re.findall(r"^(ClientAlive\w+ \d+)$", DOCUMENT, re.M)


def why_not():
    if SSHD is None or shutil.which("ssh") is None:
        return "no sshd: install openssh-server and openssh-client"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if fleet.ip("netns", "add", "slipstream-probe", check=False).returncode != 0:
        return "no network namespaces"
    fleet.ip("netns", "del", "slipstream-probe")
    return None


class Tunnel(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.host, = self.enterContext(fleet.machines(1))
        self.make_keys()
        with fleet.inside(self.host.machine):
            self.start("program", [sys.executable, "-c", ONE_CLIENT], "listening")
            self.start_sshd()
        self.enterContext(fleet.inside(fleet.FRONT))

    def make_keys(self):
        for name in ("key", "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        (self.folder / "known").write_text(f"{self.host.address} {(self.folder / 'host_key.pub').read_text()}")
        (self.folder / "authorized").write_text(f"{KEY_RIGHTS} {(self.folder / 'key.pub').read_text()}")
        (self.folder / "config").write_text("\n".join([
            "Host host", f"HostName {self.host.address}", "User root", f"IdentityFile {self.folder}/key",
            f"UserKnownHostsFile {self.folder}/known", ""]))

    def start_sshd(self):
        pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        (self.folder / "sshd_config").write_text("\n".join([
            f"ListenAddress {self.host.address}", f"HostKey {self.folder}/host_key", "PidFile none", "UsePAM no",
            f"AuthorizedKeysFile {self.folder}/authorized", "StrictModes no", "PermitRootLogin prohibit-password",
            *SERVER_SETTINGS, ""]))
        self.start("sshd", [SSHD, "-D", "-e", "-f", self.folder / "sshd_config"], "Server listening")

    def start(self, name, command, says=""):
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(lambda: says in log.read_text(), 10)
        return process

    def wait_for(self, what, seconds_max):
        end = time.monotonic() + seconds_max
        while not what():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def tunnel(self, command):
        """As it is documented, with this test's configuration."""
        words = shlex.split(command.replace("tunnel@host", "host"))
        return self.start("tunnel", [words[0], "-F", self.folder / "config", *words[1:]])

    def connect(self):
        """A connection that the program on the host serves."""
        end = time.monotonic() + 10
        while True:
            try:
                client = socket.create_connection(("127.0.0.1", fleet.PORT), timeout=60)
                break
            except ConnectionRefusedError:
                self.assertLess(time.monotonic(), end, "no tunnel")
                time.sleep(0.05)
        self.addCleanup(client.close)
        client.sendall(b"there?")
        self.assertEqual(client.recv(100), b"there?")
        return client


class Through(Tunnel):
    def test_the_documented_tunnels_work_and_a_killed_one_is_noticed(self):
        for command in (BY_HAND, UNIT):
            tunnel = self.tunnel(command)
            client = self.connect()
            tunnel.kill()
            killed = time.monotonic()
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(client.recv(100), b"")
            self.assertLess(time.monotonic() - killed, 2)
            # The host has learned it, too: it serves the next one.

    def test_the_key_lets_it_do_nothing_else(self):
        for words, why in ((["host", "echo", "in"], ""), (["-W", "127.0.0.1:22", "host"], "prohibited")):
            tried = subprocess.run(["ssh", "-F", self.folder / "config", "-o", "BatchMode=yes", *words],
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
            self.assertNotEqual(tried.returncode, 0)
            self.assertEqual(tried.stdout, "")
            self.assertIn(why, tried.stderr)


class Cable(Tunnel):
    """At night: it takes as long as ssh takes to notice."""

    def test_both_ends_notice_that_the_other_machine_is_gone(self):
        tunnel = self.tunnel(BY_HAND)
        client = self.connect()
        self.host.unplug()
        unplugged = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            self.assertEqual(client.recv(100), b"")
        seconds = {"front": time.monotonic() - unplugged}
        self.assertNotEqual(tunnel.wait(timeout=10), 0)
        self.wait_for(lambda: not self.connections_on_host(), 60)
        seconds["host"] = time.monotonic() - unplugged
        print(f"\nnoticed after seconds: {seconds}", flush=True)
        self.assertLess(seconds["front"], 20)
        self.assertLess(seconds["host"], 40)
        self.host.plug_in()
        self.tunnel(BY_HAND)
        self.connect()

    def connections_on_host(self):
        return subprocess.run(["ip", "netns", "exec", self.host.machine, "ss", "-Htn", "state", "established",
                               f"sport = :{fleet.PORT}"], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
