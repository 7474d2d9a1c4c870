"""Uploads and downloads by the library."""

from __future__ import annotations

import time
from typing import Optional

from ..arrays import NDArray
from ..connection import CallScope, Connection
from ..errors import Error, Unavailable
from ..shared_memory.transfers import MIN_BYTES, Terms, Written
from ..v1 import array_pb2, transfer_pb2
from .channel import Transfer, array_of, options_of

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
    options = options_of(_left(terms), evictable=spec.evictable, ttl=ttl, request_id=spec.request_id, checksum=terms.checksum)
    transfer = connection.c_channel.begin_upload(connection.session_and_instance(spec.session),
                                                 array_of(spec.spec.element_type, shape, data), options, data)
    if transfer is None or not _ends_well(connection, transfer, terms):
        return None
    made = array_pb2.Buffer(name=transfer.buffer, spec=spec.spec, size_bytes=data.size, evictable=spec.evictable)
    return Written(made, transfer.checksum if terms.checksum else 0)


def download(connection: Connection, name: str, destination: NDArray, terms: Terms) -> bool:
    """Reads a buffer into bytes, uint8 [bytes], of its size; False where it has to come another way."""
    if not _is_worth_it(connection, destination.size):
        return False
    session = connection.session_and_instance(name.partition("/buffers/")[0])
    transfer = connection.c_channel.begin_download(session, name, options_of(_left(terms)), destination)
    return transfer is not None and _ends_well(connection, transfer, terms)


def _left(terms: Terms) -> float:
    return max(terms.deadline - time.monotonic(), 0.0)


def _ends_well(connection: Connection, transfer: Transfer, terms: Terms) -> bool:
    """Waits for its end, or that of the caller's patience; afterwards nobody but the caller uses the memory. False where
    the connection broke: the other ways begin again, and outlast a restart."""
    try:
        with CallScope(transfer):
            transfer.wait(terms.progress)
        return True
    except Error as error:
        connection.doubt()  # the library's connection has noticed a restart, and Python's has not
        if isinstance(error, Unavailable):
            return False
        raise
    finally:
        transfer.settle()
