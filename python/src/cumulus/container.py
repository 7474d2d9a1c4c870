"""Run-length containers, .rle files; docs/operations/run_length.md describes them byte by byte."""

from __future__ import annotations

import struct
from typing import NamedTuple, Tuple

import google_crc32c
import numpy as np

from .arrays import NDArray, dtype_of
from .errors import InvalidArgument
from .v1 import array_pb2

MAGIC = b"\x89CRL\r\n\x1a\n"
HEADER_BYTES = 128
INDEXED_RUNS = 256
_PIXELS, _RAW = 1, 2
_HEADER = struct.Struct("<8sII4BIQ8QQI16xI")


class Content(NamedTuple):
    """What a container holds: runs, or, where `lengths` is empty and `raw`, the array itself."""

    symbols: NDArray
    lengths: NDArray
    shape: Tuple[int, ...]
    pixels: bool
    by_columns: bool
    raw: bool


def _crc(data: bytes) -> int:
    value: int = google_crc32c.value(data)
    return value


def _split(lengths: NDArray, most: int) -> Tuple[NDArray, NDArray]:
    """Runs of `most` elements at most, and how many of them each run becomes."""
    pieces = (lengths + np.uint64(most - 1)) // np.uint64(most)
    counts = np.full(int(pieces.sum()), most, np.uint64)
    rest = lengths - (pieces - np.uint64(1)) * np.uint64(most)
    counts[np.cumsum(pieces.astype(np.int64)) - 1] = rest
    return counts, pieces


def _choose(lengths: NDArray, unit: int) -> Tuple[int, int]:
    """The bytes of a count with which all runs take the fewest bytes, and how many they take."""
    best = (0, 1 << 62)
    for width in (1, 2, 4, 8):
        most = (1 << 8 * width) - 1
        runs = int(((lengths + np.uint64(most - 1)) // np.uint64(most)).sum()) if width < 8 else lengths.size
        total = -(-runs // INDEXED_RUNS) * 8 + (runs * width + 7) // 8 * 8 + runs * unit
        if total < best[1]:
            best = (width, total)
    return best


def pack(content: Content) -> bytes:
    """The container's bytes: of the array itself where its runs would take no fewer."""
    symbols, lengths = content.symbols, content.lengths.astype(np.uint64)
    keep = lengths > 0
    symbols, lengths = symbols[keep], lengths[keep]
    unit = symbols.dtype.itemsize * (symbols.shape[1] if content.pixels else 1)
    width, total = _choose(lengths, unit)
    flags = _PIXELS * content.pixels
    if total < int(np.prod(content.shape, dtype=np.int64)) * symbols.dtype.itemsize:
        counts, pieces = _split(lengths, (1 << 8 * width) - 1) if width < 8 else (lengths, np.ones_like(lengths))
        begins = np.cumsum(counts) - counts
        stored = counts.astype(f"<u{width}").tobytes()
        payload = b"".join((begins[::INDEXED_RUNS].astype("<u8").tobytes(), stored, bytes(-len(stored) % 8),
                            np.repeat(symbols, pieces.astype(np.int64), axis=0).tobytes()))
        order, runs = int(content.by_columns), counts.size
    else:
        payload = decode(content).tobytes()
        flags, width, order, runs = flags | _RAW, 0, 0, 0
    number = array_pb2.ElementType.Value(symbols.dtype.name.upper())
    shape = list(content.shape) + [0] * (8 - len(content.shape))
    header = _HEADER.pack(MAGIC, 1, number, flags, width, order, len(content.shape), 0, runs, *shape, len(payload),
                          _crc(payload), 0)
    return header[:-4] + struct.pack("<I", _crc(header[:-4])) + payload


def _bad(what: str) -> InvalidArgument:
    return InvalidArgument(f"not a run-length container: {what}")


def parse(data: bytes) -> Content:
    """Checks magic, version, both checksums, the size and the counts before it gives anything out."""
    if len(data) < HEADER_BYTES:
        raise _bad(f"it has {len(data)} bytes; the header alone has {HEADER_BYTES}")
    (magic, version, number, flags, width, order, extents, _, runs, *shape, size, crc, header_crc) = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise _bad("it does not begin with the magic bytes of one")
    if _crc(data[: HEADER_BYTES - 4]) != header_crc:
        raise _bad("the header's checksum is wrong; copy the file anew")
    if version != 1:
        raise _bad(f"it is of version {version}; this program reads version 1")
    payload = data[HEADER_BYTES:]
    if len(payload) != size:
        raise _bad(f"the header is followed by {len(payload)} bytes; it says {size}")
    if _crc(payload) != crc:
        raise _bad("the checksum of what follows the header is wrong; copy the file anew")
    raw, pixels = bool(flags & _RAW), bool(flags & _PIXELS)
    if not 1 <= number <= 9 or flags > 3 or order > (0 if raw else 1) or extents > 8:
        raise _bad(f"element type {number}, flags {flags}, order {order}, {extents} extents")
    if (width, runs) != (0, 0) if raw else width not in (1, 2, 4, 8):
        raise _bad(f"counts of {width} bytes, {runs} runs; 1, 2, 4 or 8 bytes are right, or, of a stored array, no runs")
    return _content(payload, (number, width, runs), tuple(shape[:extents]), (raw, pixels, bool(order)))


def _content(payload: bytes, kinds: Tuple[int, int, int], shape: Tuple[int, ...],
             flags: Tuple[bool, bool, bool]) -> Content:
    number, width, runs = kinds
    raw, pixels, by_columns = flags
    dtype = dtype_of(number)
    if pixels and (len(shape) < 2 or not 1 <= shape[-1] <= 4):
        raise _bad(f"pixels of shape {list(shape)}")
    if by_columns and len(shape) - pixels < 2:
        raise _bad(f"columns of shape {list(shape)}; [..., height, width] is right")
    elements = 1
    for extent in shape:
        elements *= extent
    channels = shape[-1] if pixels else 1
    if raw:
        if len(payload) != elements * dtype.itemsize:
            raise _bad(f"{len(payload)} bytes are stored; the shape needs {elements * dtype.itemsize}")
        return Content(np.frombuffer(payload, dtype), np.empty(0, np.uint64), shape, pixels, False, True)
    index_bytes = -(-runs // INDEXED_RUNS) * 8
    symbols_at = index_bytes + (runs * width + 7) // 8 * 8
    if len(payload) != symbols_at + runs * dtype.itemsize * channels:
        raise _bad(f"it holds {len(payload)} bytes; its {runs} runs take {symbols_at + runs * dtype.itemsize * channels}")
    lengths = np.frombuffer(payload, f"<u{width}", runs, index_bytes).astype(np.uint64)
    begins = np.cumsum(lengths, dtype=np.uint64) - lengths
    if runs and int(lengths.min()) == 0:
        raise _bad("a run has no elements; at least 1 is right")
    if not np.array_equal(np.frombuffer(payload, "<u8", index_bytes // 8), begins[::INDEXED_RUNS]):
        raise _bad("its index does not say where its runs begin")
    if int(lengths.sum(dtype=np.uint64)) * channels != elements or (begins[1:] < begins[:-1]).any():
        raise _bad(f"its runs have {int(lengths.sum(dtype=np.uint64))} elements; its shape has {elements // channels}")
    symbols = np.frombuffer(payload, dtype, runs * channels, symbols_at)
    return Content(symbols.reshape(runs, channels) if pixels else symbols, lengths, shape, pixels, by_columns, False)


def decode(content: Content) -> NDArray:
    """The whole array."""
    if content.raw:
        return content.symbols.reshape(content.shape).copy()
    flat = np.repeat(content.symbols, content.lengths.astype(np.int64), axis=0)
    if not content.by_columns:
        return flat.reshape(content.shape)
    images = len(content.shape) - content.pixels - 2
    *outer, height, width = content.shape[: images + 2]
    columns = flat.reshape(*outer, width, height, *content.shape[images + 2:])
    return np.ascontiguousarray(np.swapaxes(columns, images, images + 1))


def encode(array: NDArray, *, pixels: bool = False, by_columns: bool = False) -> Content:
    """The runs of an array, elements compared by their bits."""
    images = array.ndim - pixels - 2
    stored = np.ascontiguousarray(np.swapaxes(array, images, images + 1) if by_columns else array)
    flat = stored.reshape(-1, array.shape[-1]) if pixels else stored.reshape(-1)
    bits = flat.view(f"u{array.dtype.itemsize}")
    different = (bits[1:] != bits[:-1]).any(axis=1) if pixels else bits[1:] != bits[:-1]
    heads = np.concatenate([[0], np.flatnonzero(different) + 1]) if len(flat) else np.empty(0, np.int64)
    lengths = np.diff(np.concatenate([heads, [len(flat)]])).astype(np.uint64)
    return Content(flat[heads], lengths, array.shape, pixels, by_columns, False)
