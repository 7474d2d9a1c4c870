"""Bulk data, through shared memory or in chunks that carry their own checksum, with at most one copy on this side of gRPC
each way."""

from __future__ import annotations

import _thread
import queue
import time
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Union

import grpc
import numpy as np

from . import wire
from .arrays import Described, NDArray, write_spec
from .c_library import transfers as c_library
from .checksums import CHUNK_BYTES, crc32c, of_chunks
from .cancellation import CallScope
from .connection import BackOff, Connection, Progress, error_of
from .errors import Cancelled, DataLoss, Error, Unavailable
from .shared_memory import transfers as shared
from .v1 import array_pb2, transfer_pb2

_WRITE = "/cumulus.v1.BufferTransfer/WriteBuffer"
MAX_BREAKS = 6  # of a connection in a row, where the server does not say when to come back


class _Retry:
    """Whether and when an interrupted transfer begins again, as the C++ library does."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._back_off = BackOff()
        self._breaks = 0

    def wait_after(self, error: Error) -> None:
        """Returns where the transfer is to be tried again; raises `error` otherwise."""
        if not isinstance(error, Unavailable):
            raise error
        if error.retry_delay is None:
            self._breaks += 1
            if self._breaks > MAX_BREAKS:
                raise error
        delay = max(error.retry_delay or 0.0, self._back_off.next())
        if time.monotonic() + delay >= self._deadline:
            raise error
        time.sleep(delay)

    def note_progress(self) -> None:
        self._breaks = 0
        self._back_off = BackOff()


def allowance(size: int) -> float:
    """Seconds that a transfer may take beyond a call: one for 16 MiB."""
    return size / (16 << 20)


class _Chunks:
    """The messages of an upload."""

    def __init__(self, spec: bytes, data: NDArray) -> None:
        self._spec = spec
        self._data = data
        self.size = data.size
        self._checksums: List[int] = []

    def __iter__(self) -> Iterator[bytes]:
        total = self._data.size
        for offset in range(0, max(total, 1), CHUNK_BYTES):
            part = self._data[offset : offset + CHUNK_BYTES]
            checksum = crc32c(part) if part.size else 0
            self._checksums.append(checksum)
            head = wire.chunk_head(self._spec if offset == 0 else b"", offset, checksum, offset + part.size == total,
                                   part.size)
            yield b"".join((head, part.data))

    def checksum(self) -> int:
        return of_chunks(self._checksums)


class _Sending:
    """What an upload's caller and the thread of its call share: queues, and what has no lock in Python.

    gRPC's futures have such locks, and so have threading's threads. KeyboardInterrupt, which comes to a program's first thread at any moment, may
    leave them locked for ever: the call with them, and whoever cancels it.
    """

    def __init__(self) -> None:
        self.messages: "queue.SimpleQueue[Optional[bytes]]" = queue.SimpleQueue()
        self.room: "queue.SimpleQueue[None]" = queue.SimpleQueue()
        self.outcome: "queue.SimpleQueue[Union[bytes, BaseException]]" = queue.SimpleQueue()
        self.call: Any = None
        self.cancelled = False

    def _take(self) -> Iterator[bytes]:
        for message in iter(self.messages.get, None):
            self.room.put(None)
            yield message

    def run(self, begin: Callable[[Iterator[bytes]], Any]) -> None:
        """The thread."""
        try:
            self.call = begin(self._take())
            if self.cancelled:
                self.call.cancel()
            outcome: Union[bytes, BaseException] = self.call.result()
        except BaseException as failure:  # goes to the thread that asks for the result
            outcome = failure
        self.outcome.put(outcome)
        self.room.put(None)
        self.messages.put(None)


class _Stream:
    """An upload's call, to which its caller hands messages: one is made while the one before it is sent."""

    def __init__(self, begin: Callable[[Iterator[bytes]], Any]) -> None:
        self._sending = _Sending()
        self._sending.room.put(None)
        _thread.start_new_thread(self._sending.run, (begin,))

    def __del__(self) -> None:
        """Ends a call that nobody waits for: KeyboardInterrupt may come before anybody can, or before there is one."""
        if hasattr(self, "_sending") and not self.ended:
            self.cancel()

    def put(self, message: bytes) -> None:
        """Blocks until the message before this one is being sent, or the call has ended."""
        self._sending.room.get()
        self._sending.messages.put(message)

    @property
    def ended(self) -> bool:
        return not self._sending.outcome.empty()

    def close(self) -> None:
        """After the last message."""
        self._sending.messages.put(None)

    def cancel(self) -> None:
        """Ends the call; from any thread."""
        self._sending.cancelled = True
        if self._sending.call is not None:
            self._sending.call.cancel()
        self.close()

    def result(self) -> bytes:
        """Waits for the answer."""
        outcome = self._sending.outcome.get()
        self._sending.outcome.put(outcome)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class Uploaded(NamedTuple):
    """A new buffer, and what tells the same bytes from others."""

    message: array_pb2.Buffer
    checksum: int  # 0 where it was not asked for


def spec_of_write(session: str, array: Described, options: Mapping[str, Any]) -> transfer_pb2.WriteSpec:
    """Of a new buffer of a session, like the array; with ttl, evictable and request_id."""
    spec = transfer_pb2.WriteSpec(session=session, evictable=options["evictable"], request_id=options["request_id"])
    write_spec(array.dtype, array.shape, spec.spec)
    if options["ttl"] is not None:
        spec.ttl.FromNanoseconds(int(options["ttl"] * 1e9))
    return spec


def upload(connection: Connection, spec: transfer_pb2.WriteSpec, data: NDArray, *, timeout: Optional[float] = None,
           progress: Optional[Progress] = None, checksum: bool = True) -> Uploaded:
    """Writes bytes, uint8 [bytes], as a new buffer; begins again where the connection breaks."""
    deadline = connection.deadline(timeout, allowance(data.size))
    terms = shared.Terms(deadline, progress, checksum)
    written = (shared.write_array(connection, spec, data, terms) or c_library.upload(connection, spec, data, terms)
               or shared.write_through_ring(connection, spec, data, terms))
    if written is not None:
        return Uploaded(written.message, written.checksum)
    retry = _Retry(deadline)
    head = spec.SerializeToString()
    write = _write_at_once if data.size <= CHUNK_BYTES else _write_in_chunks
    while True:
        chunks = _Chunks(head, data)
        try:
            answer = write(connection, chunks, deadline, lambda done: progress and progress(done, data.size))
            return Uploaded(array_pb2.Buffer.FromString(answer), chunks.checksum())
        except grpc.FutureCancelledError:
            raise Cancelled("the upload was cancelled") from None
        except grpc.RpcError as failure:
            error = error_of(failure, connection.address)
        retry.wait_after(error)


def _write_at_once(connection: Connection, chunks: _Chunks, deadline: float, report: Callable[[int], object]) -> bytes:
    """A stream of one message is a unary call on the wire, and as one takes half of the time."""
    answer = connection.attempt(_WRITE, next(iter(chunks)), deadline)
    report(chunks.size)
    return answer


def _write_in_chunks(connection: Connection, chunks: _Chunks, deadline: float, report: Callable[[int], object]) -> bytes:
    with connection.transfer_channel() as channel:
        method = channel.stream_unary(_WRITE)
        stream = _Stream(lambda messages: method.future(messages, timeout=max(deadline - time.monotonic(), 0.0), metadata=connection.metadata))
        with CallScope(stream):
            done = 0
            for message in chunks:
                stream.put(message)
                if stream.ended:
                    break
                done = min(done + CHUNK_BYTES, chunks.size)
                report(done)
            stream.close()
            return stream.result()


class _Receiver:
    """Receives a buffer chunk by chunk into its place."""

    def __init__(self, destination: NDArray) -> None:
        self._destination = destination
        self.received = 0

    def take(self, message: bytes) -> None:
        try:
            offset, checksum, data = wire.read_chunk(message)
        except (ValueError, IndexError):
            raise self._broken("is damaged") from None
        end = self.received + len(data)
        if offset != self.received:
            raise self._broken(f"says that it is at byte {offset}")
        if end > self._destination.size:
            raise self._broken("is longer than the buffer")
        place = self._destination[self.received : end]
        place[:] = np.frombuffer(data, np.uint8)
        if crc32c(place) != checksum:
            raise self._broken("does not match its crc32c")
        self.received = end

    def _broken(self, what: str) -> DataLoss:
        return DataLoss(f"download: the chunk at byte {self.received} {what}; download it again",
                        cure="download it again")

    def check_complete(self) -> None:
        if self.received < self._destination.size:
            raise self._broken(f"never came: the server sent fewer than {self._destination.size} bytes")


def download(connection: Connection, name: str, destination: NDArray, *, timeout: Optional[float] = None,
             progress: Optional[Progress] = None) -> None:
    """Reads a buffer into bytes, uint8 [bytes]; goes on where it stopped when the connection breaks."""
    deadline = connection.deadline(timeout, allowance(destination.size))
    terms = shared.Terms(deadline, progress)
    if (shared.read_into_array(connection, name, destination, terms) or c_library.download(connection, name, destination, terms)
            or shared.read_through_ring(connection, name, destination, terms)):
        return
    retry = _Retry(deadline)
    receiver = _Receiver(destination)
    while True:
        before = receiver.received
        request = transfer_pb2.ReadBufferRequest(name=name, read_offset=before)
        with connection.transfer_channel() as channel:
            stub = channel.unary_stream("/cumulus.v1.BufferTransfer/ReadBuffer")
            call = stub(request.SerializeToString(), timeout=max(deadline - time.monotonic(), 0.0),
                        metadata=connection.metadata)
            try:
                with CallScope(call):
                    for message in call:
                        receiver.take(message)
                        if progress is not None:
                            progress(receiver.received, destination.size)
                receiver.check_complete()
                return
            except grpc.RpcError as failure:
                error = error_of(failure, connection.address)
        if receiver.received > before:
            retry.note_progress()
        retry.wait_after(error)
