"""An array in GPU memory that the server made for this process."""

from __future__ import annotations

import weakref
from typing import Any, Dict, Optional, Tuple

import numpy as np

from ..arrays import Extents, NDArray
from ..shared_memory.region import Region
from . import dlpack
from .driver import Driver
from .mapping import DeviceMapping


class Memory:
    """A DEVICE region, mapped, for as long as anybody refers to it."""

    def __init__(self, driver: Driver, region: Region, mapping: DeviceMapping) -> None:
        self.driver = driver
        self.region = region
        self.mapping = mapping
        # The mapping goes first, and then the server hears of it. The process's end ends both.
        weakref.finalize(self, _end, mapping, region).atexit = False


def _end(mapping: DeviceMapping, region: Region) -> None:
    mapping.close()
    region.close()


class DeviceArray(Extents):
    """An array in GPU memory that a server of this machine shares with this process, dense and row-major. Made by `Client.import_buffer` and
    `Client.allocate_device_array`.

    It has `__cuda_array_interface__` and `__dlpack__`, so that `cupy.asarray(array)`, `torch.from_dlpack(array)` or Numba's
    `cuda.as_cuda_array(array)` use its memory as it lies. The server counts the memory, a multiple of 2 MiB, against the session's quota and the
    device's budget until this object and all arrays made of it are gone; the last one's end waits for the GPU's work of this process. It stays
    when the client is closed.

    Attributes:
        shape: extents, outermost first.
        dtype: of its elements.
        writable: whether kernels may write to it. A kernel that writes all the same ends with an error that its process's CUDA does not survive.
    """

    def __init__(self, shape: Tuple[int, ...], dtype: "np.dtype[Any]", memory: Optional[Memory], *, writable: bool) -> None:
        self.shape = shape
        self.dtype = dtype
        self.writable = writable
        self.memory = memory  # None where there are no elements

    @property
    def device(self) -> int:
        """The number of its GPU in this process."""
        return 0 if self.memory is None else self.memory.mapping.device

    @property
    def data(self) -> int:
        """Its address in the GPU's memory; 0 where there are no elements. Nothing is mapped for 2 MiB before and behind its allocation."""
        return 0 if self.memory is None else self.memory.mapping.address

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<cumulus.DeviceArray {self.dtype.name} {list(self.shape)} on GPU {self.device}{'' if self.writable else ', to be read'}>"

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.data, not self.writable), "version": 3, "strides": None,
                "stream": None}  # nothing that is still being written

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
        """A tensor of this memory, whatever `stream` is: nothing is still being written. BufferError where it cannot be had."""
        return self.to_dlpack(max_version, dl_device, copied=False, copy=copy)

    def to_dlpack(self, max_version: Optional[Tuple[int, int]], dl_device: Optional[Tuple[int, int]], *, copied: bool,
                  copy: Optional[bool]) -> Any:
        """As `__dlpack__`; `copied`: nobody else has the memory, and the taker is told so."""
        if dl_device is not None and tuple(dl_device)[0] == dlpack.CPU and copy is not False:
            return self.numpy().__dlpack__()
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the array is on GPU {self.device}, and {tuple(dl_device)} is asked for")
        if copy and not copied:
            raise BufferError("DLPack copies none of these within the GPU; copy what you make of it")
        versioned = max_version is not None and max_version[0] >= 1
        if not (versioned or self.writable):
            raise BufferError("the array is only to be read, of which this DLPack knows nothing; import_buffer(buffer, writable=True) makes "
                              "one of your own")
        flags = (0 if self.writable else dlpack.READ_ONLY) | (dlpack.COPIED if copied else 0)
        content = dlpack.Content(self.data, self.device, self.shape, self.dtype)
        return dlpack.capsule_of(content, self.memory, flags=flags, versioned=versioned)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return dlpack.CUDA, self.device

    def numpy(self) -> NDArray:
        """A copy in host memory, made once the GPU's work of this process is done."""
        copy: NDArray = np.empty(self.shape, self.dtype)
        if self.memory is not None:
            driver = self.memory.driver
            with driver.on(self.device):
                driver.wait_for_all()
                driver.copy_to_host(copy.__array_interface__["data"][0], self.data, self.nbytes)
        return copy
