"""A cumulusd of a test's own, whose transfers and shared regions can be counted from outside."""

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request

from conftest import PROGRAMS


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


_others = set()  # the inodes of regions that this process had before the test: clients of other test files may live on


def _open_regions(pid):
    """The inode of each descriptor of a shared region that a process has."""
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            if "cumulus-shared" in os.readlink(f"{folder}/{name}"):
                yield os.stat(f"{folder}/{name}").st_ino
        except FileNotFoundError:  # closed meanwhile
            pass


def _mapped_regions(pid):
    """The inode and the line of each mapping of a shared region."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return [(int(line.split()[4]), line) for line in maps if "cumulus-shared" in line]


def leave_out_others():
    """From now on regions_in and mappings_in leave out what this process has now."""
    if os.path.isdir("/proc/self/fd"):
        _others.clear()
        _others.update(_open_regions("self"), (inode for inode, _ in _mapped_regions("self")))


def regions_in(pid):
    """How many descriptors of shared regions a process has."""
    return sum(inode not in _others for inode in _open_regions(pid))


def mappings_in(pid):
    """The lines of a process's memory that are of shared regions."""
    return [line for inode, line in _mapped_regions(pid) if inode not in _others]


def _state_of(thread):
    with open(f"{thread}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def eventually(holds, seconds=20):
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


@contextlib.contextmanager
def forked_child():
    """A child of this process that does nothing, and lives as long as the context."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        yield
    finally:
        os.close(write)
        os.close(read)
        os.waitpid(child, 0)


class LocalDaemon:
    """Serves at `address`, a Unix socket in `folder`, with what `flags` say besides."""

    def __init__(self, folder, *flags, backend="cpu"):
        self.address = f"unix:{folder / 'socket'}"
        self._metrics = f"127.0.0.1:{_free_port()}"
        port_file = folder / "address"
        port_file.unlink(missing_ok=True)
        words = [str(PROGRAMS / "cumulusd"), "--listen", self.address, "--backend", backend, "--lame-duck", "0", "--drain", "0",
                 "--metrics-address", self._metrics, "--port-file", str(port_file), *map(str, flags)]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not port_file.exists() and self._process.poll() is None:
            time.sleep(0.01)
        self.started = self._process.poll() is None

    @property
    def pid(self):
        return self._process.pid

    def signal(self, number):
        self._process.send_signal(number)

    def stand_still(self):
        """Until SIGCONT; from when this returns on, where signal() returns before the last thread has stopped."""
        self.signal(signal.SIGSTOP)
        threads = f"/proc/{self._process.pid}/task"
        assert eventually(lambda: all(_state_of(f"{threads}/{each}") == "T" for each in os.listdir(threads)))

    def end(self):
        self.signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def moved(self):
        """Bytes that transfers moved, by (direction, transport)."""
        time.sleep(0.11)  # the page is made anew ten times a second
        with urllib.request.urlopen(f"http://{self._metrics}/metrics") as page:
            lines = page.read().decode().splitlines()
        counted = {}
        for line in lines:
            if line.startswith("cumulus_transfer_bytes_total{"):
                labels, _, value = line.partition("{")[2].partition("} ")
                named = dict(each.split("=") for each in labels.split(","))
                counted[named["direction"].strip('"'), named["transport"].strip('"')] = int(float(value))
        return counted

    def regions(self):
        """What the daemon has of them now."""
        return regions_in(self.pid)
