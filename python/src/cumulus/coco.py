"""Masks as COCO and pycocotools keep them: lengths of zeros and ones in turn, column by column, as text."""

from __future__ import annotations

from typing import Sequence, Tuple, Union

import numpy as np

from .arrays import NDArray
from .errors import InvalidArgument

_GROUPS = 7  # differences of 32-bit lengths have 33 bits with their sign
_PLAIN = 3  # the first lengths are written as they are


def text_of(counts: Union[NDArray, Sequence[int]]) -> str:
    """The text of a mask's lengths, zeros first: what pycocotools has in `counts`."""
    numbers = np.asarray(counts, np.int64).copy()
    numbers[_PLAIN:] -= np.asarray(counts, np.int64)[1:-2] if len(numbers) > _PLAIN else 0
    shifts = 5 * np.arange(_GROUPS)
    groups = numbers[:, None] >> shifts & 31
    rest = numbers[:, None] >> shifts + 5
    ends = rest == np.where(groups & 16, -1, 0)
    last = ends.argmax(axis=1)[:, None]
    place = np.arange(_GROUPS)
    characters = 48 + groups + np.where(place < last, 32, 0)
    text: bytes = characters[place <= last].astype(np.uint8).tobytes()
    return text.decode("ascii")


def counts_of(text: Union[str, bytes], height: int, width: int) -> NDArray:
    """The lengths that a text stands for, int64. InvalidArgument where it is none of a mask of that size."""
    data = text.encode() if isinstance(text, str) else bytes(text)
    digits = np.frombuffer(data, np.uint8).astype(np.int64) - 48
    if digits.size and (digits.min() < 0 or digits.max() > 63):
        place = int(np.flatnonzero((digits < 0) | (digits > 63))[0])
        raise _bad(f"at character {place} there is byte {data[place]}; '0' to 'o' are right")
    ends = digits & 32 == 0
    if digits.size and not ends[-1]:
        raise _bad("its last number is cut off")
    begins = np.concatenate([[True], ends[:-1]]) if digits.size else ends
    number = np.cumsum(begins) - 1
    group = np.arange(digits.size) - np.flatnonzero(begins)[number] if digits.size else number
    if digits.size and group.max() >= _GROUPS:
        raise _bad(f"a number has more than {_GROUPS} characters")
    values = np.zeros(int(ends.sum()), np.int64)
    np.add.at(values, number, (digits & 31) << 5 * group)
    values -= np.where(digits[ends] & 16, np.int64(1) << 5 * (group[ends] + 1), 0)
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    if values.size and (values.min() < 0 or values.max() >= 1 << 32):
        raise _bad("a run has a length that is not 0 to 2^32 - 1")
    if int(values.sum()) != height * width:
        raise _bad(f"its runs have {int(values.sum())} pixels; {height} x {width} has {height * width}")
    return values


def alternating(symbols: NDArray, lengths: NDArray) -> NDArray:
    """The lengths of a mask's runs as COCO has them: zeros first, of length 0 where the mask begins with a one."""
    if symbols.size and symbols.max() > 1:
        raise InvalidArgument(f"mask: has the value {int(symbols.max())}; zeros and ones are right (mask > 0)",
                              field="mask", cure="zeros and ones (mask > 0)")
    heads = np.flatnonzero(np.concatenate([[True], symbols[1:] != symbols[:-1]])) if symbols.size else np.empty(0, int)
    counts = np.add.reduceat(lengths.astype(np.int64), heads) if heads.size else np.empty(0, np.int64)
    return np.concatenate([[0], counts]) if symbols.size and symbols[0] else counts


def box_of(counts: NDArray, height: int) -> Tuple[int, int, int, int]:
    """x, y, width, height of the smallest box around the ones; all 0 where there are none."""
    ends = np.cumsum(counts)
    ones = np.zeros(len(counts), bool)
    ones[1::2] = True
    ones &= counts > 0
    if not ones.any():
        return 0, 0, 0, 0
    first, last = (ends - counts)[ones], ends[ones] - 1
    over = first // height != last // height  # it goes over a column's end
    top = int(np.where(over, 0, first % height).min())
    bottom = int(np.where(over, height - 1, last % height).max())
    left, right = int(first[0] // height), int(last[-1] // height)
    return left, top, right - left + 1, bottom - top + 1


def _bad(what: str) -> InvalidArgument:
    return InvalidArgument(f"not a COCO mask: {what}", field="counts")
