"""A cumulusd of one's own, for as long as this process lives."""

from __future__ import annotations

import atexit
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from typing import Optional, Tuple

from .errors import Unavailable, explain_absence

START_TIMEOUT = 60.0  # seconds; a GPU's context takes some
STOP_TIMEOUT = 3.0
MAX_SOCKET_PATH_BYTES = 107
END_TIMEOUT = 0.2  # a connection breaks a little before its process has ended


def _how(code: int) -> str:
    """As Popen.returncode has it."""
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


def find_daemon() -> str:
    """The program of the package cumulus-server, or the cumulusd in PATH."""
    try:
        import cumulus_server
    except ImportError:
        pass
    else:
        return str(cumulus_server.program("cumulusd"))
    found = shutil.which("cumulusd")
    if found is None:
        cure = "install the package cumulus-server, or name a running server: connect('HOST:PORT') or CUMULUS_SERVER"
        raise Unavailable(f"cannot find cumulusd, neither of the package cumulus-server nor in PATH; {cure}", cure=cure)
    return found


def _folder_for_a_socket() -> pathlib.Path:
    """In the folder for temporary ones, or in /tmp where the socket's path would be too long: those of batch systems have names of
    a hundred letters."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cumulus-"))
    if len(os.fsencode(folder / "socket")) <= MAX_SOCKET_PATH_BYTES:
        return folder
    folder.rmdir()
    return pathlib.Path(tempfile.mkdtemp(prefix="cumulus-", dir="/tmp"))


class PrivateDaemon:
    """Serves on a Unix socket in a folder that nobody else can enter, until stop() or the end of this process.

    A shell that waits for the end of its input ends the daemon even where this process is killed.
    """

    def __init__(self, backend: str = "") -> None:
        self._folder = _folder_for_a_socket()
        self.address = f"unix:{self._folder / 'socket'}"
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._watcher: Optional[subprocess.Popen[bytes]] = None
        atexit.register(self.stop)
        try:
            self._start(backend)
            self._wait()
            explain_absence(self.address, self._explain)
        except BaseException:
            self.stop()
            raise

    def _start(self, backend: str) -> None:
        words = [find_daemon(), "--listen", self.address, "--lame-duck", "0", "--drain", "1",
                 "--memory-on-demand"]
        if backend:
            words += ["--backend", backend]
        with open(self._folder / "log", "wb") as log:
            # A session of its own: Ctrl-C is for this process, which then ends the daemon.
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             start_new_session=True)
        self._watcher = subprocess.Popen(["/bin/sh", "-c", f"read _; kill {self._process.pid} 2>/dev/null"],
                                         stdin=subprocess.PIPE, start_new_session=True)

    def _wait(self) -> None:
        assert self._process is not None
        give_up = time.monotonic() + START_TIMEOUT
        while not self._accepts():
            if self._process.poll() is not None:
                raise Unavailable(f"the private cumulusd did not start: {self._log_tail()}")
            if time.monotonic() > give_up:
                raise Unavailable(f"the private cumulusd was not ready after {START_TIMEOUT:.0f} s: {self._log_tail()}")
            time.sleep(0.005)

    def _accepts(self) -> bool:
        probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            probe.connect(self.address[len("unix:"):])
            return True
        except OSError:
            return False
        finally:
            probe.close()

    def _log_tail(self) -> str:
        """What it has written, but for what only says how it is going."""
        lines = (self._folder / "log").read_text(errors="replace").splitlines()
        said = "\n".join(line for line in lines if " info " not in line[:32]) or "\n".join(lines)
        return said[-2000:] if said else "it wrote no log"

    def _explain(self) -> Tuple[str, str]:
        """Why nobody answers, and the cure."""
        process, log = self._process, self._folder / "log"
        cure = "connect() anew, which starts another"
        if process is None:
            return "the private cumulusd has been ended with its client", cure
        try:
            return f"the private cumulusd has ended, {_how(process.wait(END_TIMEOUT))}; its log, until the client is closed, is {log}", cure
        except subprocess.TimeoutExpired:
            return f"the private cumulusd (process {process.pid}) does not answer; its log, until the client is closed, is {log}", cure

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def stop(self) -> None:
        """Ends the daemon and removes its folder. Does nothing the second time."""
        atexit.unregister(self.stop)
        explain_absence(self.address, None)
        process, self._process = self._process, None
        watcher, self._watcher = self._watcher, None
        if watcher is not None:  # first: the daemon's number may be another's afterwards
            watcher.kill()
            watcher.wait()
            if watcher.stdin:
                watcher.stdin.close()
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
