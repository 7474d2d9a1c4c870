"""Uploads and downloads by the library."""

from __future__ import annotations

import time
from typing import Any, Callable, Mapping, NamedTuple, Optional, Tuple, TypeVar

from ..arrays import NDArray
from ..connection import Connection
from ..errors import Error, Unavailable
from ..shared_memory.transfers import MIN_BYTES, Terms, Written
from ..v1 import array_pb2, transfer_pb2
from .channel import Memory, array_of, options_of

Moved = TypeVar("Moved")

_MIN_STREAM_BYTES = (1 << 20) + 1  # what is smaller is one message, and a unary call by gRPC


def _is_worth_it(connection: Connection, size: int) -> bool:
    return size >= (MIN_BYTES if connection.shared_memory.socket else _MIN_STREAM_BYTES)


def upload(connection: Connection, spec: transfer_pb2.WriteSpec, data: NDArray, terms: Terms) -> Optional[Written]:
    """Writes bytes, uint8 [bytes], as a new buffer; None where they have to go another way."""
    ttl = spec.ttl.ToNanoseconds() if spec.HasField("ttl") else 0
    shape = tuple(spec.spec.shape)
    says = not spec.HasField("ttl") or ttl > 0  # what the server refuses is refused to Python's own call
    if not _is_worth_it(connection, data.size) or not shape or not says:
        return None
    session = connection.session_and_instance(spec.session)
    options = options_of(_left(terms.deadline), evictable=spec.evictable, ttl=ttl, request_id=spec.request_id, checksum=terms.checksum)
    made = array_of(spec.spec.element_type, shape, data)
    transfer = _unless_broken(connection, lambda: connection.c_channel.upload(session, made, options, data, terms.progress))
    if transfer is None:
        return None
    buffer = array_pb2.Buffer(name=transfer.buffer, spec=spec.spec, size_bytes=data.size, evictable=spec.evictable)
    return Written(buffer, transfer.checksum if terms.checksum else 0)


def download(connection: Connection, name: str, destination: NDArray, terms: Terms) -> bool:
    """Reads a buffer into bytes, uint8 [bytes], of its size; False where it has to come another way."""
    if not _is_worth_it(connection, destination.size):
        return False
    session = connection.session_and_instance(name.partition("/buffers/")[0])
    options = options_of(_left(terms.deadline))
    return bool(_unless_broken(connection, lambda: connection.c_channel.download(session, name, options, destination, terms.progress)))


class Spec(NamedTuple):
    """As array_pb2.ArraySpec."""

    element_type: int
    shape: Tuple[int, ...]


class Made(NamedTuple):
    """Of a new buffer, what array_pb2.Buffer has, too."""

    name: str
    size_bytes: int
    spec: Spec


def upload_shared(connection: Connection, session: str, whole: Tuple[NDArray, Memory], options: Mapping[str, Any],
                  deadline: float) -> Optional[Made]:
    """Of an array that is all of its memory, as `memory_of` finds it, of which no byte is copied: so its way is a short one, without messages
    that the library makes anyway. None of what has to go another way."""
    array, memory = whole
    described = memory.describe(array)
    ttl = 0 if options["ttl"] is None else int(options["ttl"] * 1e9)
    says = options["ttl"] is None or 0 < ttl < 1 << 63  # what is refused is refused on the other way
    if described is None or not says:
        return None
    terms = options_of(_left(deadline), evictable=options["evictable"], ttl=ttl, request_id=options["request_id"])
    names = connection.session_and_instance(session)
    name = _unless_broken(connection, lambda: connection.c_channel.upload_shared(names, described.array, terms, array))
    return None if name is None else Made(name, memory.nbytes, Spec(described.element_type, array.shape))


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)


def _unless_broken(connection: Connection, move: Callable[[], Optional[Moved]]) -> Optional[Moved]:
    """What `move` answers; None where the connection broke: the other ways begin again, and outlast a restart."""
    try:
        return move()
    except Error as error:
        connection.doubt()  # the library's connection has noticed a restart, and Python's has not
        if isinstance(error, Unavailable):
            return None
        raise
