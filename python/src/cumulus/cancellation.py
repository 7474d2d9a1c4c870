"""What ends calls from elsewhere: exceptions, and other threads."""

from __future__ import annotations

import threading
from typing import Any, List, Optional


class Cancellation:
    """Stops the calls that are made within it, from another thread. What cumulus.aio cancels tasks with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: List[Any] = []
        self._cancelled = False

    def add(self, call: Any) -> None:
        """A call of gRPC's that is to be cancelled, too; at once where that has been asked for."""
        with self._lock:
            self._calls.append(call)
            cancelled = self._cancelled
        if cancelled:
            call.cancel()

    def remove(self, call: Any) -> None:
        """One that has ended."""
        with self._lock:
            self._calls.remove(call)

    @property
    def cancelled(self) -> bool:
        """Whether it has been asked for."""
        return self._cancelled

    def cancel(self) -> None:
        """Ends the calls, and those to come; from any thread."""
        with self._lock:
            self._cancelled = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def __enter__(self) -> "Cancellation":
        _current.scope = self
        return self

    def __exit__(self, *_: object) -> None:
        _current.scope = None


class CallScope:
    """A call that an exception, KeyboardInterrupt too, or the thread's Cancellation ends."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._scope = cancellation()

    def __enter__(self) -> Any:
        if self._scope is not None:
            self._scope.add(self._call)
        return self._call

    def __exit__(self, kind: Optional[type], *_: object) -> None:
        if self._scope is not None:
            self._scope.remove(self._call)
        if kind is not None:
            self._call.cancel()


class _Current(threading.local):
    """Of one thread."""

    scope: Optional[Cancellation] = None


_current = _Current()


def cancellation() -> Optional[Cancellation]:
    """The scope that this thread's calls belong to, if any."""
    return _current.scope
