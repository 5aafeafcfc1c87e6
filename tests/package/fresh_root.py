"""A Debian root as debootstrap makes it, with nothing of ours, and commands that run inside it.

Needs root. Commands have mounts, processes and a network of their own: they see nothing but the root and
loopback, what they leave running ends with them, and a port that is taken outside is free inside.
"""

import pathlib
import re
import shutil
import subprocess

SUITE = "forky"
NAMESPACES = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")
# As PID 1 of its own namespaces: what is mounted and started here ends with it.
ENTER = """
set -e
root=$1 archives=$2; shift 2
mount --bind "$archives" "$root/var/cache/apt/archives"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
if [ "$1" = offline ]; then ip link set lo up; fi
shift
exec "$@"
"""


def mirror():
    """The one that this machine's apt uses."""
    sources = pathlib.Path("/etc/apt/sources.list").read_text()
    return re.search(rf"^deb (\S+) {SUITE} ", sources, flags=re.M)[1]


class FreshRoot:
    def __init__(self, folder, archives):
        """folder: where the root is made. archives: packages that need not be downloaded again."""
        self.path = pathlib.Path(folder)
        self.archives = pathlib.Path(archives)
        (self.archives / "partial").mkdir(parents=True, exist_ok=True)
        script = "/usr/share/debootstrap/scripts/sid"  # fits every later suite
        self.check([*NAMESPACES, "debootstrap", "--variant=minbase", f"--cache-dir={self.archives}",
                    SUITE, self.path, mirror(), script], timeout_s=1200)
        configuration = self.path / "etc" / "apt" / "apt.conf.d" / "90test"
        # Nobody is there to say yes; and a mirror may be a snapshot whose release file has run out.
        configuration.write_text('APT::Get::Assume-Yes "true";\nAcquire::Check-Valid-Until "false";\n'
                                 'APT::Keep-Downloaded-Packages "true";\n'
                                 'APT::Sandbox::User "root";\nDpkg::Options:: "--force-unsafe-io";\n')
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self.path / "etc" / name)
        self.run("apt-get", "-q", "update")

    @staticmethod
    def check(command, timeout_s, **settings):
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                                timeout=timeout_s, check=False, stdin=subprocess.DEVNULL, **settings)
        assert result.returncode == 0, f"{command}\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
        return result.stdout

    def entered(self, *command, offline=False):
        """A command line that runs a command of this machine where the root is mounted."""
        network = ["--net"] if offline else []
        return [*NAMESPACES, *network, "sh", "-c", ENTER, "sh", str(self.path), str(self.archives),
                "offline" if offline else "online", *command]

    def chrooted(self, *command):
        return ["chroot", str(self.path), "/usr/bin/env", "-i", "HOME=/root", "LC_ALL=C.UTF-8",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "DEBIAN_FRONTEND=noninteractive", *command]

    def run(self, *command, timeout_s=900):
        """Output of a command inside the root."""
        return self.check(self.entered(*self.chrooted(*command)), timeout_s)

    def files(self):
        """Every path but those that apt, dpkg and logs write into for any package."""
        listed = self.check(["find", ".", "-xdev", "-path", "./var/log", "-prune", "-o", "-path",
                             "./var/cache", "-prune", "-o", "-path", "./var/lib/apt", "-prune", "-o",
                             "-path", "./root", "-prune", "-o", "-print"], 60, cwd=self.path)
        return set(listed.splitlines())
