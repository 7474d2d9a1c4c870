"""Projections of the sphere: sampling.h's and equal_area.h's."""

from __future__ import annotations

from typing import Tuple

import numpy as np

from ..arrays import NDArray
from . import libm
from .lookup import BELOW_ONE

PI = np.float32(3.14159265358979)
_ONE = np.float32(1)
_TWO = np.float32(2)
_HALF = np.float32(0.5)


def direction_of(u: NDArray, v: NDArray) -> NDArray:
    """The unit vectors of lat-long positions, float32 [n, 3]."""
    ring = libm.sin_pi(v)
    turn = _TWO * u
    return np.stack([ring * libm.sin_pi(turn), libm.cos_pi(v), -ring * libm.cos_pi(turn)], axis=-1)


def position_of(direction: NDArray) -> Tuple[NDArray, NDArray]:
    """The lat-long positions of directions of any length."""
    x, y, z = (direction[..., axis] for axis in range(3))
    turn = libm.atan2f(x, -z) * (_HALF / PI)
    u = np.where(turn < 0, turn + _ONE, turn)
    v = libm.atan2f(np.sqrt(x * x + z * z), y) * (_ONE / PI)
    return np.where(u > BELOW_ONE, BELOW_ONE, u), np.where(v > BELOW_ONE, BELOW_ONE, v)


def equal_area_direction(u: NDArray, v: NDArray) -> NDArray:
    right, down = _TWO * u - _ONE, _TWO * v - _ONE
    a, b = np.abs(right), np.abs(down)
    upper = a + b <= _ONE
    from_pole = np.where(upper, a + b, (_ONE - a) + (_ONE - b))
    along = np.where(upper, b - a, (_ONE - a) - (_ONE - b))
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(from_pole > 0, along / from_pole + _ONE, _ONE)
    ring = from_pole * np.sqrt(_TWO - from_pole * from_pole)
    height = _ONE - from_pole * from_pole
    quarter = np.float32(0.25) * turn
    return np.stack([np.copysign(ring * libm.cos_pi(quarter), right), np.copysign(ring * libm.sin_pi(quarter), down),
                     np.where(upper, height, -height)], axis=-1)


def equal_area_position(direction: NDArray) -> Tuple[NDArray, NDArray]:
    x, y, z = (np.abs(direction[..., axis]) for axis in range(3))
    ring = np.sqrt(x * x + y * y)
    length = np.sqrt(ring * ring + z * z)
    with np.errstate(divide="ignore", invalid="ignore"):
        from_pole = np.where(ring > 0, ring / np.sqrt(length * (length + z)), np.float32(0))
    turn = np.where(ring > 0, libm.atan2f(y, x) * np.float32(0.636619772), np.float32(0))
    near = from_pole * turn
    far = from_pole - near
    upper = direction[..., 2] >= 0
    u = _HALF + np.copysign(_HALF * np.where(upper, far, _ONE - near), direction[..., 0])
    v = _HALF + np.copysign(_HALF * np.where(upper, near, _ONE - far), direction[..., 1])
    return np.where(u > BELOW_ONE, BELOW_ONE, u), np.where(v > BELOW_ONE, BELOW_ONE, v)
