"""The connection of a region, and a thread for the calls of the transfers that use it."""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import threading
import weakref
from typing import Callable, Optional

from .region import Region

Job = Callable[[], None]


class Line:
    """Of one transfer at a time, and a thread for the transfer's call: gRPC would start one for each."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.ended = False
        self.proven = False  # has brought an array: the server behind the socket is that of the connection
        self._wake, self._waker = socket.socketpair()
        self._jobs: "queue.SimpleQueue[Optional[Job]]" = queue.SimpleQueue()
        weakref.finalize(self, self._jobs.put, None).atexit = False
        threading.Thread(target=_work, args=(self._jobs,), name="cumulus-line", daemon=True).start()

    def run(self, job: Job) -> None:
        """On the line's thread, without waiting."""
        self._jobs.put(job)

    def wait(self) -> None:
        """Until something has come from the server, or wake(); for any number of threads."""
        poll = select.poll()
        poll.register(self.region, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        poll.poll()

    def wake(self) -> None:
        """Ends every wait(), those to come too, until is_as_before()."""
        self._waker.send(b"\0")

    def is_as_before(self) -> bool:
        """Whether the next transfer may have it, once nobody wakes it any more."""
        with contextlib.suppress(BlockingIOError):
            self._wake.recv(64, socket.MSG_DONTWAIT)
        return self.region.quiet()

    def close(self) -> None:
        """Ends the region; safe in finalizers."""
        self.ended = True
        self.region.close()
        self._wake.close()
        self._waker.close()
        self._jobs.put(None)


def _work(jobs: "queue.SimpleQueue[Optional[Job]]") -> None:
    while True:
        job = jobs.get()
        if job is None:
            return
        job()
        del job  # it refers to the line, whose end ends this
