"""A lease on one device of one server instance: it is renewed, and its buffers are released, on a thread."""

from __future__ import annotations

import queue
import threading
import time
import uuid
import weakref
from typing import Optional, Tuple

from .connection import Connection
from .errors import Error, NotFound
from .v1 import sessions_pb2

_END = ""


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
        connection.handles = tuple((key, value) for key, value in (
            ("cumulus-session", self.name), ("cumulus-instance", self.instance)) if value)
        granted = ttl if ttl is not None else created.expire_time.seconds - time.time()
        # put() of a SimpleQueue may be called from a finalizer, whatever this thread is in the middle of.
        self._released: "queue.SimpleQueue[str]" = queue.SimpleQueue()
        self._connection = connection
        self._thread = threading.Thread(target=_attend, name="cumulus-lease", daemon=True,
                                        args=(weakref.ref(self), connection, self._released,
                                              (self.name, max(granted, 3.0))))
        self._thread.start()

    def release(self, buffer: str) -> None:
        """Deletes a buffer, soon, on the session's thread. Safe in finalizers."""
        self._released.put(buffer)

    def renew(self) -> None:
        """Renews the lease, as every call that names the session does. NotFound once it is gone."""
        _renew(self._connection, self.name)

    def close(self) -> None:
        """Deletes the session, and with it its buffers. A server that cannot be reached drops them later."""
        self._released.put(_END)
        self._thread.join(5.0)
        self.lost = True
        try:
            self._connection.call("/cumulus.v1.Sessions/DeleteSession",
                                  sessions_pb2.DeleteSessionRequest(name=self.name), bytes, timeout=2.0)
        except Error:
            pass  # the lease's end deletes it


def _renew(connection: Connection, name: str, timeout: Optional[float] = None) -> None:
    connection.call("/cumulus.v1.Sessions/GetSession", sessions_pb2.GetSessionRequest(name=name), bytes, timeout)


def _attend(session: "weakref.ref[Session]", connection: Connection, released: "queue.SimpleQueue[str]",
            lease: Tuple[str, float]) -> None:
    """The thread: renews a third of the lease from the last time, and deletes what is released meanwhile."""
    name, ttl = lease
    due = time.monotonic() + ttl / 3
    while session() is not None:
        try:
            buffer = released.get(timeout=max(min(due - time.monotonic(), 60.0), 0.0))
        except queue.Empty:
            buffer = None
        if buffer == _END:
            return
        try:
            if buffer is not None:
                connection.call("/cumulus.v1.Sessions/DeleteBuffer",
                                sessions_pb2.DeleteBufferRequest(name=buffer, allow_missing=True), bytes, timeout=10.0)
            elif time.monotonic() >= due:
                due = time.monotonic() + ttl / 3
                _renew(connection, name, ttl / 3)
        except NotFound:
            owner = session()
            if owner is not None:
                owner.lost = True
            return
        except (Error, ValueError):  # ValueError: of a channel that has been closed meanwhile
            continue
