"""The C library's functions, to the last bit, at numpy's speed where that is sure to give them.

numpy's own sine and arc tangent may differ from the C library's in the last place, and a renderer's C++ calls the latter.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from typing import Any, Callable

import numpy as np

from ..arrays import NDArray

_PI = 3.14159265358979323846
_SURE = 2.0**-48  # relative; numpy's double functions are better by far


def _float_function(name: str, arguments: int, otherwise: Any) -> Callable[..., Any]:
    """A function of the C library on float arrays, one element after another; numpy's where there is none."""
    try:
        library = ctypes.CDLL(ctypes.util.find_library("m") or ctypes.util.find_library("msvcrt"))
        function = getattr(library, name)
    except (AttributeError, OSError, TypeError):
        return lambda *arrays: otherwise(*arrays).astype(np.float32)
    function.restype = ctypes.c_float
    function.argtypes = [ctypes.c_float] * arguments
    elementwise = np.frompyfunc(function, arguments, 1)
    return lambda *arrays: np.asarray(elementwise(*arrays), np.float32)


asinf = _float_function("asinf", 1, np.arcsin)
atan2f = _float_function("atan2f", 2, np.arctan2)


def _each(function: Callable[[float], float], x: NDArray) -> NDArray:
    """Of doubles, one after another."""
    flat = np.fromiter(map(function, x.reshape(-1).tolist()), np.float64, x.size)
    return flat.reshape(x.shape)


def sin(x: NDArray) -> NDArray:
    """Of doubles, in double."""
    return _each(math.sin, x)


def asin(x: NDArray) -> NDArray:
    """Of doubles in [-1, 1], in double."""
    return _each(math.asin, x)


def _rounded(function: Any, exact: Callable[[float], float], x: NDArray) -> NDArray:
    """float(function(x)): those that a last place in double could round otherwise are computed by `exact`."""
    double = function(x)
    single: NDArray = double.astype(np.float32)
    unsure = (double * (1 - _SURE)).astype(np.float32) != (double * (1 + _SURE)).astype(np.float32)
    if unsure.any():
        single[unsure] = _each(exact, x[unsure]).astype(np.float32)
    return single


def sin_pi(x: NDArray) -> NDArray:
    """sin(pi x) of floats, as fast_arithmetic.h has it on a host."""
    return _rounded(np.sin, math.sin, _PI * np.asarray(x, np.float32).astype(np.float64))


def cos_pi(x: NDArray) -> NDArray:
    return _rounded(np.cos, math.cos, _PI * np.asarray(x, np.float32).astype(np.float64))
