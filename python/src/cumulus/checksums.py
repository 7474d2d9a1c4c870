"""CRC-32C of chunks, and of arrays by those of their chunks."""

from __future__ import annotations

from typing import Iterable

import google_crc32c

from .arrays import NDArray

CHUNK_BYTES = 1 << 20


def crc32c(data: NDArray) -> int:
    """Of bytes in an array: the C implementation takes arrays without a copy."""
    value: int = google_crc32c.extend(0, data if google_crc32c.implementation == "c" else data.tobytes())
    return value


def of_chunks(checksums: Iterable[int]) -> int:
    """What tells an array from others: the checksum of its chunks' checksums, in the array's order."""
    value: int = google_crc32c.value(b"".join(each.to_bytes(4, "little") for each in checksums))
    return value


def of_array(data: NDArray) -> int:
    """As `of_chunks`, of bytes, uint8 [bytes]."""
    return of_chunks(crc32c(data[offset : offset + CHUNK_BYTES]) for offset in range(0, data.size, CHUNK_BYTES))
