"""An array's way into the slots of a ring, and out of them, on any number of threads."""

from __future__ import annotations

import collections
import threading
from typing import Callable, Deque, Dict, List, Optional

from .. import checksums
from ..arrays import NDArray
from ..errors import DataLoss
from .region import FILLED, FREE, SLOT_BYTES, SLOTS, Message
from .region_call import RegionCall

Report = Callable[[int], None]


class Pieces:
    """The pieces, of a slot each, of bytes, uint8 [bytes]."""

    def __init__(self, call: RegionCall, slots: List[NDArray], data: NDArray) -> None:
        self.call = call
        self.slots = slots
        self.data = data
        self.count = -(-data.size // SLOT_BYTES)
        self.moved = 0  # bytes
        self._lock = threading.Lock()

    def move(self, report: Optional[Report] = None) -> None:
        """Copies until nothing is left, or the call ends; called by each thread. Tells, after each piece, how many bytes
        all of them have moved."""
        raise NotImplementedError

    def settle(self) -> None:
        """Called once all threads have moved what they could."""

    def _note(self, nbytes: int, report: Optional[Report]) -> int:
        with self._lock:
            self.moved += nbytes
            moved = self.moved
        if report is not None:
            report(moved)
        return moved


class Filler(Pieces):
    """Into the ring."""

    def __init__(self, call: RegionCall, slots: List[NDArray], data: NDArray, checksum: bool) -> None:
        super().__init__(call, slots, data)
        self._offsets: Deque[int] = collections.deque(range(0, data.size, SLOT_BYTES))
        self._fresh: Deque[int] = collections.deque(range(SLOTS))  # slots that have not been used yet
        self._checksums: Optional[Dict[int, int]] = {} if checksum else None
        self._freed = 0

    def move(self, report: Optional[Report] = None) -> None:
        while True:
            offset = _pop(self._offsets)
            slot = None if offset is None else self._take_slot()
            if offset is None or slot is None:
                return
            piece = self.data[offset : offset + SLOT_BYTES]
            if self._checksums is not None:
                self._checksums[offset] = checksums.crc32c(piece)
            self.slots[slot][: piece.size] = piece
            # The first slots are filled while the server makes room for the array.
            if not self.call.wait_until_begun() or not self.call.send(FILLED, slot, offset, piece.size):
                return
            self._note(piece.size, report)

    def _take_slot(self) -> Optional[int]:
        fresh = _pop(self._fresh)
        if fresh is not None:
            return fresh
        message = self.call.next()
        if message is None or message.kind != FREE or message.slot >= SLOTS:
            return None
        with self._lock:
            self._freed += 1
        return message.slot

    def settle(self) -> None:
        """Takes back the slots that the server has, so that none of its messages are left."""
        while self._freed < self.count and self.call.next() is not None:
            self._freed += 1

    def checksum(self) -> int:
        if self._checksums is None:
            return 0
        return checksums.of_chunks(self._checksums[offset] for offset in sorted(self._checksums))


class Emptier(Pieces):
    """Out of the ring."""

    def __init__(self, call: RegionCall, slots: List[NDArray], data: NDArray) -> None:
        super().__init__(call, slots, data)
        self._given = 0  # slots, to the server
        self._giving = threading.Lock()  # of the first ones
        self._wrong = False

    def move(self, report: Optional[Report] = None) -> None:
        if not self.call.wait_until_begun():
            return
        self._give_first_slots()
        while self.moved < self.data.size:
            message = self.call.next()
            if message is None:  # of the last pieces, another thread may have some under way
                return
            if not self._is_possible(message):
                self._wrong = True
                self.call.stop()
                return
            end = message.offset + message.nbytes
            self.data[message.offset : end] = self.slots[message.slot][: message.nbytes]
            if self._may_give():
                self.call.send(FREE, message.slot)
            if self._note(message.nbytes, report) >= self.data.size:
                self.call.stop()

    def _give_first_slots(self) -> None:
        with self._giving:
            while self._given < min(SLOTS, self.count):
                self.call.send(FREE, self._given)
                self._given += 1

    def _may_give(self) -> bool:
        """For each piece that is still to come a slot, and no more."""
        with self._lock:
            self._given += 1
            return self._given <= self.count

    def _is_possible(self, message: Message) -> bool:
        return (message.kind == FILLED and message.slot < SLOTS and 0 < message.nbytes <= SLOT_BYTES
                and message.offset + message.nbytes <= self.data.size)

    def settle(self) -> None:
        if self._wrong:
            raise DataLoss("download: the server names bytes that are not there; download it again",
                           cure="download it again")


def _pop(numbers: Deque[int]) -> Optional[int]:
    """The next one, for one of the threads; None where there is none."""
    try:
        return numbers.popleft() if numbers else None
    except IndexError:  # another thread was faster
        return None
