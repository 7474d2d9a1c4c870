"""Memory that the server made, and the connection of its socket that the memory lives as long as. Of Linux alone."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import socket
import struct
import weakref
from typing import Callable, NamedTuple, Optional, Tuple

RING, ARRAY, REGION, REFUSED, BEGIN, FILLED, FREE, DEVICE = range(1, 9)
SLOT_BYTES = 1 << 20
SLOTS = 16

_MESSAGE = struct.Struct("=IIQQ")
_PEER = struct.Struct("=iII")  # struct ucred: pid, uid, gid
_MAX_TEXT = 512
_ANSWER_SECONDS = 10.0  # a server that does not answer for so long is no help
_MAP_FIXED = 0x10  # which the module mmap lacks


class Message(NamedTuple):
    """What is said on a region's connection; the proto file says what each kind means."""

    kind: int
    slot: int = 0
    offset: int = 0
    nbytes: int = 0


class NoRegion(Exception):
    """There is no shared memory to be had; the text says why."""


@functools.lru_cache(maxsize=None)
def _mmap() -> Callable[..., object]:
    """The C library's, which maps to a given address; to be found takes a quarter of a millisecond."""
    import ctypes

    call = ctypes.CDLL(None).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    return call


class Region:
    """The connection of a region, and what belongs to it but for its mapping."""

    def __init__(self, address: str) -> None:
        self.id = ""
        self.nbytes = 0
        self.becomes_the_servers = False
        self._process = os.getpid()
        self._file = -1
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        _open_regions.add(self)
        try:
            self._socket.settimeout(_ANSWER_SECONDS)
            self._socket.connect("\0" + address[1:] if address.startswith("@") else address)
            if address.startswith("@"):
                self._check_peer()
        except BaseException:
            self.close()
            raise

    def _check_peer(self) -> None:
        """Names of the abstract namespace are anybody's to take: behind one, only this user and root are believed."""
        _, user, _ = _PEER.unpack(self._peer())
        if user not in (os.geteuid(), 0):
            raise NoRegion("another user serves it")

    def _peer(self) -> bytes:
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)

    @property
    def descriptor(self) -> int:
        """Of memory that is not mapped yet."""
        return self._file

    def ask(self, want: Message) -> None:
        """Asks for memory."""
        self._socket.send(_MESSAGE.pack(*want), socket.MSG_NOSIGNAL)
        # Not recv_fds(): of its flags nothing comes through in every Python, and children are not to inherit this.
        data, ancillary, _, _ = self._socket.recvmsg(_MESSAGE.size + _MAX_TEXT, socket.CMSG_LEN(4), socket.MSG_CMSG_CLOEXEC)
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS and len(content) >= 4:
                self._file = struct.unpack_from("=i", content)[0]
        if len(data) < _MESSAGE.size:
            raise NoRegion("the server hung up")
        answer = Message(*_MESSAGE.unpack_from(data))
        text = data[_MESSAGE.size :].decode("utf-8", "replace")
        if answer.kind != REGION or self._file < 0:
            raise NoRegion(text)
        self.id = text
        self.nbytes = answer.nbytes
        self.becomes_the_servers = answer.offset == 1
        self._socket.settimeout(None)

    def map(self) -> mmap.mmap:
        """Of memory of the host."""
        memory = self._map(self.nbytes)
        if not self.becomes_the_servers:
            self._close_file()  # the mapping has one of its own
        return memory

    def _map(self, nbytes: int) -> mmap.mmap:
        import fcntl  # not everywhere

        seals = fcntl.fcntl(self._file, fcntl.F_GET_SEALS)
        if os.fstat(self._file).st_size != nbytes or not seals & fcntl.F_SEAL_SHRINK:
            raise NoRegion("it is not what the server says")
        return mmap.mmap(self._file, nbytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)

    def make_private(self, address: int, nbytes: int) -> bool:
        """What is written to the mapping at `address` from now on is seen in this process only. False, and all is as before,
        where that cannot be."""
        mapped = _mmap()(address, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _MAP_FIXED, self._file, 0)
        return bool(mapped == address)

    def replace_memory(self, address: int, nbytes: int) -> None:
        """Maps other memory, of unspecified contents, where the region is mapped: the server sees it no more."""
        _mmap()(address, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED, -1, 0)

    def fileno(self) -> int:
        """Of the connection, to be polled."""
        return self._socket.fileno()

    def send(self, message: Message) -> bool:
        """False where the connection is gone."""
        try:
            return self._socket.send(_MESSAGE.pack(*message), socket.MSG_NOSIGNAL) == _MESSAGE.size
        except OSError:
            return False

    def receive(self) -> Optional[Message]:
        """What has come; None where the connection is gone. BlockingIOError where there is nothing yet."""
        try:
            data = self._socket.recv(_MESSAGE.size, socket.MSG_DONTWAIT)
        except BlockingIOError:
            raise
        except OSError:
            return None
        return Message(*_MESSAGE.unpack(data)) if len(data) == _MESSAGE.size else None

    def quiet(self) -> bool:
        """Nothing has come that nobody has taken, and the connection is there."""
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def hang_up(self) -> None:
        """Ends the connection, and with it the server's end of the memory; what is mapped stays so. From any thread."""
        if self._process == os.getpid():  # not of a child that was forked later, whose copy is nobody's
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """As hang_up, when no other thread uses it any more. Safe in finalizers."""
        self.hang_up()
        self._socket.close()
        self._close_file()

    def _close_file(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def open_region(address: str, want: Message) -> Tuple[Region, mmap.mmap]:
    """What the server at `address` (a path, or @NAME of the abstract namespace) has for `want`.

    Raises:
        NoRegion: no server of this user is there, or none that has room.
    """
    region = _ask(address, want)
    try:
        return region, region.map()
    except (OSError, OverflowError, ValueError) as problem:
        region.close()
        raise NoRegion(f"{address}: {problem}") from None
    except BaseException:
        region.close()
        raise


def open_device_region(address: str, want: Message) -> Region:
    """As open_region, of memory of a GPU, which is for the driver to map, by the region's descriptor.

    Raises:
        NoRegion: as open_region; what the server says against it has the cure.
    """
    region = _ask(address, want)
    if region.nbytes < want.nbytes:
        region.close()
        raise NoRegion("the server shares less than was asked for")
    return region


def _ask(address: str, want: Message) -> Region:
    try:
        region = Region(address)
        try:
            region.ask(want)
            return region
        except BaseException:
            region.close()
            raise
    except (OSError, OverflowError, ValueError) as problem:
        raise NoRegion(f"{address}: {problem}") from None


_open_regions: "weakref.WeakSet[Region]" = weakref.WeakSet()


def _leave_to_parent() -> None:
    """In a child that has been forked: regions are their parent's, and end with it."""
    for region in list(_open_regions):
        region.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
