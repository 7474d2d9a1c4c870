"""Arrays of other libraries on a GPU, as memory that is to be copied there."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from . import dlpack
from .driver import LEGACY_STREAM


class ForeignContent(NamedTuple):
    """Dense elements on a GPU."""

    address: int
    shape: Tuple[int, ...]
    dtype: "np.dtype[Any]"
    stream: Optional[int]  # to copy on, which comes behind what still writes the elements; 0: nothing does; None: nobody says
    owner: Any  # keeps the memory

    @property
    def nbytes(self) -> int:
        """Of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize


def content_of(value: Any) -> Optional[ForeignContent]:
    """Of any object with `__dlpack__` or `__cuda_array_interface__`; None of those in host memory, which are not dense, or of whose type numpy
    has none."""
    device = getattr(value, "__dlpack_device__", None)
    if device is None:
        return _of_interface(value)
    if device()[0] not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        return None
    try:
        capsule = value.__dlpack__(stream=LEGACY_STREAM)  # whose work comes behind what writes the array
    except (BufferError, RuntimeError, TypeError, ValueError):  # one that takes gradients, for instance; its copy on the host may be had
        return None
    content = dlpack.content_of(capsule)
    return None if content is None else ForeignContent(content.address, content.shape, _as_bytes(content.dtype), LEGACY_STREAM, capsule)


def _of_interface(value: Any) -> Optional[ForeignContent]:
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None or interface.get("mask") is not None:
        return None
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if not dlpack.is_dense(shape, interface.get("strides"), dtype.itemsize):
        return None
    stream = interface["stream"] or 0 if "stream" in interface else None  # since version 3
    return ForeignContent(interface["data"][0], shape, _as_bytes(dtype), stream, value)


def _as_bytes(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """bool counts as uint8."""
    return np.dtype(np.uint8) if dtype == np.bool_ else dtype
