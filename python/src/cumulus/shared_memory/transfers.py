"""Uploads and downloads through rings, and of arrays that lie in regions of their own."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Iterator, NamedTuple, Optional

import grpc

from .. import checksums
from ..arrays import NDArray
from ..cancellation import CallScope
from ..connection import Connection, Progress, error_of
from ..errors import DataLoss
from ..v1 import array_pb2, shared_memory_pb2, transfer_pb2
from .memory import Ring
from .pieces import Emptier, Filler, Pieces
from .region import FILLED, FREE
from .region_call import RegionCall, belongs_to_streams
from .thread_count import ThreadCount

MIN_BYTES = 256 << 10  # below, a call of one message is over before the ring's doorbells are
_WRITE = "/cumulus.v1.SharedMemory/WriteShared"
_READ = "/cumulus.v1.SharedMemory/ReadShared"


class Terms(NamedTuple):
    """Of one transfer."""

    deadline: float  # on the monotonic clock
    progress: Optional[Progress] = None
    checksum: bool = False  # is wanted, of an array that goes up


class Written(NamedTuple):
    """What came of an upload."""

    message: array_pb2.Buffer
    checksum: int  # as that of streams; 0 where it is not wanted


def write_array(connection: Connection, spec: transfer_pb2.WriteSpec, data: NDArray, terms: Terms) -> Optional[Written]:
    """Writes an array, its bytes uint8 [bytes], as a new buffer, where the server can take it from where it lies; None of others."""
    region = connection.shared_memory.arrays.take(data)
    if region is None:
        return None
    request = shared_memory_pb2.WriteSharedRequest(spec=spec, region=region.id)
    try:
        answer = connection.attempt(_WRITE, request.SerializeToString(), terms.deadline)
    except grpc.RpcError as failure:
        error = error_of(failure, connection.address)
        if belongs_to_streams(error):
            return None
        raise error from None
    if region.becomes_the_servers:
        region.close()
    if terms.progress is not None:
        terms.progress(data.size, data.size)
    return Written(array_pb2.Buffer.FromString(answer), checksums.of_array(data) if terms.checksum else 0)


def write_through_ring(connection: Connection, spec: transfer_pb2.WriteSpec, data: NDArray,
                        terms: Terms) -> Optional[Written]:
    """Likewise, of any; None where it has to go over streams."""
    ring = connection.shared_memory.take_ring() if data.size >= MIN_BYTES else None
    if ring is None:
        return None
    request = shared_memory_pb2.WriteSharedRequest(spec=spec, region=ring.region.id)
    with _ring_call(connection, ring, _WRITE, request.SerializeToString(), terms.deadline) as call:
        filler = Filler(call, ring.slots, data, terms.checksum)
        answer = _move(call, filler, connection.shared_memory.upload_threads, terms)
        return None if answer is None else Written(array_pb2.Buffer.FromString(answer), filler.checksum())


@contextlib.contextmanager
def _ring_call(connection: Connection, ring: Ring, method: str, request: bytes, deadline: float) -> Iterator[RegionCall]:
    """Gives the ring back at its end."""
    try:
        with contextlib.closing(RegionCall(connection, ring, method, request, deadline)) as call:
            yield call
    finally:
        connection.shared_memory.give_back(ring)


def read_into_array(connection: Connection, name: str, destination: NDArray, terms: Terms) -> bool:
    """Reads a buffer into bytes, uint8 [bytes], of its size, where the server can write to where they lie; False of others."""
    if destination.size < MIN_BYTES:
        return False
    with connection.shared_memory.arrays.line_of(destination) as line:
        if line is None:
            return False
        request = shared_memory_pb2.ReadSharedRequest(name=name, region=line.region.id).SerializeToString()
        with contextlib.closing(RegionCall(connection, line, _READ, request, terms.deadline)) as call, CallScope(call):
            whole = _receive(call, destination.size, terms.progress)
            if call.result() is None:
                return False
            if not whole:
                line.region.hang_up()
                raise _too_few()
            return True


def _receive(call: RegionCall, size: int, progress: Optional[Progress]) -> bool:
    """Lets the server write, and says what has come; False where the call ends before."""
    came = 0
    if not call.wait_until_begun() or not call.send(FREE, 0):
        return False
    while came < size:
        message = call.next()
        if message is None:
            return False
        if message.kind != FILLED or message.offset != came or not 0 < message.nbytes <= size - came:
            call.line.region.hang_up()
            raise DataLoss("download: the server names bytes that are not next; download it again", cure="download it again")
        came += message.nbytes
        if progress is not None:
            progress(came, size)
    return True


def read_through_ring(connection: Connection, name: str, destination: NDArray, terms: Terms) -> bool:
    """Likewise, into any memory; False where it has to come over streams."""
    ring = connection.shared_memory.take_ring() if destination.size >= MIN_BYTES else None
    if ring is None:
        return False
    request = shared_memory_pb2.ReadSharedRequest(name=name, region=ring.region.id)
    with _ring_call(connection, ring, _READ, request.SerializeToString(), terms.deadline) as call:
        emptier = Emptier(call, ring.slots, destination)
        if _move(call, emptier, connection.shared_memory.download_threads, terms) is None:
            return False
        if emptier.moved < destination.size:
            raise _too_few()
        return True


def _too_few() -> DataLoss:
    return DataLoss("download: the server sent fewer bytes than there are; download it again", cure="download it again")


def _move(call: RegionCall, pieces: Pieces, threads: ThreadCount, terms: Terms) -> Optional[bytes]:
    """What the call answers; None where the array has to go over streams."""
    total = pieces.data.size
    count = threads.choose(total)
    start = time.monotonic()
    told = 0

    def report(moved: int) -> None:
        nonlocal told
        told = moved
        if terms.progress is not None:
            terms.progress(moved, total)

    with CallScope(call):
        with _helpers(call, pieces, count - 1):
            pieces.move(report)
        pieces.settle()
        answer = call.result()
        if told < pieces.moved:  # by the helpers, since
            report(pieces.moved)
    if answer is not None:
        threads.note(count, total, time.monotonic() - start)
    return answer


@contextlib.contextmanager
def _helpers(call: RegionCall, pieces: Pieces, count: int) -> Iterator[None]:
    """Threads that move pieces beside the caller's; they have ended at the context's end, the call with them where that is
    by an exception."""
    threads = [threading.Thread(target=pieces.move, name="cumulus-copy", daemon=True) for _ in range(count)]
    try:
        for thread in threads:
            thread.start()
        yield
    except BaseException:
        call.cancel()
        raise
    finally:
        for thread in threads:
            if thread.ident is not None:  # it has been started
                thread.join()
