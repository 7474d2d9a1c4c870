"""Draws from constant tables and evaluates their density: sampling.h's sample_constant and pdf_constant."""

from __future__ import annotations

from typing import NamedTuple, Tuple

import numpy as np

from ..arrays import NDArray
from . import libm, sphere
from .lookup import BELOW_ONE, Distribution, locate, mass_at
from .table_format import EQUAL_AREA, LAT_LONG, View

_ONE = np.float32(1)
_TWO = np.float32(2)
_FOUR_PI = np.float32(4) * sphere.PI
_UNIT = np.float32(1.0 / 4294967296.0)


class Drawn(NamedTuple):
    """Samples: float32 u, v and pdf, [n]; direction [n, 3], zeros of a plane."""

    u: NDArray
    v: NDArray
    pdf: NDArray
    direction: NDArray


def cell_of(position: NDArray, count: int) -> NDArray:
    """Which of `count` equal parts of [0, 1) holds each position; outside of it the nearest; of NaN the first."""
    inside = (position > 0) & (position < 1)
    cell = (np.where(inside, position, np.float32(0)) * np.float32(count)).astype(np.int64)
    return np.where(position >= 1, count - 1, np.minimum(cell, count - 1))


def _position_in(index: NDArray, fraction: NDArray, count: int) -> NDArray:
    """(index + fraction) / count, moved by an ulp where rounding has carried it into another cell."""
    cells = np.float32(count)
    begin = index.astype(np.float32)
    position: NDArray = (begin + fraction) / cells
    place = position * cells
    astray = ~((place >= begin) & (place < begin + _ONE))
    for _ in range(2):
        if not astray.any():
            break
        lost = position[astray]
        cell = np.where(lost < _ONE, np.minimum((lost * cells).astype(np.int64), count - 1), count)
        wanted = index[astray]
        steps = np.where(cell == wanted, 0, np.where(cell < wanted, 1, -1)).astype(np.int32)
        position[astray] = (lost.view(np.int32) + steps).view(np.float32)
    return position


class _Bands:
    """Rows of a lat-long table as seen from their nearer pole, in s = sin^2(theta / 2)."""

    def __init__(self, height: int) -> None:
        y = np.arange(height)
        self.south = y >= height - y
        rank = np.where(self.south, height - 1 - y, y).astype(np.float32)
        twice = _TWO * np.float32(height)
        edge = libm.sin_pi(rank / twice)
        self.begin = edge * edge
        self.extent = libm.sin_pi((_TWO * rank + _ONE) / twice) * libm.sin_pi(np.array([_ONE / twice]))


def _share(mass: NDArray) -> NDArray:
    return mass.astype(np.float32) * _UNIT


def _row_density(view: View, bands: _Bands, y: NDArray, mass: NDArray) -> NDArray:
    header = view.header
    row: NDArray = _share(mass) * np.float32(header.width)
    if header.projection == LAT_LONG:
        row /= _FOUR_PI * bands.extent[y]
        return row
    row *= np.float32(header.height)
    if header.projection == EQUAL_AREA:
        row /= _FOUR_PI
    return row


def _angle_of_rise(height: int, begin: NDArray, rise: NDArray, s: NDArray) -> NDArray:
    sine: NDArray = rise / (np.sqrt(s * (_ONE - begin)) + np.sqrt(begin * (_ONE - s)))
    if height < 16:
        exact: NDArray = libm.asinf(sine)
        return exact
    square = sine * sine
    angle: NDArray = sine + sine * square * (_ONE / np.float32(6) + square * (np.float32(3) / np.float32(40)))
    return angle


def _on_sphere(view: View, place: Tuple[NDArray, NDArray, NDArray], begin: NDArray, extent: NDArray,
               y: NDArray) -> Tuple[NDArray, NDArray]:
    """v and the direction for points that lie `fraction` of their row's solid angle away from its nearer pole."""
    fraction, south, u = place
    rise = fraction * extent
    s = begin + rise
    height = view.header.height
    half_angle = _angle_of_rise(height, begin, rise, s)
    offset = half_angle * (_TWO / sphere.PI) * np.float32(height)
    offset = np.where(offset < BELOW_ONE, offset, BELOW_ONE)
    v = _position_in(y, np.where(south, _ONE - offset, offset), height)
    ring = _TWO * np.sqrt(s * (_ONE - s))
    turn = _TWO * u
    up = np.where(south, _TWO * s - _ONE, _ONE - _TWO * s)
    return v, np.stack([ring * libm.sin_pi(turn), up, -ring * libm.cos_pi(turn)], axis=-1)


def sample(view: View, points: NDArray) -> Drawn:
    """Of points in fixed point, uint32 [n, 2]: the first chooses the column, the second the row."""
    header = view.header
    row = locate(Distribution(view.marginal, view.marginal_alias, None), points[:, 1])
    y = row.cell
    bands = _Bands(header.height)
    density = _row_density(view, bands, y, row.mass)
    column = locate(Distribution(view.rows, view.row_alias, y), points[:, 0])
    pdf = density * _share(column.mass)
    u = _position_in(column.cell, column.fraction, header.width)
    if header.projection == LAT_LONG:
        south = bands.south[y]
        if header.height == 1:
            south = row.rest < row.fraction  # both poles are this row's
        place = (np.where(south, row.rest, row.fraction), south, u)
        v, direction = _on_sphere(view, place, bands.begin[y], bands.extent[y], y)
        return Drawn(u, v, pdf, direction)
    v = _position_in(y, row.fraction, header.height)
    if header.projection == EQUAL_AREA:
        return Drawn(u, v, pdf, sphere.equal_area_direction(u, v))
    return Drawn(u, v, pdf, np.zeros((len(u), 3), np.float32))


def pdf(view: View, u: NDArray, v: NDArray) -> NDArray:
    y = cell_of(v, view.header.height)
    x = cell_of(u, view.header.width)
    row = mass_at(Distribution(view.marginal, None, None), y)
    column = mass_at(Distribution(view.rows, None, y), x)
    return _row_density(view, _Bands(view.header.height), y, row) * _share(column)
