"""What the library does for a caller: calls and transfers, from their beginning to their end."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any, Callable, List, Optional, Tuple

from ..arrays import NDArray
from ..errors import Cancelled
from . import binding
from .status import Status

# ctypes.string_at() without its steps in Python.
_bytes_at = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)(("PyBytes_FromStringAndSize", ctypes.pythonapi))
_HANDLE_OFFSET = binding.Answer.work.offset  # likewise of Uploaded
_SETTLE_SECONDS = 0.2  # an upload's end is waited for, once it has been cancelled
_LOOK_SECONDS = 0.05  # so long KeyboardInterrupt and a report of progress wait at most


class Opened:
    """A cumulus_channel, until nobody uses it."""

    def __init__(self, library: Any, handle: ctypes.c_void_p, address: str) -> None:
        self.library = library
        self.handle = handle
        self.address = address
        self.of_calls = Functions(library, "call")
        self.of_transfers = Functions(library, "transfer")
        self.call = library.cumulus_channel_call
        self.upload = library.cumulus_channel_upload
        self.is_here = True  # not in a forked child, where none of the library's threads is
        _all_opened.add(self)

    def __del__(self) -> None:
        if self.is_here:
            self.library.cumulus_channel_release(self.handle)


_all_opened: "weakref.WeakSet[Opened]" = weakref.WeakSet()


def _leave_to_parent() -> None:
    """In a child that has been forked."""
    for opened in list(_all_opened):
        opened.is_here = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


class Functions:
    """The library's for one kind of work."""

    def __init__(self, library: Any, kind: str) -> None:
        self.kind = kind
        self.wait, self.cancel, self.result, self.release = (
            getattr(library, f"cumulus_{kind}_{name}") for name in ("wait", "cancel", "result", "release"))


class Work:
    """Of one kind. What it uses stays until its end."""

    def __init__(self, opened: Opened, functions: Functions, start: Callable[..., int], arguments: Tuple[Any, ...]) -> None:
        self._opened = opened
        self._functions = functions
        self._start = start
        self._arguments = arguments
        self._cancelled = False
        self._handle = ctypes.c_void_p()

    def begin(self) -> None:
        """From here on __del__ ends it."""
        if self._start(self._opened.handle, *self._arguments, ctypes.byref(self._handle), None) != 0:
            self._raise_refusal()

    def _begin_and_wait(self, function: Callable[..., int], outcome: ctypes.Structure) -> bool:
        """Likewise, and waits as long as nobody looks, by one function of the library, since each takes its time. Whether it has ended well."""
        if self._cancelled:
            raise self._stopped()
        self._handle = ctypes.c_void_p.from_buffer(outcome, _HANDLE_OFFSET)
        code = function(self._opened.handle, *self._arguments, outcome, None)
        if not self._handle:
            self._raise_refusal()
        return code == 0

    def _raise_refusal(self) -> None:
        """Of what the library has not begun."""
        status = Status(self._opened.library)
        code = self._start(self._opened.handle, *self._arguments, ctypes.byref(self._handle), status.handle)
        raise status.error(code, self._opened.address, self._functions.kind)

    def __del__(self) -> None:
        if self._handle and self._opened.is_here:
            self._functions.release(self._handle)

    @property
    def is_here(self) -> bool:
        """As `Opened.is_here`."""
        return self._opened.is_here

    def cancel(self) -> None:
        """Stops it, soon, on the server, too; from any thread."""
        self._cancelled = True
        if self._handle:
            self._functions.cancel(self._handle)

    def settle(self) -> None:
        """After cancel(): returns once nothing that the caller has is used any more."""

    def finish(self, progress: Optional[Callable[[int, int], None]]) -> bytes:
        """Waits for its end. A call's answer. Raises what went wrong."""
        raise NotImplementedError

    def _check(self, *where: Any) -> None:
        """Of what has ended: raises what went wrong. `where` a result is put."""
        result = self._functions.result
        if result(self._handle, *where, None) != 0:
            status = Status(self._opened.library)
            raise status.error(result(self._handle, *where, status.handle), self._opened.address, self._functions.kind)

    def _stopped(self) -> Cancelled:
        return Cancelled(f"the {self._functions.kind} was cancelled")


class Call(Work):
    """One call of the wire, which begins with finish()."""

    def __init__(self, opened: Opened, arguments: Tuple[Any, ...]) -> None:
        super().__init__(opened, opened.of_calls, opened.library.cumulus_channel_start_call, arguments)

    def finish(self, progress: Optional[Callable[[int, int], None]] = None) -> bytes:
        outcome = binding.Answer(_LOOK_SECONDS)
        if not self._begin_and_wait(self._opened.call, outcome) or not outcome.message:
            while not self._functions.wait(self._handle, _LOOK_SECONDS):
                if self._cancelled:
                    raise self._stopped()
            message, size = ctypes.c_void_p(), ctypes.c_size_t()
            self._check(ctypes.byref(message), ctypes.byref(size))
            outcome.message, outcome.size = message, size
        answer: bytes = _bytes_at(outcome.message, outcome.size)
        return answer


class Transfer(Work):
    """One transfer. It holds the memory, and its end waits until the library is done with that, however it comes."""

    def __init__(self, opened: Opened, memory: NDArray, start: Callable[..., int], arguments: Tuple[Any, ...], *,
                 reads: bool = False) -> None:
        self._reads = reads
        self._memory = memory
        self._done = False
        super().__init__(opened, opened.of_transfers, start, arguments)

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether the library is done with the memory; waits for that so long at most."""
        return bool(self._functions.wait(self._handle, seconds))

    def settle(self) -> None:
        """Waits until the library no longer writes to the memory. Where it only reads, and is held up by a server that takes nothing more of
        what the system has been given, the memory is kept for it instead."""
        if self._done or not self._handle:
            return
        if self._reads:
            if not self.ended(_SETTLE_SECONDS):
                held_up.add(self)
            return
        self._functions.result(self._handle, None)

    def finish(self, progress: Optional[Callable[[int, int], None]]) -> bytes:
        wait, handle, total, told = self._functions.wait, self._handle, self._memory.size, 0
        while not wait(handle, _LOOK_SECONDS):
            if self._cancelled and self._reads:  # whose end a server that takes nothing holds up
                raise self._stopped()
            if progress is not None:
                done = self._opened.library.cumulus_transfer_done(handle)
                if told < done < total:
                    told = done
                    progress(done, total)
        self._done = True
        self._check()
        if progress is not None:
            progress(total, total)
        return b""

    @property
    def buffer(self) -> str:
        """The name of the new buffer, of an upload."""
        name: bytes = self._opened.library.cumulus_transfer_buffer(self._handle)
        return name.decode()

    @property
    def checksum(self) -> int:
        """The CRC-32C of the chunks' CRC-32Cs, of an upload that was to have it."""
        checksum: int = self._opened.library.cumulus_transfer_checksum(self._handle)
        return checksum


class SharedUpload(Transfer):
    """Of memory that the server takes from where it lies, which is soon done. It begins with finish()."""

    def __init__(self, opened: Opened, memory: NDArray, arguments: Tuple[Any, ...]) -> None:
        super().__init__(opened, memory, opened.library.cumulus_channel_start_upload, arguments, reads=True)

    def finish(self, progress: Optional[Callable[[int, int], None]] = None) -> bytes:
        """The name of the new buffer."""
        outcome = binding.Uploaded(_LOOK_SECONDS)
        name: Optional[bytes] = outcome.buffer if self._begin_and_wait(self._opened.upload, outcome) else None
        if name is None:
            super().finish(None)
            return self.buffer.encode()
        self._done = True
        return name


class _HeldUp:
    """Uploads that nobody waits for any more, until the library is done with their memory. What is left at the process's end stays as
    it is: to wait for it would hold up that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.transfers: List[Transfer] = []

    def add(self, transfer: Transfer) -> None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(transfer))
        with self._lock:
            self.transfers.append(transfer)

    def clear_ended(self) -> None:
        with self._lock:
            ended = [each for each in self.transfers if each.ended()]
            self.transfers = [each for each in self.transfers if each not in ended]
        for each in ended:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(each))


held_up = _HeldUp()
