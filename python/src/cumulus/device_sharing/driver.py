"""What is used of the CUDA driver (libcuda.so.1), by ctypes: a process that shares no GPU memory starts without it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p
from typing import Any, Dict, Iterator, Optional

from ..errors import Internal

POSIX_FILE_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
READ, READ_AND_WRITE = 1, 3  # CU_MEM_ACCESS_FLAGS_PROT_...
LEGACY_STREAM = 1  # CU_STREAM_LEGACY
_ON_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_CONTEXT_OF, _DEVICE_OF = 1, 9  # CU_POINTER_ATTRIBUTE_CONTEXT, _DEVICE_ORDINAL


class _Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class _AllocationProperties(ctypes.Structure):
    _fields_ = [("type", c_int), ("handle_types", c_int), ("location", _Location), ("windows", c_void_p), ("flags", c_uint64)]


class _AccessDescription(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", c_int)]


_ARGUMENTS: Dict[str, Any] = {
    "cuInit": [c_uint],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [POINTER(c_void_p)],
    "cuCtxSynchronize": [],
    "cuStreamSynchronize": [c_void_p],
    "cuMemImportFromShareableHandle": [POINTER(c_uint64), c_void_p, c_int],
    "cuMemGetAllocationPropertiesFromHandle": [POINTER(_AllocationProperties), c_uint64],
    "cuMemRelease": [c_uint64],
    "cuMemAddressReserve": [POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_ulonglong],
    "cuMemAddressFree": [c_uint64, c_size_t],
    "cuMemMap": [c_uint64, c_size_t, c_size_t, c_uint64, c_ulonglong],
    "cuMemUnmap": [c_uint64, c_size_t],
    "cuMemSetAccess": [c_uint64, c_size_t, POINTER(_AccessDescription), c_size_t],
    "cuMemcpyDtoDAsync_v2": [c_uint64, c_uint64, c_size_t, c_void_p],
    "cuMemcpyDtoH_v2": [c_void_p, c_uint64, c_size_t],
    "cuPointerGetAttribute": [c_void_p, c_int, c_uint64],
}


class Driver:
    """The driver's functions. Thread-safe."""

    def __init__(self, library: Any) -> None:
        """AttributeError where the library is too old, Internal where it does not work."""
        self._functions: Dict[str, Any] = {}
        for name, arguments in _ARGUMENTS.items():
            self._functions[name] = function = getattr(library, name)
            function.argtypes = arguments
        self._contexts: Dict[int, int] = {}
        self._lock = threading.Lock()
        self._call("cuInit", 0)

    def _call(self, name: str, *arguments: Any) -> None:
        """Internal, with the driver's own words, where it fails."""
        result = self._functions[name](*arguments)
        if result != 0:
            words = c_char_p()
            self._functions["cuGetErrorString"](result, byref(words))
            raise Internal(f"{name}: {(words.value or b'an unknown error').decode()}")

    @contextlib.contextmanager
    def on(self, device: int) -> Iterator[None]:
        """With the primary context of a device current, in which Python's libraries work."""
        self._call("cuCtxPushCurrent_v2", self._primary_context(device))
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", byref(c_void_p()))

    def _primary_context(self, device: int) -> int:
        with self._lock:
            if device not in self._contexts:  # kept as long as the process, as libraries do
                context = c_void_p()
                self._call("cuDevicePrimaryCtxRetain", byref(context), device)
                self._contexts[device] = context.value or 0
            return self._contexts[device]

    def wait_for_stream(self, stream: int) -> None:
        """Until the work is done that it has been given."""
        self._call("cuStreamSynchronize", stream)

    def wait_for_all(self) -> None:
        """Until the work of all streams of the current context is done."""
        self._call("cuCtxSynchronize")

    def import_allocation(self, descriptor: int) -> int:
        handle = c_uint64()
        self._call("cuMemImportFromShareableHandle", byref(handle), descriptor, POSIX_FILE_DESCRIPTOR)
        return handle.value

    def device_of_allocation(self, handle: int) -> int:
        """Its number in this process."""
        properties = _AllocationProperties()
        self._call("cuMemGetAllocationPropertiesFromHandle", byref(properties), handle)
        return int(properties.location.id)

    def release(self, handle: int) -> None:
        self._call("cuMemRelease", handle)

    def reserve_address(self, nbytes: int) -> int:
        address = c_uint64()
        self._call("cuMemAddressReserve", byref(address), nbytes, 0, 0, 0)
        return address.value

    def free_address(self, address: int, nbytes: int) -> None:
        self._call("cuMemAddressFree", address, nbytes)

    def map(self, address: int, nbytes: int, handle: int) -> None:
        self._call("cuMemMap", address, nbytes, 0, handle, 0)

    def unmap(self, address: int, nbytes: int) -> None:
        self._call("cuMemUnmap", address, nbytes)

    def set_access(self, address: int, nbytes: int, device: int, flags: int) -> None:
        rights = _AccessDescription(_Location(_ON_DEVICE, device), flags)
        self._call("cuMemSetAccess", address, nbytes, byref(rights), 1)

    def copy(self, destination: int, source: int, nbytes: int, stream: int) -> None:
        """Within the device, behind what the stream has been given."""
        self._call("cuMemcpyDtoDAsync_v2", destination, source, nbytes, stream)

    def copy_to_host(self, destination: int, source: int, nbytes: int) -> None:
        """Returns when it is done."""
        self._call("cuMemcpyDtoH_v2", destination, source, nbytes)

    def holds(self, device: int, address: int) -> bool:
        """Whether a pointer is one of the device's memory that the primary context can use."""
        ordinal, context = c_int(-1), c_void_p()
        attribute = self._functions["cuPointerGetAttribute"]
        if attribute(byref(ordinal), _DEVICE_OF, address) != 0 or ordinal.value != device:
            return False
        # Memory of pools and mappings belongs to no context.
        of_one = attribute(byref(context), _CONTEXT_OF, address) == 0 and context.value is not None
        return not of_one or context.value == self._primary_context(device)


@functools.lru_cache(maxsize=None)
def load() -> Optional[Driver]:
    """None where there is none that works, or it is too old."""
    try:
        return Driver(ctypes.CDLL("libcuda.so.1"))
    except (OSError, AttributeError, Internal):
        return None
