"""Another process's allocation of GPU memory, mapped in this one."""

from __future__ import annotations

import contextlib
import os
from typing import Callable, List, Tuple

from ..errors import Error, Internal
from .driver import READ, READ_AND_WRITE, Driver

# Of the addresses before and behind it, at which nothing lies: a kernel that reads or writes beside the mapping ends with an error,
# and touches nothing else of this process.
GUARD_BYTES = 2 << 20


class DeviceMapping:
    """Of all of an allocation of `nbytes`, by a descriptor that stays the caller's, in the primary context of its device."""

    def __init__(self, driver: Driver, descriptor: int, nbytes: int, *, writable: bool) -> None:
        self._driver = driver
        self._process = os.getpid()
        self._undo: List[Tuple[Callable[..., None], Tuple[int, ...]]] = []  # from the first step on
        self.device = 0
        self.address = 0
        try:
            handle = self._import(descriptor)
            self.device = driver.device_of_allocation(handle)
            with driver.on(self.device):
                self._map(handle, nbytes, READ_AND_WRITE if writable else READ)
        except BaseException:
            self.close()
            raise

    def _import(self, descriptor: int) -> int:
        try:
            handle = self._driver.import_allocation(descriptor)
        except Internal as failure:
            cure = "the session's GPU has to be one that this process sees (CUDA_VISIBLE_DEVICES)"
            raise Internal(f"{failure}; {cure}", cure=cure) from None
        self._undo.append((self._driver.release, (handle,)))
        return handle

    def _map(self, handle: int, nbytes: int, access: int) -> None:
        reserved = self._driver.reserve_address(nbytes + 2 * GUARD_BYTES)
        self._undo.append((self._driver.free_address, (reserved, nbytes + 2 * GUARD_BYTES)))
        place = reserved + GUARD_BYTES
        self._driver.map(place, nbytes, handle)
        self._undo.append((self._driver.unmap, (place, nbytes)))
        self._driver.set_access(place, nbytes, self.device, access)
        self.address = place

    def close(self) -> None:
        """Once the GPU's work of this process is done, which may still read it: an array that Python drops says nothing of that.
        Safe in finalizers."""
        if self._process != os.getpid():  # a child that was forked later has no context of the GPU's
            return
        steps, self._undo = self._undo, []
        if not steps:
            return
        with contextlib.suppress(Error), self._driver.on(self.device):  # an error here is that of a context that is lost
            if self.address:
                with contextlib.suppress(Error):
                    self._driver.wait_for_all()
            for undo, arguments in reversed(steps):
                with contextlib.suppress(Error):
                    undo(*arguments)
