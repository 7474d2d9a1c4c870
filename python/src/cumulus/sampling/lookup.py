"""How cells are found: cumulus/distribution.h and cell_search.h. All monotone methods find the same cell."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import numpy as np

from ..arrays import NDArray
from .table_format import EMPTY_TAIL

BELOW_ONE = np.float32(0.99999994)
_HALF = np.float32(0.5)
_ONE = np.float32(1)
_WHOLE = 1 << 32


class Located(NamedTuple):
    """A cell of each point, and where in it the point lies: what is before it and what is after, both in (0, 1)."""

    cell: NDArray  # int64
    mass: NDArray  # uint64, in units of 2^-32
    fraction: NDArray  # float32
    rest: NDArray


class Distribution(NamedTuple):
    """For each point the distribution that it is looked up in: one for all, or the row of each."""

    lower: NDArray  # uint32 [cells] or [rows, cells]
    alias: Optional[NDArray]  # uint32 [..., cells, 2]
    row: Optional[NDArray]  # int64 [points]

    @property
    def cells(self) -> int:
        return int(self.lower.shape[-1])

    def bound(self, index: Any) -> NDArray:
        """Stored lower bounds, EMPTY_TAIL behind the last cell."""
        inside = np.minimum(index, self.cells - 1)
        values: NDArray = self.lower[inside] if self.row is None else self.lower[self.row, inside]
        return np.where(index < self.cells, values, np.uint32(EMPTY_TAIL))

    def alias_of(self, index: Any) -> NDArray:
        assert self.alias is not None
        entries: NDArray = self.alias[index] if self.row is None else self.alias[self.row, index]
        return entries


def find(cells: Distribution, x: NDArray) -> NDArray:
    """The last cell whose lower bound is at most x, or the first."""
    key = np.minimum(x, np.uint32(EMPTY_TAIL - 1))
    if cells.row is None:
        return np.maximum(np.searchsorted(cells.lower, key, side="right") - 1, 0)
    first: NDArray = np.zeros(x.shape, np.int64)
    last = np.full(x.shape, cells.cells - 1, np.int64)
    for _ in range(int(cells.cells - 1).bit_length()):
        middle = first + (last - first + 1) // 2
        below = cells.lower[cells.row, middle] <= key
        first = np.where(below, middle, first)
        last = np.where(below, last, np.maximum(middle - 1, first))
    return first


def mass_at(cells: Distribution, index: NDArray) -> NDArray:
    """cell_at: of any cell, 0 where it has none."""
    lower, following = cells.bound(index), cells.bound(index + 1)
    end = np.where(following == EMPTY_TAIL, np.uint64(_WHOLE), following.astype(np.uint64))
    begin = lower.astype(np.uint64)
    return np.where((lower != EMPTY_TAIL) & (end > begin), end - begin, np.uint64(0))


def _found_mass(lower: NDArray, following: NDArray) -> NDArray:
    mass = np.where(following == EMPTY_TAIL, np.uint32(0), following) - lower
    return np.where(mass == 0, np.uint64(_WHOLE), mass.astype(np.uint64))


def _share(offset: NDArray, half_unit: np.float32, inverse: Any) -> NDArray:
    share: NDArray = np.minimum((offset.astype(np.float32) + half_unit) * inverse, BELOW_ONE)
    return share


def _by_alias(cells: Distribution, x: NDArray) -> Located:
    count = np.uint64(cells.cells)
    scaled = x.astype(np.uint64) * count
    column = (scaled >> np.uint64(32)).astype(np.int64)
    place = (scaled & np.uint64(EMPTY_TAIL)).astype(np.uint32)
    entry = cells.alias_of(column)
    split = (entry[..., 0].astype(np.uint64) * count & np.uint64(EMPTY_TAIL)).astype(np.uint32)
    own = x < entry[..., 0]
    index = np.where(own, column, np.minimum(entry[..., 1], cells.cells - 1).astype(np.int64))
    half_unit = _HALF * np.float32(cells.cells)
    end = np.where(own, split.astype(np.uint64), np.uint64(_WHOLE))
    inverse = _ONE / np.where(own, split.astype(np.uint64), np.uint64(_WHOLE) - split.astype(np.uint64)).astype(np.float32)
    behind = (end - place.astype(np.uint64)).astype(np.float32) - half_unit
    return Located(index, mass_at(cells, index), _share(np.where(own, place, place - split), half_unit, inverse),
                   np.minimum((np.float32(0) + np.where(behind > 0, behind, _HALF)) * inverse, BELOW_ONE))


def locate(cells: Distribution, x: NDArray) -> Located:
    """The cell of each x, uint32, a point in units of 2^-32."""
    if cells.cells == 1:
        unit = np.float32(1.0 / _WHOLE)
        whole = np.full(x.shape, _WHOLE, np.uint64)
        return Located(np.zeros(x.shape, np.int64), whole, _share(x, _HALF, unit), _share(~x, _HALF, unit))
    if cells.alias is not None:
        return _by_alias(cells, x)
    index = find(cells, x)
    lower = cells.bound(index)
    mass = _found_mass(lower, cells.bound(index + 1))
    before = x - lower
    behind = mass.astype(np.uint32) - np.uint32(1) - before
    inverse = _ONE / mass.astype(np.float32)
    return Located(index, mass, _share(before, _HALF, inverse), _share(behind, _HALF, inverse))
