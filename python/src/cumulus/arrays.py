"""Arrays between numpy and the wire: dense, row-major, little-endian."""

from __future__ import annotations

import collections.abc
import functools
import math
import operator
import sys
from typing import Any, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from .errors import Internal, wrong
from .foreign import ForeignArray, imported
from .v1 import array_pb2

NDArray = npt.NDArray[Any]
AnyArray = Union[NDArray, ForeignArray, List[Any], Tuple[Any, ...]]
"""What arrays may be on their way in, lists of rows too; whatever has `__dlpack__`, `__array_interface__` or `__array__` is taken, too."""

_KINDS: Dict[int, "np.dtype[Any]"] = {
    number: np.dtype(name.lower()).newbyteorder("<")
    for name, number in array_pb2.ElementType.items()
    if number
}
_NUMBERS = {dtype.name: number for number, dtype in _KINDS.items()}
DTYPES: Tuple[str, ...] = tuple(_NUMBERS)
"""The dtypes that Cumulus has: uint8 to uint64, int32, int64, float16 to float64."""

MAX_EXTENTS = 8


@functools.lru_cache(maxsize=64)
def name_of(dtype: "np.dtype[Any]") -> str:
    """`dtype.name`, which numpy puts together anew each time: 10 us of a call."""
    return dtype.name


def dtype_of(element_type: int) -> "np.dtype[Any]":
    if element_type in _KINDS:
        return _KINDS[element_type]
    raise Internal(f"the server sent an array of element type {element_type}, which this client does not know",
                   cure="use a client of the server's version")


def element_of(dtype: "np.dtype[Any]") -> Optional[int]:
    """Its array_pb2.ElementType; bool counts as uint8. None of those that Cumulus has not."""
    name = name_of(dtype)
    return _NUMBERS.get("uint8" if name == "bool" else name)


def write_spec(dtype: "np.dtype[Any]", shape: Sequence[int], spec: Any) -> None:
    """Fills an ArraySpec."""
    spec.element_type = _NUMBERS[name_of(dtype)]
    spec.shape.extend(shape)


def bytes_of(array: NDArray) -> NDArray:
    """The bytes of a contiguous array, as uint8 [bytes], without a copy."""
    return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)


def as_array(value: Any, field: str, dtypes: Sequence[str] = DTYPES, extents: Optional[Sequence[int]] = None) -> NDArray:
    """`value` as a contiguous array of one of `dtypes`, and with one of these numbers of extents.

    What is contiguous, little-endian and in host memory is not copied. bool counts as uint8. InvalidArgument, with `field`,
    otherwise.
    """
    array = value if type(value) is np.ndarray else imported(value, field)
    if array.dtype == np.bool_ and "uint8" in dtypes:
        array = array.view(np.uint8)
    check_array(array, field, dtypes, extents)
    if type(array) is np.ndarray and array.flags.c_contiguous and array.dtype.isnative and sys.byteorder == "little":
        return array
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)


def narrowed(value: Any, field: str, dtype: Any) -> Any:
    """A list, or an array of whole numbers of another width, as one of `dtype`, where all of them fit; anything else as it is."""
    array = imported(value, field) if isinstance(value, (list, tuple)) else value
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu" or array.dtype == dtype or not array.size:
        return array
    limits = np.iinfo(dtype)
    return array.astype(dtype) if array.min() >= limits.min and array.max() <= limits.max else array


class Extents:
    """What follows from an array's `shape` and `dtype`."""

    shape: Tuple[int, ...]
    dtype: "np.dtype[Any]"

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, in the server's or the GPU's memory."""
        return self.size * self.dtype.itemsize


class Described(Protocol):
    """An array, wherever it is."""

    @property
    def shape(self) -> Tuple[int, ...]: ...

    @property
    def dtype(self) -> "np.dtype[Any]": ...


def check_array(array: Described, field: str, dtypes: Sequence[str], extents: Optional[Sequence[int]]) -> None:
    """As as_array says."""
    ndim = len(array.shape)
    if name_of(array.dtype) not in dtypes:
        raise wrong(field, f"has elements of {array.dtype}", " or ".join(dtypes) + f" ({field}.astype('{dtypes[-1]}'))")
    if extents is not None and ndim not in extents:
        raise wrong(field, f"has the shape {list(array.shape)}", " or ".join(str(count) for count in extents) + " extents")
    if ndim > MAX_EXTENTS:
        raise wrong(field, f"has {ndim} extents", f"at most {MAX_EXTENTS}")


def allocated(shape: Union[int, Sequence[int]], dtype: Any) -> Tuple[Tuple[int, ...], "np.dtype[Any]"]:
    """The extents and dtype of an array that is to be made. InvalidArgument where the server has none such."""
    try:
        kind = np.dtype(dtype)
        extents = tuple(operator.index(each) for each in (shape if isinstance(shape, collections.abc.Iterable) else (shape,)))
    except TypeError as problem:
        raise wrong("shape or dtype", f"cannot be read ({problem})", "an extent or several, and a dtype of numpy") from problem
    if kind.name not in DTYPES and kind != np.bool_:
        raise wrong("dtype", f"is {kind}", " or ".join((*DTYPES, "bool")))
    if len(extents) > MAX_EXTENTS or any(each < 0 for each in extents):
        raise wrong("shape", f"is {list(extents)}", f"at most {MAX_EXTENTS} extents of at least 0")
    return extents, kind


def check_image(shape: Sequence[int], field: str, batch: bool = False) -> None:
    """[height, width] or [height, width, channels], 1 to 4 channels; `batch`: also with images in front."""
    extents = (2, 3, 4) if batch else (2, 3)
    right = "[height, width] or [height, width, channels]" + (" or [images, height, width, channels]" if batch else "")
    if len(shape) not in extents:
        raise wrong(field, f"has the shape {list(shape)}", right)
    if len(shape) > 2 and not 1 <= shape[-1] <= 4:
        raise wrong(field, f"has {shape[-1]} channels", f"1 to 4 ({right})")


def read_inline(inline: Any) -> NDArray:
    """An InlineArray as an array of its own memory."""
    dtype = dtype_of(inline.spec.element_type)
    shape = tuple(inline.spec.shape)
    array = np.frombuffer(inline.data, dtype)
    if array.size != int(np.prod(shape, dtype=np.int64)):
        raise Internal(f"the server sent {len(inline.data)} bytes for an array of shape {list(shape)}")
    return array.reshape(shape).copy()


_CHOSEN: Dict[Tuple[int, str, str], int] = {}  # by enum, which lives as long as the program


def choose(kinds: Any, prefix: str, name: str, field: str) -> Any:
    """The number of an enum's value by its name: 'radix-forest', 'lat-long', with or without the enum's prefix."""
    known = _CHOSEN.get((id(kinds), prefix, name))
    if known is not None:
        return known
    wanted = str(name).upper().replace("-", "_")
    values: Mapping[str, int] = dict(kinds.items())
    for spelling in (wanted, prefix + wanted):
        if values.get(spelling, 0):
            _CHOSEN[id(kinds), prefix, name] = values[spelling]
            return values[spelling]
    names = [value[len(prefix):] if value.startswith(prefix) else value for value, number in values.items() if number]
    raise wrong(field, f"is {name!r}", " or ".join(repr(value.lower().replace("_", "-")) for value in names))
