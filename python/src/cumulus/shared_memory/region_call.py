"""A call that uses a region."""

from __future__ import annotations

import queue
import threading
from typing import Optional, Union

import grpc

from ..connection import Connection, error_of
from ..errors import Cancelled, Error, Unavailable
from .line import Line
from .region import BEGIN, Message


class RegionCall:
    """What the server says on the region's line, to any number of threads, until the call has ended.

    Made with a line on whose thread it calls; to be closed, which ends the line unless another transfer may have it.
    """

    def __init__(self, connection: Connection, line: Line, method: str, request: bytes, deadline: float) -> None:
        self.line = line
        self._connection = connection
        self._stopped = False
        self._ending = threading.Lock()
        self._closed = False
        self._ended = False
        self._outcome: "queue.SimpleQueue[Union[bytes, Exception]]" = queue.SimpleQueue()  # the first is what counts
        self._begin = threading.Lock()
        self._begun = False
        self._leaves_line_as_it_was = False
        line.run(lambda: self._call(method, request, deadline))

    def _call(self, method: str, request: bytes, deadline: float) -> None:
        """On the line's thread."""
        try:
            outcome: Union[bytes, Exception] = self._connection.attempt(method, request, deadline)
        except Exception as failure:  # goes to the thread that asks for the result
            outcome = failure
        with self._ending:
            self._end(outcome)

    def _end(self, outcome: Union[bytes, Exception]) -> None:
        if not self._closed:
            self._ended = True
            self.stop()
            self._outcome.put(outcome)

    def stop(self) -> None:
        """Ends next() for every thread, once what has come is taken."""
        self._stopped = True
        self.line.wake()

    def cancel(self) -> None:
        """Ends the call, by the end of its line; from any thread, and at any time."""
        with self._ending:
            if not self._closed and not self._ended:
                self.line.region.hang_up()
                self._end(Cancelled("the transfer was cancelled"))

    def wait_until_begun(self) -> bool:
        """Waits until the server lets the transfer begin; False where the call ends before."""
        if not self._begun:
            with self._begin:
                if not self._begun:
                    message = self.next()
                    self._begun = message is not None and message.kind == BEGIN
        return self._begun

    def next(self) -> Optional[Message]:
        """The next message, for one of the threads that wait; None once no more comes."""
        while True:
            last = self._stopped  # before the look: what was sent before the call's end is there then
            try:
                return self.line.region.receive()
            except BlockingIOError:
                if last:
                    return None
            self.line.wait()

    def send(self, kind: int, slot: int, offset: int = 0, nbytes: int = 0) -> bool:
        """False where the line's connection is gone."""
        return self.line.region.send(Message(kind, slot, offset, nbytes))

    def result(self) -> Optional[bytes]:
        """Waits for the call's answer; None where the array has to go over streams."""
        outcome = self._outcome.get()
        if isinstance(outcome, bytes):
            self._leaves_line_as_it_was = self.line.proven = True
            return outcome
        if not isinstance(outcome, grpc.RpcError):
            raise outcome
        error = error_of(outcome, self._connection.address)
        # Refused by the server, before it began: nothing is on its way.
        self._leaves_line_as_it_was = not self._begun and error.reason != "" and error.code not in (
            "UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED")
        if error.reason == "REGION_NOT_FOUND" and not self.line.proven:
            self._connection.shared_memory.forget_socket()
        if belongs_to_streams(error):
            return None
        raise error

    def close(self) -> None:
        """After the last next(): the line is the next transfer's where it is as before; else it ends, and the call with it where
        that goes on."""
        with self._ending:
            self._closed = True
        if not (self._leaves_line_as_it_was and self.line.is_as_before()):
            self.line.close()


def belongs_to_streams(error: Error) -> bool:
    """Whether a transfer that ended so is to go over streams instead: its shared memory was the reason, or the server is
    gone and may come back without it."""
    if isinstance(error, Unavailable):  # streams wait for who says when to come back, too
        return True
    if error.reason:
        return error.reason in ("REGION_NOT_FOUND", "REGION_BUSY", "REGION_WRITABLE", "REGION_SEALED")
    return error.code in ("CANCELLED", "UNKNOWN", "INTERNAL")  # of a server that closed its connection
