"""The few pieces of protobuf's encoding that are written by hand: what would be copied otherwise, and error details."""

from __future__ import annotations

from typing import Iterator, List, Tuple, Union

Value = Union[int, memoryview]


def varint(number: int) -> bytes:
    """A number of at least 0, seven bits a byte, the lowest first."""
    if number <= 0x7F:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, data: bytes) -> bytes:
    """A field of bytes, a string or a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def _read_varint(data: memoryview, at: int) -> Tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


def fields(message: Union[bytes, memoryview]) -> Iterator[Tuple[int, Value]]:
    """Each field's number and value, which for strings, bytes and messages is a view and not a copy.

    ValueError or IndexError where that is no message.
    """
    data = memoryview(message)
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            number, at = _read_varint(data, at)
            yield tag >> 3, number
            continue
        if kind == 2:
            size, at = _read_varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if size > len(data) - at:
            raise ValueError("a field that is cut off")
        part = data[at : at + size]
        at += size
        yield tag >> 3, part if kind == 2 else int.from_bytes(part, "little")


def text_of(value: Value) -> str:
    return "" if isinstance(value, int) else bytes(value).decode("utf-8", "replace")


def messages(message: Union[bytes, memoryview], number: int) -> List[memoryview]:
    """All values of one field that holds messages."""
    return [value for field, value in fields(message) if field == number and isinstance(value, memoryview)]


def chunk_head(spec: bytes, offset: int, checksum: int, last: bool, size: int) -> bytes:
    """A WriteBufferRequest up to its data, of which `size` bytes are to follow. `spec` is empty but in the first."""
    parts = []
    if spec:
        parts += [b"\x0a", varint(len(spec)), spec]
    if offset:
        parts += [b"\x10", varint(offset)]
    if size:
        parts += [b"\x1d", checksum.to_bytes(4, "little")]
    if last:
        parts.append(b"\x20\x01")
    if size:
        parts += [b"\x52", varint(size)]
    return b"".join(parts)


def read_chunk(message: bytes) -> Tuple[int, int, memoryview]:
    """Offset, checksum and data of a ReadBufferResponse."""
    offset = checksum = 0
    data = memoryview(b"")
    for number, value in fields(message):
        if number == 1 and isinstance(value, int):
            offset = value
        elif number == 2 and isinstance(value, int):
            checksum = value
        elif number == 10 and isinstance(value, memoryview):
            data = value
    return offset, checksum, data
