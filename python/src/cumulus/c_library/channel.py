"""The library's connections to one server, and transfers that go over them."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
import weakref
from typing import Any, Callable, List, NamedTuple, Optional, Tuple, Union

from ..arrays import NDArray
from ..credentials import Credentials
from ..errors import Cancelled
from . import binding
from .status import Status

_SETTLE_SECONDS = 0.2  # an upload's end is waited for, once it has been cancelled
_LOOK_SECONDS = 0.05  # so long KeyboardInterrupt and a report of progress wait at most
_LONGEST_SECONDS = 1e9  # that the library counts to
_CALLS_BEFORE = 16  # of a client, before the library is loaded for calls alone: that takes as long as some hundred of them gain


class Server(NamedTuple):
    """Whom a channel connects to, and how."""

    address: str
    credentials: Credentials
    connect_timeout: float
    dead_after: float


class Facts(NamedTuple):
    """What the server's Capabilities say of transfers."""

    shared_memory_socket: str = ""
    joined_uploads: bool = False


class Channel:
    """Of one client. The library's connections are made for its first transfer; there are none in a forked child, where the
    library's threads are missing."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._facts = Facts()
        self._calls = 0
        self._lock = threading.Lock()
        self._open: Optional["_Open"] = None
        self._tried = False
        self._closed = False
        self._running: "weakref.WeakSet[Union[Transfer, Call]]" = weakref.WeakSet()
        _channels.add(self)

    def take_facts(self, facts: Facts) -> None:
        """As Capabilities say now: after a restart of the server, its shared memory has another socket."""
        with self._lock:
            if facts != self._facts:
                self._facts = facts
                self._open = None
                self._tried = False

    def _opened(self) -> Optional["_Open"]:
        """None where the library cannot be used."""
        with self._lock:
            if not self._tried and not self._closed:
                self._tried = True
                library = binding.load()
                self._open = None if library is None else _open(library, self._server, self._facts)
            return self._open if self._open is not None and self._open.is_here() else None

    def begin_upload(self, session: Tuple[str, str], array: binding.Array, options: binding.TransferOptions,
                     memory: NDArray) -> Optional["Transfer"]:
        """Of `memory`, which `array` describes; None where the library cannot be used."""
        opened = self._opened()
        if opened is None:
            return None
        start = opened.library.cumulus_channel_start_upload
        transfer = Transfer(opened, memory, start, (_named(session), array, options), reads=True)
        self._track(transfer)
        return transfer

    def begin_download(self, session: Tuple[str, str], name: str, options: binding.TransferOptions,
                       memory: NDArray) -> Optional["Transfer"]:
        """Into `memory`; None where the library cannot be used."""
        opened = self._opened()
        if opened is None:
            return None
        destination = binding.Destination(name.encode(), memory.ctypes.data, memory.size)
        start = opened.library.cumulus_channel_start_download
        transfer = Transfer(opened, memory, start, (_named(session), destination, options))
        self._track(transfer)
        return transfer

    def begin_call(self, session: Tuple[str, str], method: str, message: bytes, seconds: float) -> "Optional[Call]":
        """Of the wire, in the session's name or, of "", in none; None where the library is not used."""
        if self._calls < _CALLS_BEFORE and self._open is None:
            self._calls += 1
            return None
        opened = self._opened()
        if opened is None:
            return None
        request = binding.Request(_SIZE_OF_REQUEST, method.encode(), message, len(message), min(seconds, _LONGEST_SECONDS))
        call = Call(opened, _named(session) if session[0] else None, request)
        self._track(call)
        return call

    def _track(self, begun: "Union[Transfer, Call]") -> None:
        _held_up.clear_ended()
        with self._lock:
            self._running.add(begun)
            closed = self._closed
        if closed:
            begun.cancel()

    def allocate(self, nbytes: int) -> "Optional[Memory]":
        """Memory that the server has mapped, too, for transfers by the library; None where there is none to be had."""
        opened = self._opened()
        if opened is None:
            return None
        handle, data = ctypes.c_void_p(), ctypes.c_void_p()
        if opened.library.cumulus_channel_allocate(opened.handle, nbytes, ctypes.byref(handle), ctypes.byref(data), None) != 0:
            return None
        return Memory(opened, handle, data.value or 0, nbytes)

    def close(self) -> None:
        """Stops what is under way, and waits for its end."""
        with self._lock:
            self._closed = True
            running = [each for each in self._running if each.is_here()]
            self._open = None
        for begun in running:
            begun.cancel()
        for begun in running:
            begun.settle()


@functools.lru_cache(maxsize=16)
def _named(session: Tuple[str, str]) -> binding.SessionName:
    return binding.SessionName(session[0].encode(), session[1].encode())


class _Open:
    """A cumulus_channel, until nobody uses it."""

    def __init__(self, library: Any, handle: ctypes.c_void_p, address: str) -> None:
        self.library = library
        self.handle = handle
        self.address = address
        self._process = os.getpid()

    def is_here(self) -> bool:
        """Not in a forked child, where none of the library's threads is."""
        return self._process == os.getpid()

    def __del__(self) -> None:
        if self.is_here():
            self.library.cumulus_channel_release(self.handle)


def _open(library: Any, server: Server, facts: Facts) -> Optional[_Open]:
    """None where it refuses, as it does of files that have gone since this process read them."""
    files = server.credentials
    texts = (server.address, files.tls_ca, files.tls_cert, files.tls_key, files.token_file, facts.shared_memory_socket)
    options = binding.ChannelOptions(ctypes.sizeof(binding.ChannelOptions), *(text.encode() or None for text in texts),
                                     facts.joined_uploads, server.connect_timeout, server.dead_after)
    handle = ctypes.c_void_p()
    if library.cumulus_channel_open(options, ctypes.byref(handle), None) != 0:
        return None
    return _Open(library, handle, server.address)


class Memory:
    """Bytes of a cumulus_memory, for numpy's arrays, which hold this."""

    def __init__(self, opened: _Open, handle: ctypes.c_void_p, address: int, nbytes: int) -> None:
        self._opened = opened
        self._handle = handle
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False)}

    def __del__(self) -> None:
        if self._opened.is_here():
            self._opened.library.cumulus_memory_release(self._handle)


class Call:
    """One call of the wire, under way."""

    def __init__(self, opened: _Open, session: Optional[binding.SessionName], request: binding.Request) -> None:
        self._opened = opened
        self._cancelled = False
        self._handle = ctypes.c_void_p()
        code = self._start(session, request, None)  # from here on __del__ ends it
        if code != 0:
            status = Status(opened.library)
            raise status.error(self._start(session, request, status.handle), opened.address, "call")

    def _start(self, session: Optional[binding.SessionName], request: binding.Request, status: Any) -> int:
        code: int = self._opened.library.cumulus_channel_start_call(self._opened.handle, session, request,
                                                                   ctypes.byref(self._handle), status)
        return code

    def is_here(self) -> bool:
        """As `Transfer.is_here`."""
        return self._opened.is_here()

    def __del__(self) -> None:
        if self._handle and self.is_here():
            self._opened.library.cumulus_call_release(self._handle)

    def cancel(self) -> None:
        """Stops it, here and on the server; from any thread."""
        self._cancelled = True
        self._opened.library.cumulus_call_cancel(self._handle)

    def settle(self) -> None:
        """After cancel(): nothing of this process is used by it."""

    def answer(self) -> bytes:
        """Waits for the message. Raises what went wrong."""
        library, handle = self._opened.library, self._handle
        while not library.cumulus_call_wait(handle, _LOOK_SECONDS):
            if self._cancelled:
                raise Cancelled("the call was cancelled")
        message, size = ctypes.c_void_p(), ctypes.c_size_t()
        if library.cumulus_call_result(handle, ctypes.byref(message), ctypes.byref(size), None) == 0:
            return ctypes.string_at(message, size.value) if size.value else b""
        status = Status(library)
        code = library.cumulus_call_result(handle, ctypes.byref(message), ctypes.byref(size), status.handle)
        raise status.error(code, self._opened.address, "call")


class Transfer:
    """One transfer, under way. It holds the memory, and its end waits until the library is done with that, however it comes."""

    def __init__(self, opened: _Open, memory: NDArray, start: Callable[..., int], arguments: Tuple[Any, ...], *,
                 reads: bool = False) -> None:
        self._opened = opened
        self._reads = reads
        self._cancelled = False
        self._memory = memory
        self._done = False
        self._handle = ctypes.c_void_p()
        code = start(opened.handle, *arguments, ctypes.byref(self._handle), None)  # from here on __del__ ends it
        if code != 0:
            status = Status(opened.library)
            code = start(opened.handle, *arguments, ctypes.byref(self._handle), status.handle)
            raise status.error(code, opened.address, "transfer")

    def is_here(self) -> bool:
        """As `_Open.is_here`."""
        return self._opened.is_here()

    def __del__(self) -> None:
        if self._handle and self.is_here():
            self._opened.library.cumulus_transfer_release(self._handle)

    def cancel(self) -> None:
        """Stops it, soon; from any thread."""
        self._cancelled = True
        self._opened.library.cumulus_transfer_cancel(self._handle)

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether the library is done with the memory; waits for that so long at most."""
        return bool(self._opened.library.cumulus_transfer_wait(self._handle, seconds))

    def settle(self) -> None:
        """After wait(), however that came out, or cancel(): waits until the library no longer writes to the memory. Where it only reads, and is held up by a server that
        takes nothing more of what the system has been given, the memory is kept for it instead."""
        if self._done:
            return
        if self._reads:
            if not self.ended(_SETTLE_SECONDS):
                _held_up.add(self)
            return
        self._opened.library.cumulus_transfer_result(self._handle, None)

    def wait(self, progress: Optional[Callable[[int, int], None]]) -> None:
        """Until it has ended. Raises what went wrong."""
        library, total, told = self._opened.library, self._memory.size, 0
        while not library.cumulus_transfer_wait(self._handle, _LOOK_SECONDS):
            if self._cancelled and self._reads:  # whose end a server that takes nothing holds up
                raise Cancelled("the transfer was cancelled")
            done = library.cumulus_transfer_done(self._handle)
            if progress is not None and told < done < total:
                told = done
                progress(done, total)
        self._done = True
        if library.cumulus_transfer_result(self._handle, None) != 0:
            status = Status(library)
            raise status.error(library.cumulus_transfer_result(self._handle, status.handle), self._opened.address, "transfer")
        if progress is not None:
            progress(total, total)

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


class _HeldUp:
    """Uploads that nobody waits for any more, until the library is done with their memory. What is left at the process's end stays as
    it is: to wait for it would hold up that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._transfers: List[Transfer] = []

    def add(self, transfer: Transfer) -> None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(transfer))
        with self._lock:
            self._transfers.append(transfer)

    def clear_ended(self) -> None:
        if not self._transfers:
            return
        with self._lock:
            ended = [each for each in self._transfers if each.ended()]
            self._transfers = [each for each in self._transfers if each not in ended]
        for each in ended:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(each))


_held_up = _HeldUp()


def options_of(deadline_in: float, *, evictable: bool = False, ttl: int = 0, request_id: str = "",
               checksum: bool = False) -> binding.TransferOptions:
    """Of a transfer that may take so many seconds; `ttl` in nanoseconds."""
    return binding.TransferOptions(ctypes.sizeof(binding.TransferOptions), min(deadline_in, _LONGEST_SECONDS), ttl, evictable, checksum,
                                   request_id.encode() or None)


def array_of(element: int, shape: Tuple[int, ...], memory: NDArray) -> binding.Array:
    """Bytes, uint8 [bytes], as an array of the wire's element type and this shape."""
    extents = (ctypes.c_int64 * len(shape))(*shape)
    return binding.Array(element - 1, len(shape), extents, memory.ctypes.data, memory.size)


_SIZE_OF_REQUEST = ctypes.sizeof(binding.Request)
_channels: "weakref.WeakSet[Channel]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """The library's threads are not to run while the process takes its memory down."""
    for channel in list(_channels):
        channel.close()
