"""Point sequences in the unit square as pairs of 32-bit fixed-point numbers: point_sequences.h."""

from __future__ import annotations

from typing import Tuple

import numpy as np

from ..arrays import NDArray


def _u32(number: int) -> np.uint32:
    return np.uint32(number)


def reverse_bits(bits: NDArray) -> NDArray:
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        bits = (bits >> _u32(shift) & _u32(mask)) | (bits & _u32(mask)) << _u32(shift)
    return bits >> _u32(16) | bits << _u32(16)


def sobol(index: NDArray) -> NDArray:
    """The first two dimensions of Sobol's sequence, uint32 [n, 2]."""
    digits = index
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0xFFFFFFFF)):
        digits = digits ^ (digits >> _u32(shift) & _u32(mask))
    return np.stack([reverse_bits(index), reverse_bits(digits)], axis=-1)


def hammersley(index: NDArray, total: int) -> NDArray:
    first = ((index.astype(np.uint64) << np.uint64(32)) // np.uint64(total)).astype(np.uint32)
    return np.stack([first, reverse_bits(index)], axis=-1)


def _philox(index: NDArray, purpose: int, key: int) -> NDArray:
    """Philox-4x32-10 of the counters (index, 0, purpose, 0)."""
    counter = [index.astype(np.uint64), np.zeros_like(index, np.uint64),
               np.full_like(index, purpose, np.uint64), np.zeros_like(index, np.uint64)]
    low, high = key & 0xFFFFFFFF, key >> 32
    word = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        even = counter[0] * np.uint64(0xD2511F53)
        odd = counter[2] * np.uint64(0xCD9E8D57)
        counter = [(odd >> np.uint64(32)) ^ counter[1] ^ np.uint64(low), odd & word,
                   (even >> np.uint64(32)) ^ counter[3] ^ np.uint64(high), even & word]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(counter[:2], axis=-1).astype(np.uint32)


def random(index: NDArray, key: int) -> NDArray:
    return _philox(index, 0, key)


def points(name: str, first: int, count: int, options: Tuple[int, int]) -> NDArray:
    """uint32 [count, 2], as DrawSamples takes them; `options` are its seed and total."""
    seed, total = options
    index = np.arange(first, first + count, dtype=np.uint64).astype(np.uint32)
    if name == "random":
        return random(index, seed)
    drawn = sobol(index) if name == "sobol" else hammersley(index, total or first + count)
    return drawn ^ _philox(np.zeros(1, np.uint32), 1, seed) if seed else drawn


def fixed_point(x: NDArray) -> NDArray:
    """Floats in [0, 1) as fixed point: below 0 and NaN count as 0, above as the largest."""
    inside = (x > 0) & (x < 1)
    scaled = np.where(inside, x, np.float32(0)).astype(np.float32) * np.float32(4294967296.0)
    return np.where(x >= 1, np.uint32(0xFFFFFFFF), scaled.astype(np.uint32))
