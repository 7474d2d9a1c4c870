"""The .cst layout; docs/operations/sampling_table_format.md has it byte by byte."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, Optional

import google_crc32c
import numpy as np

from ..arrays import NDArray
from ..errors import InvalidArgument
from ..v1 import sampling_table_pb2 as wire

MAGIC = b"CUMST\0\r\n"
HEADER_BYTES = 256
CHECKSUM_OFFSET = 52
EMPTY_TAIL = 0xFFFFFFFF
LAT_LONG, PLANE, EQUAL_AREA = 1, 2, 3
ALIAS = 9  # of Method in cumulus/table_format.h, which numbers methods as the wire does
_NEWEST = 4
_FIELDS = struct.Struct("<8sIIQ10I7Q136s")


class Header(NamedTuple):
    """The first 256 bytes, with the names of cumulus/table_format.h."""

    magic: bytes
    version: int
    header_bytes: int
    total_bytes: int
    width: int
    height: int
    layers: int
    projection: int
    method: int
    interpolation: int
    flags: int
    crc32c: int
    marginal_guide_size: int
    row_guide_size: int
    marginal_cdf_offset: int
    marginal_guide_offset: int
    row_cdf_offset: int
    row_guide_offset: int
    marginal_nodes_offset: int
    row_nodes_offset: int
    vertices_offset: int
    reserved: bytes

    @property
    def bilinear(self) -> bool:
        return self.interpolation == 1

    @property
    def method_name(self) -> str:
        return str(wire.SamplingMethod.Name(self.method)).lower().replace("_", "-")

    @property
    def projection_name(self) -> str:
        return str(wire.Projection.Name(self.projection)).lower().replace("_", "-")


def _bad(what: str) -> InvalidArgument:
    return InvalidArgument(f"not a sampling table: {what}", cure="a table of cumulus sampling-table")


def read_header(table: NDArray) -> Header:
    """Of a table's bytes, checked so far that nothing outside of them is read afterwards."""
    if table.size < HEADER_BYTES:
        raise _bad(f"it has {table.size} bytes; its header alone takes {HEADER_BYTES}")
    header = Header(*_FIELDS.unpack(table[:HEADER_BYTES].tobytes()))
    if header.magic != MAGIC:
        raise _bad("its first eight bytes are not CUMST, 0, CR, LF")
    if not 1 <= header.version <= _NEWEST:
        raise _bad(f"it is of version {header.version}; 1 to {_NEWEST} are read")
    if header.header_bytes != HEADER_BYTES or header.total_bytes != table.size:
        raise _bad(f"it has {table.size} bytes; its header states {header.total_bytes}, so it was cut off or padded")
    _check_kinds(header)
    _check_sections(header)
    return header


def _check_kinds(header: Header) -> None:
    between = int(header.bilinear)
    widest = (1 << 22 if header.height == 1 and header.version > 1 else 32768) + between
    if not (1 + between <= header.width <= widest and 1 <= header.height <= 32768 + between
            and 1 <= header.layers <= 65536):
        raise _bad(f"{header.layers} layers of {header.width} x {header.height} cells; at most 32768 a side, a single "
                   "row 4194304, and 65536 layers are right")
    if header.projection not in wire.Projection.values()[1:]:
        raise _bad(f"projection {header.projection}; 1 to 3 are known")
    if header.method not in wire.SamplingMethod.values()[1:]:
        raise _bad(f"method {header.method}, which this version does not know; build the table anew")
    if header.interpolation > 1 or header.flags or any(header.reserved):
        raise _bad("it uses an option that this version does not know")


def _check_sections(header: Header) -> None:
    rows = header.layers * header.height
    sections = [(header.marginal_cdf_offset, 4 * rows), (header.row_cdf_offset, 4 * rows * header.width)]
    if header.method == ALIAS:
        sections += [(header.marginal_nodes_offset, 8 * rows), (header.row_nodes_offset, 8 * rows * header.width)]
    if header.bilinear:
        sections.append((header.vertices_offset, 4 * header.layers * vertex_rows(header) * (header.width + 1)))
    for offset, size in sections:
        if offset % 256 or offset < HEADER_BYTES or offset + size > header.total_bytes:
            raise _bad(f"a section of {size} bytes at {offset} does not lie within its {header.total_bytes} bytes")


def vertex_rows(header: Header) -> int:
    return 1 if header.height == 1 else header.height + 1


class View:
    """One layer's sections, as arrays over the table's bytes."""

    def __init__(self, table: NDArray, header: Header, layer: int) -> None:
        def section(offset: int, dtype: str, *shape: int) -> NDArray:
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            begin = offset + layer * size
            return table[begin : begin + size].view(dtype).reshape(shape)

        height, width = header.height, header.width
        self.header = header
        self.marginal = section(header.marginal_cdf_offset, "<u4", height)
        self.rows = section(header.row_cdf_offset, "<u4", height, width)
        self.marginal_alias: Optional[NDArray] = None
        self.row_alias: Optional[NDArray] = None
        if header.method == ALIAS:
            self.marginal_alias = section(header.marginal_nodes_offset, "<u4", height, 2)
            self.row_alias = section(header.row_nodes_offset, "<u4", height, width, 2)
        self.vertices: Any = None
        if header.bilinear:
            self.vertices = section(header.vertices_offset, "<f4", vertex_rows(header), width + 1)


def checksum(table: NDArray) -> int:
    """Of a table's bytes, those of the checksum itself taken as 0."""
    copy = table.copy()
    copy[CHECKSUM_OFFSET : CHECKSUM_OFFSET + 4] = 0
    value: int = google_crc32c.value(copy.tobytes())
    return value


def from_file(data: NDArray) -> NDArray:
    """The table of a file's bytes: checked, and with a checksum of 0, as it is in memory."""
    header = read_header(data)
    if checksum(data) != header.crc32c:
        raise _bad("its bytes do not match the crc32c in its header; copy the file anew")
    table = data.copy()
    table[CHECKSUM_OFFSET : CHECKSUM_OFFSET + 4] = 0
    return table


def to_file(table: NDArray) -> bytes:
    data = table.copy()
    data[CHECKSUM_OFFSET : CHECKSUM_OFFSET + 4].view("<u4")[0] = checksum(table)
    return data.tobytes()
