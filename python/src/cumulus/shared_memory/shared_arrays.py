"""The arrays of this process that lie in regions of one connection's server."""

from __future__ import annotations

import mmap
import weakref
from typing import Dict, NamedTuple, Optional

from ..arrays import NDArray
from .region import Region


class _Entry(NamedTuple):
    region: Region
    memory: "weakref.ref[mmap.mmap]"
    nbytes: int


class SharedArrays:
    """Finds the region that an array is the whole of. Thread-safe, without a lock, since finalizers come here, too."""

    def __init__(self) -> None:
        self._entries: Dict[int, _Entry] = {}  # by the first byte's address

    def add(self, region: Region, memory: mmap.mmap, array: NDArray) -> None:
        """Holds the region for as long as the memory."""
        entry = _Entry(region, weakref.ref(memory), array.nbytes)
        address = _address_of(array)
        self._entries[address] = entry
        weakref.finalize(memory, self._remove, address, entry).atexit = False

    def _remove(self, address: int, entry: _Entry) -> None:
        if self._entries.get(address) is entry:  # not another's, which has the address by now
            del self._entries[address]
        entry.region.close()

    def take(self, data: NDArray) -> Optional[Region]:
        """The region that `data`, uint8 [bytes], is all of, where the server can take it from there; else None.

        One that the server takes as it is becomes private here, and is not found a second time.
        """
        if not self._entries:
            return None
        address = _address_of(data)
        entry = self._entries.get(address)
        # The memory may be gone, and its address another array's, before its finalizer has run.
        if entry is None or entry.nbytes != data.nbytes or entry.memory() is None:
            return None
        if entry.region.becomes_the_servers:
            if self._entries.pop(address, None) is None:  # another thread uploads it
                return None
            if not entry.region.make_private(address, data.nbytes):
                return None
        return entry.region


def _address_of(array: NDArray) -> int:
    """Of its first byte."""
    address: int = array.__array_interface__["data"][0]
    return address
