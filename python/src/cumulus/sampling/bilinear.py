"""Draws from bilinear tables and evaluates their density: bilinear.h, and sampling.h's *_bilinear. In double."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import NDArray
from . import libm, sphere
from .constant import Drawn
from .lookup import Distribution, locate, mass_at
from .table_format import EQUAL_AREA, LAT_LONG, PLANE, View

_PI = 3.14159265358979323846


class _Axis:
    """Along one side of a map: its cells end where texels have their centres, and at 0 and 1."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.units = 2 * (cells - 1 if cells > 1 else 1)

    def edge(self, k: NDArray) -> NDArray:
        return np.where(k == 0, 0, np.where(k == self.cells, self.units, 2 * k - 1))

    def extent(self, k: NDArray) -> NDArray:
        extent: NDArray = self.edge(k + 1) - self.edge(k)
        return extent

    def cell_of(self, position: NDArray) -> NDArray:
        inside = (position > 0) & (position < 1)
        k = ((np.where(inside, position, 0.0) * self.units).astype(np.int64) + 1) // 2
        return np.where(position >= 1, self.cells - 1, np.minimum(k, self.cells - 1))

    def share_before(self, k: NDArray, position: NDArray) -> NDArray:
        share = (position * self.units - self.edge(k)) / self.extent(k)
        return np.where(share > 0, np.where(share < 1, share, 1.0), 0.0)

    def position_of(self, k: NDArray, share: NDArray) -> NDArray:
        position = ((self.edge(k) + share * self.extent(k)) / self.units).astype(np.float32)
        before = position.astype(np.float64) * self.units
        position = np.where(before <= self.edge(k), np.nextafter(position, np.float32(1)), position)
        moved: NDArray = np.where(before >= self.edge(k + 1), np.nextafter(position, np.float32(0)), position)
        return moved


def _sine_of_turn(half_turns: NDArray) -> NDArray:
    return libm.sin(_PI * half_turns)


class _Bands:
    """Rows of cells of a lat-long table as seen from their nearer pole, for each point the one of its row."""

    def __init__(self, axis: _Axis, y: NDArray) -> None:
        rows = np.arange(axis.cells)
        south = rows > axis.cells - 1 - rows
        from_pole = np.where(south, axis.cells - 1 - rows, rows)
        first, last = axis.edge(from_pole), axis.edge(from_pole + 1)
        self._units = axis.units
        self._first = first[y]
        self._south = south[y]
        self.extent = self._rise(last.astype(np.float64), first)[y]
        self._edge = _sine_of_turn(first / (2.0 * axis.units))[y]

    def _rise(self, edge: NDArray, first: NDArray) -> NDArray:
        whole = 2.0 * self._units
        return _sine_of_turn((edge + first) / whole) * _sine_of_turn((edge - first) / whole)

    def share_above(self, v: NDArray) -> NDArray:
        from_pole = np.where(self._south, 1.0 - v, v)
        share = self._rise(from_pole * self._units, self._first) / self.extent
        share = np.where(share > 0, share, 0.0)
        share = np.where(share < 1, share, 1.0)
        return np.where(self._south, 1.0 - share, share)

    def position_of(self, share: NDArray) -> NDArray:
        risen = np.where(self._south, 1.0 - share, share) * self.extent
        begin = self._edge * self._edge
        s = begin + risen
        angle = libm.asin(risen / (np.sqrt(s * (1.0 - begin)) + np.sqrt(begin * (1.0 - s))))
        v = self._first / float(self._units) + angle * (2.0 / _PI)
        return np.where(self._south, 1.0 - v, v)


class _Corners(NamedTuple):
    """Weights at the corners of each point's cell, double."""

    top_left: NDArray
    top_right: NDArray
    bottom_left: NDArray
    bottom_right: NDArray

    def mean(self) -> NDArray:
        weight: NDArray = ((self.top_left + self.top_right) + (self.bottom_left + self.bottom_right)) * 0.25
        return weight

    def left(self, down: NDArray) -> NDArray:
        weight: NDArray = self.top_left + (self.bottom_left - self.top_left) * down
        return weight

    def right(self, down: NDArray) -> NDArray:
        weight: NDArray = self.top_right + (self.bottom_right - self.top_right) * down
        return weight

    def at(self, across: NDArray, down: NDArray) -> NDArray:
        weight: NDArray = self.left(down) * (1.0 - across) + self.right(down) * across
        return weight


class _Cells:
    """The cell of each point."""

    def __init__(self, view: View, y: NDArray, x: NDArray) -> None:
        header = view.header
        self._projection = header.projection
        self.columns, self.rows = _Axis(header.width), _Axis(header.height)
        self._y, self._x = y, x
        below = y if header.height == 1 else y + 1
        vertices = view.vertices
        self.corners = _Corners(*(vertices[row, column].astype(np.float64)
                                  for row in (y, below) for column in (x, x + 1)))
        self._bands = _Bands(self.rows, y) if header.projection == LAT_LONG else None

    def density(self, masses: NDArray, u: NDArray, v: NDArray) -> NDArray:
        """At positions within the cells; `masses` are the products of the rows' and columns'."""
        across = self.columns.share_before(self._x, u.astype(np.float64))
        if self._bands is not None:
            down = self._bands.share_above(v.astype(np.float64))
            high = self._bands.extent
        else:
            down = self.rows.share_before(self._y, v.astype(np.float64))
            high = self.rows.extent(self._y).astype(np.float64) / self.rows.units
        wide = self.columns.extent(self._x).astype(np.float64) / self.columns.units
        size = (1.0 if self._projection == PLANE else 4.0 * _PI) * wide * high
        unit = 1.0 / (4294967296.0 * 4294967296.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = masses * unit / size * (self.corners.at(across, down) / self.corners.mean())
        return np.where(masses > 0, density, 0.0).astype(np.float32)

    def row_position(self, down: NDArray) -> NDArray:
        share = down if self._bands is None else self.rows.share_before(self._y, self._bands.position_of(down))
        return self.rows.position_of(self._y, share)


def _invert_linear(first: NDArray, last: NDArray, x: NDArray) -> NDArray:
    """Maps x to the density that grows linearly from `first` to `last`."""
    root = np.sqrt(first * first * (1.0 - x) + last * last * x)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = x * (first + last) / (first + root)
    return np.where(s > 0, np.where(s < 1, s, 1.0), np.where(s <= 0, 0.0, x))


def sample(view: View, points: NDArray) -> Drawn:
    row = locate(Distribution(view.marginal, view.marginal_alias, None), points[:, 1])
    column = locate(Distribution(view.rows, view.row_alias, row.cell), points[:, 0])
    cells = _Cells(view, row.cell, column.cell)
    corners = cells.corners
    down = _invert_linear(corners.top_left + corners.top_right, corners.bottom_left + corners.bottom_right,
                          row.fraction.astype(np.float64))
    across = _invert_linear(corners.left(down), corners.right(down), column.fraction.astype(np.float64))
    u = cells.columns.position_of(column.cell, across)
    v = cells.row_position(down)
    pdf_ = cells.density(row.mass.astype(np.float64) * column.mass.astype(np.float64), u, v)
    if view.header.projection == LAT_LONG:
        return Drawn(u, v, pdf_, sphere.direction_of(u, v))
    if view.header.projection == EQUAL_AREA:
        return Drawn(u, v, pdf_, sphere.equal_area_direction(u, v))
    return Drawn(u, v, pdf_, np.zeros((len(u), 3), np.float32))


def pdf(view: View, u: NDArray, v: NDArray) -> NDArray:
    y = _Axis(view.header.height).cell_of(v.astype(np.float64))
    x = _Axis(view.header.width).cell_of(u.astype(np.float64))
    row = mass_at(Distribution(view.marginal, None, None), y)
    column = mass_at(Distribution(view.rows, None, y), x)
    return _Cells(view, y, x).density(row.astype(np.float64) * column.astype(np.float64), u, v)
