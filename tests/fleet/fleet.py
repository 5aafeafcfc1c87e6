"""Machines for tests: network namespaces with a cable from the front, which serves, to each host, which
runs the packaged ggml-rpc-server with our device.

Environment: TURBO_PLUGIN (libggml-turbo.so). Needs root, network namespaces and the packages
iproute2, llama.cpp-tools-extra and libggml0-backend-rpc.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time

FRONT = "slipstream-front"
PORT = 50052


def ip(*words, check=True):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check)


def rpc_server():
    """The packaged program; None if it is not installed for this architecture."""
    found = sorted(pathlib.Path("/usr/libexec").glob(f"{os.uname().machine}-*/llama/bin/ggml-rpc-server"))
    return found[0] if found else None


def why_not():
    """What is missing for machines here; None if there can be some."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if rpc_server() is None:
        return "no ggml-rpc-server: install llama.cpp-tools-extra"
    try:
        made = ip("netns", "add", "slipstream-probe", check=False)
        ip("netns", "del", "slipstream-probe", check=False)
    except FileNotFoundError:
        return "no ip: install iproute2"
    return None if made.returncode == 0 else f"no network namespaces: {made.stderr.strip()}"


def skip_without_machines():
    """Ends the test with ctest's code for what was not run."""
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)


@contextlib.contextmanager
def inside(machine):
    """What this thread opens and starts belongs to that machine."""
    with open("/proc/self/ns/net") as own, open(f"/run/netns/{machine}") as other:
        os.setns(other.fileno(), os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(own.fileno(), os.CLONE_NEWNET)


class Host:
    """A machine at the end of a cable from the front."""

    def __init__(self, number):
        self.machine = f"slipstream-host{number}"
        self.address = f"10.78.{number}.2"
        self.name = f"{self.address}:{PORT}"
        self.cable = f"cable{number}"
        self.process = None
        self.log = None
        ip("link", "add", self.cable, "netns", FRONT, "type", "veth", "peer", "name", self.cable,
           "netns", self.machine)
        for machine, end in ((FRONT, f"10.78.{number}.1/24"), (self.machine, f"{self.address}/24")):
            ip("-n", machine, "addr", "add", end, "dev", self.cable)
            ip("-n", machine, "link", "set", self.cable, "up")
            ip("-n", machine, "link", "set", "lo", "up")

    def start(self, log, scheme="turbo4", n_threads=1, wait=True):
        """Starts ggml-rpc-server; scheme None: without our device."""
        turbo = {} if scheme is None else {"GGML_BACKEND_PATH": os.environ["TURBO_PLUGIN"],
                                           "GGML_TURBO_KV": scheme}
        self.log = pathlib.Path(log)
        with inside(self.machine), open(log, "wb") as out:
            # Broken pipes are ignored, as below systemd: a client that dies would end it with a
            # signal.
            self.process = subprocess.Popen(
                [rpc_server(), "-H", self.address, "-p", str(PORT), "-t", str(n_threads)],
                stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **turbo},
                restore_signals=False)
        end = time.monotonic() + 60
        while wait and f"listening on {self.name}" not in self.said() and "transport" not in self.said():
            assert self.process.poll() is None and time.monotonic() < end, self.said()
            time.sleep(0.02)
        return self

    def said(self):
        return self.log.read_text(errors="replace")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def unplug(self):
        ip("-n", self.machine, "link", "set", self.cable, "down")

    def plug_in(self):
        ip("-n", self.machine, "link", "set", self.cable, "up")

    def resident_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=20)


@contextlib.contextmanager
def machines(n_hosts):
    """The hosts; their programs are not started yet."""
    names = [FRONT, *(f"slipstream-host{number}" for number in range(1, n_hosts + 1))]
    hosts = []
    for name in names:
        ip("netns", "del", name, check=False)
        ip("netns", "add", name)
    ip("-n", FRONT, "link", "set", "lo", "up")
    try:
        for number in range(1, n_hosts + 1):
            hosts.append(Host(number))
        yield hosts
    finally:
        for host in hosts:
            host.stop()
        for name in names:
            ip("netns", "del", name, check=False)


def list_of(hosts):
    """The value of --rpc."""
    return ",".join(host.name for host in hosts)
