"""The rings and arrays that one connection shares with its server."""

from __future__ import annotations

import math
import mmap
import sys
import threading
from typing import List, Optional, Sequence

import numpy as np

from ..arrays import NDArray
from .line import Line
from .region import ARRAY, RING, SLOT_BYTES, SLOTS, Message, NoRegion, Region, open_region
from .shared_arrays import SharedArrays
from .thread_count import ThreadCount

_MAX_RINGS = 4


def is_on_this_machine(address: str) -> bool:
    """Whether an address is this machine's by its name: a Unix socket, localhost or a loopback address."""
    host = address.rpartition(":")[0]
    return address.startswith("unix:") or host in ("localhost", "[::1]") or host.startswith("127.")


class Ring(Line):
    """A region in slots, of one transfer at a time."""

    def __init__(self, region: Region, memory: mmap.mmap) -> None:
        super().__init__(region)
        whole: NDArray = np.frombuffer(memory, np.uint8)
        self.slots = [whole[at : at + SLOT_BYTES] for at in range(0, SLOTS * SLOT_BYTES, SLOT_BYTES)]

    def close(self) -> None:
        """Gives the memory back, whoever may still have the ring."""
        super().close()
        self.slots.clear()


class SharedMemory:
    """The memory that one connection's transfers share with its server. Thread-safe."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted and sys.platform == "linux"
        self._lock = threading.Lock()
        self._socket = ""
        self._free: List[Ring] = []
        self._taken = 0
        self.arrays = SharedArrays()
        self.upload_threads = ThreadCount()
        self.download_threads = ThreadCount()

    def set_socket(self, address: str) -> None:
        """As Capabilities.shared_memory_socket says."""
        with self._lock:
            if self._wanted and address != self._socket:
                self._socket = address
                self._drop_free()

    @property
    def socket(self) -> str:
        """Where regions are to be had; "": nowhere."""
        return self._socket

    def _drop_free(self) -> None:
        while self._free:
            self._free.pop().close()

    def take_ring(self) -> Optional[Ring]:
        """One that no other transfer uses; None where there is none, and a transfer goes over streams."""
        with self._lock:
            if not self._socket or self._taken >= _MAX_RINGS:
                return None
            self._taken += 1
            while self._free:
                ring = self._free.pop()
                if ring.region.quiet():
                    return ring
                ring.close()
            address = self._socket
        try:
            region, memory = open_region(address, Message(RING))
            if len(memory) >= SLOTS * SLOT_BYTES:
                return Ring(region, memory)
            region.close()
        except NoRegion:
            pass
        except BaseException:
            self.give_back(None)
            raise
        self.give_back(None)
        return None

    def give_back(self, ring: Optional[Ring]) -> None:
        """None: there was none to be had."""
        with self._lock:
            self._taken -= 1
            if ring is None or ring.ended:
                return
            if self._socket:
                self._free.append(ring)
            else:
                ring.close()

    def forget_socket(self) -> None:
        """The server does not know a ring that it has just made: it is not the one behind the socket."""
        with self._lock:
            self._socket = ""
            self._drop_free()

    def close(self) -> None:
        """Ends the rings, those in use with their transfers. Arrays stay."""
        self._wanted = False
        self.forget_socket()

    def allocate(self, shape: Sequence[int], dtype: "np.dtype[np.generic]") -> Optional[NDArray]:
        """An array in a region of its own; None where there is none to be had."""
        nbytes = math.prod(shape) * dtype.itemsize
        with self._lock:
            address = self._socket
        if not address or nbytes <= 0:
            return None
        try:
            region, memory = open_region(address, Message(ARRAY, nbytes=nbytes))
        except NoRegion:
            return None
        if len(memory) < nbytes:
            region.close()
            return None
        array: NDArray = np.frombuffer(memory, dtype, nbytes // dtype.itemsize).reshape(tuple(shape))
        self.arrays.add(region, memory, array)
        return array
