"""Uploads and downloads through rings, and uploads of arrays that lie in regions of their own."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Iterator, NamedTuple, Optional

import grpc

from .. import checksums
from ..arrays import NDArray
from ..connection import CallScope, Connection, Progress, error_of
from ..errors import DataLoss
from ..v1 import shared_memory_pb2, transfer_pb2
from .pieces import Emptier, Filler, Pieces
from .ring_call import RingCall, belongs_to_streams
from .thread_count import ThreadCount

_MIN_BYTES = 256 << 10  # below, a call of one message is over before the ring's doorbells are
_WRITE = "/cumulus.v1.SharedMemory/WriteShared"
_READ = "/cumulus.v1.SharedMemory/ReadShared"


class Terms(NamedTuple):
    """Of one transfer."""

    deadline: float  # on the monotonic clock
    progress: Optional[Progress] = None
    checksum: bool = False  # is wanted, of an array that goes up


class Written(NamedTuple):
    """What came of an upload."""

    answer: bytes  # a Buffer's
    checksum: int  # as that of streams; 0 where it is not wanted


def upload(connection: Connection, spec: transfer_pb2.WriteSpec, data: NDArray, terms: Terms) -> Optional[Written]:
    """Writes bytes, uint8 [bytes], as a new buffer; None where they have to go over streams."""
    return _write_array(connection, spec, data, terms) or _write_through_ring(connection, spec, data, terms)


def _write_array(connection: Connection, spec: transfer_pb2.WriteSpec, data: NDArray, terms: Terms) -> Optional[Written]:
    """Of an array that the server can take from where it lies; None of others."""
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
    return Written(answer, checksums.of_array(data) if terms.checksum else 0)


def _write_through_ring(connection: Connection, spec: transfer_pb2.WriteSpec, data: NDArray,
                        terms: Terms) -> Optional[Written]:
    ring = connection.shared_memory.take_ring() if data.size >= _MIN_BYTES else None
    if ring is None:
        return None
    request = shared_memory_pb2.WriteSharedRequest(spec=spec, region=ring.region.id)
    with contextlib.closing(RingCall(connection, ring, _WRITE, request.SerializeToString(), terms.deadline)) as call:
        filler = Filler(call, data, terms.checksum)
        answer = _move(call, filler, connection.shared_memory.upload_threads, terms)
        return None if answer is None else Written(answer, filler.checksum())


def download(connection: Connection, name: str, destination: NDArray, terms: Terms) -> bool:
    """Reads a buffer into bytes, uint8 [bytes], of its size; False where it has to come over streams."""
    ring = connection.shared_memory.take_ring() if destination.size >= _MIN_BYTES else None
    if ring is None:
        return False
    request = shared_memory_pb2.ReadSharedRequest(name=name, region=ring.region.id)
    with contextlib.closing(RingCall(connection, ring, _READ, request.SerializeToString(), terms.deadline)) as call:
        emptier = Emptier(call, destination)
        if _move(call, emptier, connection.shared_memory.download_threads, terms) is None:
            return False
        if emptier.moved < destination.size:
            raise DataLoss("download: the server sent fewer bytes than there are; download it again",
                           cure="download it again")
        return True


def _move(call: RingCall, pieces: Pieces, threads: ThreadCount, terms: Terms) -> Optional[bytes]:
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
def _helpers(call: RingCall, pieces: Pieces, count: int) -> Iterator[None]:
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
