"""The arrays of this process that lie in regions of one connection's server."""

from __future__ import annotations

import contextlib
import mmap
import threading
import weakref
from typing import Dict, Iterator, Optional

from ..arrays import NDArray
from .line import Line
from .region import Region


class _Entry:
    def __init__(self, region: Region, memory: mmap.mmap, nbytes: int) -> None:
        self.region = region
        self.memory = weakref.ref(memory)
        self.nbytes = nbytes
        self.line: Optional[Line] = None  # since the first download into it
        self.in_use = threading.Lock()  # by a download

    def close(self) -> None:
        if self.line is not None:
            self.line.close()
        self.region.close()


class SharedArrays:
    """Finds the region that an array is the whole of. Thread-safe, without a lock, since finalizers come here, too."""

    def __init__(self) -> None:
        self._entries: Dict[int, _Entry] = {}  # by the first byte's address

    def add(self, region: Region, memory: mmap.mmap, array: NDArray) -> None:
        """Holds the region for as long as the memory."""
        entry = _Entry(region, memory, array.nbytes)
        address = _address_of(array)
        self._entries[address] = entry
        weakref.finalize(memory, self._remove, address, entry).atexit = False

    def _remove(self, address: int, entry: _Entry) -> None:
        self._forget(address, entry)
        entry.close()

    def _forget(self, address: int, entry: _Entry) -> None:
        if self._entries.get(address) is entry:  # not another's, which has the address by now
            del self._entries[address]

    def _find(self, address: int, nbytes: int) -> Optional[_Entry]:
        """Of the array of so many bytes there."""
        entry = self._entries.get(address)
        # The memory may be gone, and its address another array's, before its finalizer has run.
        return None if entry is None or entry.nbytes != nbytes or entry.memory() is None else entry

    def take(self, data: NDArray) -> Optional[Region]:
        """The region that `data`, uint8 [bytes], is all of, where the server can take it from there; else None.

        One that the server takes as it is becomes private here, and is not found a second time.
        """
        if not self._entries:
            return None
        address = _address_of(data)
        entry = self._find(address, data.nbytes)
        if entry is None:
            return None
        if entry.region.becomes_the_servers:
            if self._entries.pop(address, None) is None:  # another thread uploads it
                return None
            if not entry.region.make_private(address, data.nbytes):
                return None
        return entry.region

    @contextlib.contextmanager
    def line_of(self, data: NDArray) -> Iterator[Optional[Line]]:
        """For a download into `data`, uint8 [bytes], by the server; None where that cannot be.

        Where the line has ended at the end, the server may still be writing, when the caller has the array again: it becomes an ordinary
        one, of unspecified elements.
        """
        address = _address_of(data)
        entry = self._find(address, data.nbytes) if self._entries else None
        if entry is None or not entry.in_use.acquire(blocking=False):
            yield None
            return
        try:
            entry.line = entry.line or Line(entry.region)
            yield entry.line
        finally:
            if entry.line is not None and entry.line.ended:
                self._forget(address, entry)
                memory = entry.memory()
                if memory is not None:
                    entry.region.replace_memory(address, len(memory))
            entry.in_use.release()


def _address_of(array: NDArray) -> int:
    """Of its first byte."""
    address: int = array.__array_interface__["data"][0]
    return address
