"""Arrays of other libraries as numpy's: without a copy from host memory, by one copy from a GPU's."""

from __future__ import annotations

import reprlib
from typing import Any, Mapping, Protocol, Tuple

import numpy as np
import numpy.typing as npt

from .errors import wrong

_CPU = (1, 0)  # kDLCPU
_IN_HOST_MEMORY = (1, 3)  # kDLCPU, kDLCUDAHost

# What libraries call the copy of an array in host memory: PyTorch; CuPy and PyCUDA; Numba and RMM; Warp.
_COPIES = ("cpu", "get", "copy_to_host", "numpy")


class ForeignArray(Protocol):
    """An array of a library that knows GPUs, on one of which it may be: PyTorch's, CuPy's or Numba's, for instance."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]: ...


def is_array(value: Any) -> bool:
    """Whether it is an array of any library, and no scalar."""
    return getattr(value, "ndim", 0) > 0


def imported(value: Any, field: str) -> npt.NDArray[Any]:
    """Any object with an array. InvalidArgument, with `field`, where there is none, or none that numpy can have."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray) and (hidden := np.ma.count_masked(value)):  # type: ignore[no-untyped-call]
            raise wrong(field, f"has {hidden} masked elements, which no operation leaves out",
                        f"an array of which every element counts ({field}.filled(0))")
        return value
    if not hasattr(value, "__dlpack_device__") and not hasattr(value, "__cuda_array_interface__"):
        return _converted(value, field)
    return _taken(value, field) if _is_in_host_memory(value, field) else _copied(value, field)


def _is_in_host_memory(value: Any, field: str) -> bool:
    if not hasattr(value, "__dlpack_device__"):
        return False
    try:
        return value.__dlpack_device__()[0] in _IN_HOST_MEMORY
    except (BufferError, RuntimeError, ValueError) as problem:  # one without elements, as on PyTorch's device "meta"
        raise wrong(field, f"is no array ({problem})", "an array with elements, in memory,") from problem


def _converted(value: Any, field: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(value)
    except (RuntimeError, TypeError, ValueError) as problem:  # PyTorch's of a tensor that requires grad, among others
        raise wrong(field, f"is no array ({problem})", "a numpy array") from problem
    if array.dtype.kind in "OSU" and array.ndim == 0:  # a name, bytes, an open file, None
        raise wrong(field, f"is a {type(value).__name__}, {reprlib.repr(value)}", "an array of numbers")
    return array


def _taken(value: Any, field: str) -> npt.NDArray[Any]:
    """By DLPack, from host memory."""
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as problem:  # a type that numpy lacks, such as bfloat16, or its DLPack
        if hasattr(value, "__array__"):
            return _converted(value, field)
        raise wrong(field, f"cannot be taken ({problem})", "an array of a type that numpy has") from problem


class _ToHost:
    """Offers an array as DLPack has it since 2023: copied to host memory by the library that it is of."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**{**options, "dl_device": _CPU, "copy": True})

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _CPU


def _copied(value: Any, field: str) -> npt.NDArray[Any]:
    """From a GPU, by the array's own library, which waits for what still computes it."""
    way = "its library has none that is known here"
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(_ToHost(value))
        except (BufferError, RuntimeError, TypeError) as problem:  # one that knows no dl_device, or a type that numpy lacks
            way = str(problem)
    for name in _COPIES:
        copy = getattr(value, name, None)
        if callable(copy):
            return _on_host(copy(), field)
    if hasattr(value, "__array__"):  # JAX
        return _converted(value, field)
    raise wrong(field, f"is an array on a GPU, of which no way leads to host memory ({way})", "its copy in host memory")


def _on_host(value: Any, field: str) -> npt.NDArray[Any]:
    """What a copy has brought; it is not copied again."""
    by_dlpack = hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)
    return _taken(value, field) if by_dlpack else _converted(value, field)
