"""How many threads copy."""

from __future__ import annotations

import threading
from typing import Dict

_CHOICES = (1, 2, 4)
_LEAST_BYTES = 16 << 20  # below, an array is over before a second thread helps, and its rate says nothing
_TURNS = 32  # what others do changes: now and then each number is tried again


class ThreadCount:
    """The threads of a transfer: by its size, and by what numbers of them have brought before, as few cores gain nothing by
    more. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rates: Dict[int, float] = {}  # bytes a second
        self._turn = 0

    def choose(self, nbytes: int) -> int:
        if nbytes < _LEAST_BYTES:
            return 1
        choices = _CHOICES[:2] if nbytes < 2 * _LEAST_BYTES else _CHOICES
        with self._lock:
            self._turn += 1
            if self._turn % _TURNS == 0:
                return choices[self._turn // _TURNS % len(choices)]
            for count in reversed(choices):
                if count not in self._rates:
                    return count
            enough = 0.9 * max(self._rates[count] for count in choices)  # a tenth more is not worth another thread
            return next(count for count in choices if self._rates[count] >= enough)

    def note(self, count: int, nbytes: int, seconds: float) -> None:
        """That a transfer of so many threads has ended well."""
        if nbytes < _LEAST_BYTES:
            return
        rate = nbytes / max(seconds, 1e-6)
        with self._lock:
            known = self._rates.get(count, rate)
            self._rates[count] = (known + rate) / 2
