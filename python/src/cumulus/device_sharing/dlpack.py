"""DLPack's capsules of GPU memory: made, and read. https://dmlc.github.io/dlpack/latest/c_api.html"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, PYFUNCTYPE, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np

CPU, CUDA, CUDA_MANAGED = 1, 2, 13  # DLDeviceType
READ_ONLY, COPIED = 1, 2  # flags
_VERSION = (1, 0)
_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"
_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLDataTypeCode, by numpy's


class _Device(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", _Device), ("ndim", c_int32), ("dtype", _DataType), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", _Tensor)]


_held: Dict[int, Any] = {}  # what tensors that are out need, by their address
_Deleter = ctypes.CFUNCTYPE(None, c_void_p)
_Destructor = PYFUNCTYPE(None, c_void_p)  # of a capsule that is being destroyed: its address alone

_new = PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_is_valid_at = PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_at = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _delete(address: int) -> None:
    """By whoever has taken a tensor, when it needs it no more."""
    _held.pop(address, None)


def _destroy(capsule: int) -> None:
    """Of a capsule whose tensor nobody has taken; who takes one changes the name."""
    for name in (_PLAIN, _VERSIONED):
        if _is_valid_at(capsule, name):
            _held.pop(_pointer_at(capsule, name), None)


_deleter, _destructor = _Deleter(_delete), _Destructor(_destroy)
for _callback in (_deleter, _destructor):  # may be called until the process ends, when this module is gone
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))


class Content(NamedTuple):
    """A dense array on a GPU."""

    address: int
    device: int
    shape: Tuple[int, ...]
    dtype: "np.dtype[Any]"


def capsule_of(content: Content, owner: Any, *, flags: int, versioned: bool) -> Any:
    """Holds `owner` until the tensor's taker, or the capsule, is gone."""
    ndim = len(content.shape)
    extents = (c_int64 * ndim)(*content.shape)
    steps = [int(np.prod(content.shape[axis + 1 :], dtype=np.int64)) for axis in range(ndim)]
    strides = (c_int64 * ndim)(*steps)
    tensor = _Tensor(content.address or None, _Device(CUDA, content.device), ndim,
                     _DataType(_KINDS[content.dtype.kind], 8 * content.dtype.itemsize, 1), extents, strides, 0)
    deleter = ctypes.cast(_deleter, c_void_p)
    managed: Any = (_ManagedVersioned(*_VERSION, None, deleter, flags, tensor) if versioned
                    else _Managed(tensor, None, deleter))
    address = ctypes.addressof(managed)
    _held[address] = (managed, extents, strides, owner)
    return _new(address, _VERSIONED if versioned else _PLAIN, ctypes.cast(_destructor, c_void_p))


def content_of(capsule: Any) -> Optional[Content]:
    """What a capsule that stays untaken has, for as long as it lives; None of what is not dense, or no type of numpy's."""
    if _is_valid(capsule, _VERSIONED):
        versioned = ctypes.cast(_pointer(capsule, _VERSIONED), POINTER(_ManagedVersioned)).contents
        if versioned.major != _VERSION[0]:
            return None
        tensor = versioned.tensor
    elif _is_valid(capsule, _PLAIN):
        tensor = ctypes.cast(_pointer(capsule, _PLAIN), POINTER(_Managed)).contents.tensor
    else:
        return None
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    dtype = _dtype_of(tensor.dtype)
    if dtype is None or not is_dense(shape, strides):
        return None
    return Content((tensor.data or 0) + tensor.byte_offset, tensor.device.id, shape, dtype)


def _dtype_of(kind: _DataType) -> "Optional[np.dtype[Any]]":
    names = {code: name for name, code in _KINDS.items()}
    if kind.lanes != 1 or kind.code not in names or kind.bits % 8:
        return None
    try:
        return np.dtype(f"{names[kind.code]}{kind.bits // 8}")
    except TypeError:
        return None


def is_dense(shape: Tuple[int, ...], strides: Optional[Tuple[int, ...]], width: int = 1) -> bool:
    """Row-major without gaps; strides in units of `width`th elements. None: it is."""
    if strides is None:
        return True
    step = width
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True
