"""The library's connections to one server, and transfers that go over them."""

from __future__ import annotations

import atexit
import ctypes
import functools
import math
import threading
import weakref
from typing import Any, Callable, NamedTuple, Optional, Set, Tuple

import numpy as np

from ..arrays import MAX_EXTENTS, NDArray, element_of
from ..cancellation import cancellation
from ..credentials import Credentials
from . import binding
from .work import Call, Opened, SharedUpload, Transfer, Work, held_up

SessionAndInstance = Tuple[str, str]
"""The names of a session and of the instance of the server that has it."""

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
        self._open: Optional[Opened] = None
        self._tried = False
        self._closed = False
        self._running: Set[Work] = set()
        _channels.add(self)

    def take_facts(self, facts: Facts) -> None:
        """As Capabilities say now: after a restart of the server, its shared memory has another socket."""
        with self._lock:
            if facts != self._facts:
                self._facts = facts
                self._open = None
                self._tried = False

    def _opened(self) -> Optional[Opened]:
        """None where the library cannot be used."""
        there = self._open
        if there is not None and there.is_here:
            return there
        with self._lock:
            if not self._tried and not self._closed:
                self._tried = True
                library = binding.load()
                self._open = None if library is None else _open(library, self._server, self._facts)
            return self._open if self._open is not None and self._open.is_here else None

    def upload(self, session: SessionAndInstance, array: binding.Array, options: binding.TransferOptions, memory: NDArray,
               progress: Optional[Callable[[int, int], None]] = None) -> Optional[Transfer]:
        """Of `memory`, which `array` describes; it has ended. None where the library cannot be used."""
        opened = self._opened()
        if opened is None:
            return None
        arguments = (_named(session), array, options)
        transfer = Transfer(opened, memory, opened.library.cumulus_channel_start_upload, arguments, reads=True)
        transfer.begin()
        self._finish(transfer, progress)
        return transfer

    def upload_shared(self, session: SessionAndInstance, array: binding.Array, options: binding.TransferOptions, memory: NDArray) -> Optional[str]:
        """The name of the new buffer, of `memory` that `allocate` made; None where the library cannot be used."""
        opened = self._opened()
        if opened is None:
            return None
        return self._finish(SharedUpload(opened, memory, (_named(session), array, options)), None).decode()

    def download(self, session: SessionAndInstance, name: str, options: binding.TransferOptions, memory: NDArray,
                 progress: Optional[Callable[[int, int], None]] = None) -> bool:
        """Into `memory`; False where the library cannot be used."""
        opened = self._opened()
        if opened is None:
            return False
        destination = binding.Destination(name.encode(), memory.ctypes.data, memory.size)
        arguments = (_named(session), destination, options)
        transfer = Transfer(opened, memory, opened.library.cumulus_channel_start_download, arguments)
        transfer.begin()
        self._finish(transfer, progress)
        return True

    def call(self, session: SessionAndInstance, method: str, message: bytes, seconds: float) -> Optional[bytes]:
        """The answer to a call of the wire, in the session's name or, of "", in none; None where the library is not used."""
        if self._open is None and self._calls < _CALLS_BEFORE:
            self._calls += 1
            return None
        opened = self._opened()
        if opened is None:
            return None
        seconds = seconds if seconds < _LONGEST_SECONDS else _LONGEST_SECONDS
        request = binding.Request(_SIZE_OF_REQUEST, method.encode(), message, len(message), seconds)
        arguments = (_named(session) if session[0] else None, request)
        return self._finish(Call(opened, arguments), None)

    def _finish(self, work: Work, progress: Optional[Callable[[int, int], None]]) -> bytes:
        """As `Work.finish`, until the caller's patience ends, by an exception, the thread's Cancellation or close(). Afterwards nobody but the
        caller uses the memory."""
        if held_up.transfers:
            held_up.clear_ended()
        scope = cancellation()
        self._running.add(work)
        if scope is not None:
            scope.add(work)
        try:
            if self._closed:
                work.cancel()
            return work.finish(progress)
        except BaseException:
            work.cancel()
            work.settle()
            raise
        finally:
            self._running.discard(work)
            if scope is not None:
                scope.remove(work)

    def allocate(self, shape: Tuple[int, ...], dtype: "np.dtype[Any]") -> Optional[NDArray]:
        """An array in memory that the server has mapped, too, for transfers by the library; None where there is none to be had."""
        opened = self._opened()
        if opened is None:
            return None
        nbytes = math.prod(shape) * dtype.itemsize
        handle, data = ctypes.c_void_p(), ctypes.c_void_p()
        if opened.library.cumulus_channel_allocate(opened.handle, nbytes, ctypes.byref(handle), ctypes.byref(data), None) != 0:
            return None
        memory = Memory(opened, handle, data.value or 0, nbytes)
        array = np.asarray(memory).view(dtype).reshape(shape)
        memory.describe(array)  # now: once the array has been written, each step takes longer
        return array

    def close(self) -> None:
        """Stops what is under way, and waits for its end."""
        with self._lock:
            self._closed = True
            running = [each for each in list(self._running) if each.is_here]
            self._open = None
        for begun in running:
            begun.cancel()
        for begun in running:
            begun.settle()


@functools.lru_cache(maxsize=16)
def _named(session: Tuple[str, str]) -> binding.SessionName:
    return binding.SessionName(session[0].encode(), session[1].encode())


def _open(library: Any, server: Server, facts: Facts) -> Optional[Opened]:
    """None where it refuses, as it does of files that have gone since this process read them."""
    files = server.credentials
    texts = (server.address, files.tls_ca, files.tls_cert, files.tls_key, files.token_file, facts.shared_memory_socket)
    options = binding.ChannelOptions(ctypes.sizeof(binding.ChannelOptions), *(text.encode() or None for text in texts),
                                     facts.joined_uploads, server.connect_timeout, server.dead_after)
    handle = ctypes.c_void_p()
    if library.cumulus_channel_open(options, ctypes.byref(handle), None) != 0:
        return None
    return Opened(library, handle, server.address)


class Described(NamedTuple):
    """An array as the wire and the library have it."""

    element_type: int
    array: binding.Array


class Memory:
    """Bytes of a cumulus_memory, for numpy's arrays, which hold this."""

    def __init__(self, opened: Opened, handle: ctypes.c_void_p, address: int, nbytes: int) -> None:
        self._opened = opened
        self._handle = handle
        self.address = address
        self.nbytes = nbytes
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False)}
        self._described: Optional[Tuple[Tuple[int, ...], "np.dtype[Any]", Described]] = None

    def describe(self, array: NDArray) -> Optional["Described"]:
        """An array that is all of this, for the library; None of more extents or another dtype than it takes."""
        known = self._described
        if known is not None and known[0] == array.shape and known[1] is array.dtype:
            return known[2]
        element = element_of(array.dtype)
        if element is None or not 0 < array.ndim <= MAX_EXTENTS:
            return None
        extents = (ctypes.c_int64 * array.ndim)(*array.shape)
        described = Described(element, binding.Array(element - 1, array.ndim, extents, self.address, self.nbytes))
        self._described = array.shape, array.dtype, described
        return described

    def __del__(self) -> None:
        if self._opened.is_here:
            self._opened.library.cumulus_memory_release(self._handle)


def memory_of(array: NDArray) -> Optional[Memory]:
    """Of an array that is all of it, contiguous and in this machine's order of bytes; None of others."""
    owner = getattr(array.base, "base", None)
    if type(owner) is Memory and owner.nbytes == array.nbytes and array.flags.c_contiguous and array.dtype.isnative:
        return owner
    return None


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
