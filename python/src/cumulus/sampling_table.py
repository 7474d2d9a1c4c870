"""Sampling tables: built on a server, drawn from there or here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

import numpy as np

from .arrays import AnyArray, NDArray, as_array, choose
from .buffer import Buffer
from .errors import wrong
from .foreign import imported
from .operation import CallOptions, nbytes, whole
from .sampling import bilinear, constant, sequences, sphere, table_format
from .v1 import sampling_table_pb2 as wire

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .client import Client


class Samples(NamedTuple):
    """Points that were drawn.

    Attributes:
        position: float32 [count, 2]: u, v in [0, 1), v down.
        pdf: float32 [count]: the density with which they are drawn, per steradian; of a plane per unit of area.
        direction: float32 [count, 3], of unit length; of a plane None.
    """

    position: NDArray
    pdf: NDArray
    direction: Optional[NDArray]


class SamplingTable:
    """A distribution in proportion to a map's weights; made by `Client.sampling_table` and `load`.

    It lies on a server, where `sample(count)` and `pdf` then run, or here, where numpy does the same with the bits of
    cumulus/sampling.h. `local()` fetches one, `to(client)` brings one to a server.
    """

    def __init__(self, *, resident: Optional[Buffer] = None, table: Optional[NDArray] = None) -> None:
        self._resident = resident
        self._table = table
        self._header: Optional[table_format.Header] = None

    @property
    def table(self) -> NDArray:
        """The .cst layout, uint8 [bytes], with a checksum of 0."""
        if self._table is None:
            assert self._resident is not None
            self._table = self._resident.numpy()
        return self._table

    @property
    def header(self) -> table_format.Header:
        """What the table says of itself: its shape, projection, interpolation and method."""
        if self._header is None:
            self._header = table_format.read_header(self.table)
        return self._header

    @property
    def buffer(self) -> Optional[Buffer]:
        """The table on the server, or None."""
        return self._resident

    @property
    def nbytes(self) -> int:
        """The bytes of the whole table, wherever it is."""
        return self._resident.nbytes if self._resident is not None else int(self.table.size)

    def __repr__(self) -> str:
        where = f"on {self._resident.client.address}" if self._resident is not None else "here"
        return f"<cumulus.SamplingTable of {self.nbytes} bytes {where}>"

    def local(self) -> "SamplingTable":
        """The same table without a server."""
        return SamplingTable(table=self.table)

    def to(self, client: "Client") -> "SamplingTable":
        """The same table on a server."""
        return SamplingTable(resident=client.upload(self.table), table=self._table)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a .cst file, which the command line, cumulus/sampling.h and `load` read."""
        data = table_format.to_file(self.table)
        with open(path, "wb") as file:
            file.write(data)

    @classmethod
    def from_bytes(cls, data: bytes) -> "SamplingTable":
        """Of a .cst file's bytes; InvalidArgument where they are none, or damaged."""
        table = cls(table=table_format.from_file(np.frombuffer(data, np.uint8)))
        table._header = table_format.read_header(table.table)
        return table

    def sample(self, points: Union[int, AnyArray], *, sequence: str = "sobol", first_index: int = 0, seed: int = 0,
               total: int = 0, layer: int = 0, **call: "Unpack[CallOptions]") -> Samples:
        """Draws points with a density in proportion to the weights.

        Args:
            points: how many, of the sequence: on the server where the table is there. Or the points of the unit square
                to be mapped, [count, 2], floats in [0, 1) or uint32 in units of 2^-32, of which the first chooses the
                column and the second the row: always here.
            sequence: "sobol", "hammersley" or "random" (Philox, counter-based).
            first_index: where in the sequence to begin.
            seed: of "random" the key; otherwise a random digital shift unless 0.
            total: of "hammersley", the size of the whole set; 0: first_index + points.
            layer: of a layered table, which one.
        """
        kind = choose(wire.Sequence, "", sequence, "sequence")
        if isinstance(points, float):
            raise wrong("points", f"is {points}", "how many, an int, or points of the unit square, [count, 2]")
        if not isinstance(points, (int, np.integer)):
            return self._map(_fixed(points), layer)
        if points < 1:
            raise wrong("points", f"is {points}", "at least 1")
        if self._resident is None:
            return self._map(sequences.points(wire.Sequence.Name(kind).lower(), first_index, int(points), (seed, total)), layer)
        request = wire.DrawSamplesRequest(count=int(points), first_index=whole(first_index, "first_index"),
                                          seed=whole(seed, "seed", 0, 2**64 - 1), total=whole(total, "total"),
                                          layer=whole(layer, "layer", 0, 2**32 - 1))
        request.sequence = kind
        run = self._resident.client.begin("DrawSamples", request, call).called((("count", "points"),)).source(request.table, self._resident, "table")
        result = run.run(False, 24 * int(points))
        direction = result.array("direction") if "direction" in result else None
        return Samples(result.array("position"), result.array("pdf"), direction)

    def _view(self, layer: int) -> table_format.View:
        if not 0 <= layer < self.header.layers:
            raise wrong("layer", f"is {layer}", f"0 to {self.header.layers - 1}")
        return table_format.View(self.table, self.header, layer)

    def _map(self, points: NDArray, layer: int) -> Samples:
        view = self._view(layer)
        drawn = (bilinear if self.header.bilinear else constant).sample(view, points)
        direction = None if self.header.projection == table_format.PLANE else drawn.direction
        return Samples(np.stack([drawn.u, drawn.v], axis=-1), drawn.pdf, direction)

    def pdf(self, points: Union[AnyArray, Buffer], *, layer: int = 0, **call: "Unpack[CallOptions]") -> Any:
        """The density with which `sample` draws there: on the server where the table is there, otherwise here.

        Args:
            points: [count, 2], positions u, v, of which what lies outside of [0, 1) counts as the nearest inside; or,
                unless the table is a plane's, [count, 3], directions of any length.
            layer: whose table of several: 0 to layers - 1.

        Returns:
            float32 [count].
        """
        if self._resident is not None:
            return self._evaluate(points, layer, call)
        if isinstance(points, Buffer):
            raise wrong("points", "are on a server, and the table is not", "table.to(client)")
        places = _floats(points)
        view = self._view(layer)
        if places.shape[1] == 2:
            u, v = places[:, 0], places[:, 1]
        elif view.header.projection == table_format.PLANE:
            raise wrong("points", "are directions, and the table is a plane's", "positions [count, 2]")
        elif view.header.projection == table_format.EQUAL_AREA:
            u, v = sphere.equal_area_position(places)
        else:
            u, v = sphere.position_of(places)
        return (bilinear if view.header.bilinear else constant).pdf(view, u, v)

    def _evaluate(self, points: Union[AnyArray, Buffer], layer: int, options: CallOptions) -> Any:
        assert self._resident is not None
        request = wire.EvaluateDensityRequest(layer=whole(layer, "layer", 0, 2**32 - 1))
        asked = points if isinstance(points, Buffer) else _floats(points)
        run = self._resident.client.begin("EvaluateDensity", request, options)
        run.source(request.table, self._resident, "table").source(request.points, asked, "points")
        resident = isinstance(asked, Buffer)
        return run.run(resident, nbytes("float32", *asked.shape[:1])).either("pdf", resident)

    def probabilities(self, layer: int = 0) -> NDArray:
        """Of each cell of one `layer`, float64 [height, width]: the table's own shares, which add up to 1."""
        view = self._view(layer)
        return _masses(view.marginal)[:, None] * _masses(view.rows)

    def plot(self, axes: Any = None, samples: int = 1024) -> Any:
        """Draws the map's density with samples on it; needs matplotlib. Returns the axes."""
        from .plotting import plot_table

        return plot_table(self, axes, samples)

    def _repr_html_(self) -> str:
        from .plotting import html

        header = self.header
        facts = {"cells": f"{header.width} x {header.height}", "layers": header.layers,
                 "projection": header.projection_name, "method": header.method_name,
                 "interpolation": "bilinear" if header.bilinear else "constant", "bytes": self.nbytes}
        return html(self, "Sampling table", facts)


def _masses(bounds: NDArray) -> NDArray:
    ends = np.concatenate([bounds[..., 1:], np.full(bounds.shape[:-1] + (1,), table_format.EMPTY_TAIL, "u4")], axis=-1)
    whole = 2.0**32
    upper = np.where(ends == table_format.EMPTY_TAIL, whole, ends)
    masses: NDArray = (upper - np.where(bounds == table_format.EMPTY_TAIL, whole, bounds)) / whole
    return masses


def _fixed(points: Any) -> NDArray:
    array = as_array(points, "points", ("uint32", "float64", "float32"))
    if array.ndim != 2 or array.shape[1] != 2:
        raise wrong("points", f"has the shape {list(array.shape)}", "[count, 2]")
    return array if array.dtype == np.uint32 else sequences.fixed_point(array.astype(np.float32))


def _floats(points: Any) -> NDArray:
    given = imported(points, "points")  # also [[0, 1, 0]]
    array = as_array(given.astype(np.float32) if given.dtype.kind in "iu" else given, "points", ("float64", "float32"))
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise wrong("points", f"has the shape {list(array.shape)}", "[count, 2], positions, or [count, 3], directions")
    return array.astype(np.float32, copy=False)
