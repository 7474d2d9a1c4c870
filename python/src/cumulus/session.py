"""A lease on one device of one server instance: it is renewed, and its buffers are released, on a thread."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import uuid
import weakref
from typing import List, NamedTuple, Optional

from .connection import Connection
from .errors import Error, NotFound
from .v1 import sessions_pb2

_END = ""
# Small buffers that are released soon after one another are deleted by one call: each of its own would take two
# switches of threads from the calls of whoever makes and drops them. What takes memory that others wait for goes at once.
_GATHER_SECONDS = 0.02
_LARGE_BYTES = 1 << 20
_LONGEST_GUESS = 180.0
_MOST_NAMES = 1000  # of one call


class Session:
    """Made by the client when the first array is to stay on the server."""

    def __init__(self, connection: Connection, *, device: str = "", ttl: Optional[float] = None,
                 quota_bytes: int = 0) -> None:
        request = sessions_pb2.CreateSessionRequest(session_id=str(uuid.uuid4()), device=device,
                                                    quota_bytes=quota_bytes)
        if ttl is not None:
            request.ttl.FromNanoseconds(int(ttl * 1e9))
        created = connection.call("/cumulus.v1.Sessions/CreateSession", request, sessions_pb2.Session.FromString)
        self.name: str = created.name
        self.device: str = created.device
        self.instance: str = created.instance
        self.lost = False
        connection = connection.to(created.endpoint)
        self.connection = connection
        connection.take_session(self.name, self.instance)
        # This machine's clock may be hours behind the server's, so that the lease would seem to be as much longer.
        granted = ttl if ttl is not None else min(created.expire_time.seconds - time.time(), _LONGEST_GUESS)
        self._released = _Released(queue.SimpleQueue(), queue.SimpleQueue())
        self._thread = threading.Thread(target=_attend, name="cumulus-lease", daemon=True,
                                        args=(weakref.ref(self), connection, self._released,
                                              _Lease(self.name, max(granted, 3.0))))
        self._thread.start()

    def release(self, buffer: str, nbytes: int) -> None:
        """Deletes a buffer, soon, on the session's thread. Safe in finalizers."""
        self._released.names.put(buffer)
        if nbytes >= _LARGE_BYTES:
            self._released.hurry.put(None)

    def renew(self) -> None:
        """Renews the lease, as every call that names the session does. NotFound once it is gone."""
        _renew(self.connection, self.name)

    def close(self) -> None:
        """Deletes the session, and with it its buffers. A server that cannot be reached drops them later."""
        self._released.names.put(_END)
        self._released.hurry.put(None)
        self._thread.join(5.0)
        self.lost = True
        try:
            self.connection.call("/cumulus.v1.Sessions/DeleteSession",
                                 sessions_pb2.DeleteSessionRequest(name=self.name), bytes, timeout=2.0)
        except Error:
            pass  # the lease's end deletes it


def _renew(connection: Connection, name: str, timeout: Optional[float] = None) -> None:
    connection.call("/cumulus.v1.Sessions/GetSession", sessions_pb2.GetSessionRequest(name=name), bytes, timeout)


class _Lease(NamedTuple):
    session: str
    seconds: float


class _Released(NamedTuple):
    """Buffers to be deleted, and what ends the wait for more of them.

    put() of a SimpleQueue may be called from a finalizer, whatever this thread is in the middle of.
    """

    names: "queue.SimpleQueue[str]"
    hurry: "queue.SimpleQueue[None]"

    def take(self, timeout: float) -> List[str]:
        """The names of those that are released within `timeout` seconds, and of those soon after the first; none where
        there are none."""
        try:
            taken = [self.names.get(timeout=timeout)]
        except queue.Empty:
            return []
        with contextlib.suppress(queue.Empty):
            self.hurry.get(timeout=_GATHER_SECONDS)
        with contextlib.suppress(queue.Empty):
            while len(taken) < _MOST_NAMES:
                taken.append(self.names.get_nowait())
        return taken


def _delete(connection: Connection, session: str, names: List[str]) -> None:
    connection.call("/cumulus.v1.Sessions/BatchDeleteBuffers",
                    sessions_pb2.BatchDeleteBuffersRequest(parent=session, names=names, allow_missing=True), bytes,
                    timeout=10.0)


def _attend(session: "weakref.ref[Session]", connection: Connection, released: _Released, lease: _Lease) -> None:
    """The thread: renews a third of the lease from the last time, and deletes what is released meanwhile."""
    due = time.monotonic() + lease.seconds / 3
    while session() is not None:
        names = released.take(max(min(due - time.monotonic(), 60.0), 0.0))
        if _END in names:  # the session's end deletes the others
            return
        try:
            if names:
                _delete(connection, lease.session, names)
            elif time.monotonic() >= due:
                due = time.monotonic() + lease.seconds / 3
                _renew(connection, lease.session, lease.seconds / 3)
        except NotFound:
            owner = session()
            if owner is not None:
                owner.lost = True
            return
        except (Error, ValueError):  # ValueError: of a channel that has been closed meanwhile
            continue
