"""What operations stand on: the connection, the session, and arrays on their way to the server."""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, Iterator, Mapping, Optional, Sequence, Tuple, TypeVar, Union, cast

import numpy as np

from . import transfer, wire
from .arrays import DTYPES, NDArray, allocated, as_array, bytes_of, check_array
from .buffer import Buffer, ForOneCall
from .c_library.channel import Facts, Memory, memory_of
from .c_library.transfers import upload_shared
from .connection import Connection, Progress, seconds
from .daemon import PrivateDaemon
from .device_sharing import transfers as device_transfers
from .errors import Error, InvalidArgument, NotFound, Unavailable, name_arguments
from .operation import Call, Timings, read_timings
from .operation import Result as Answer
from .operation_base import OperationBase
from .recovery import GONE, Outage, UploadRecipe
from .session import Session
from .v1 import array_pb2, recursive_filter_pb2, server_pb2

if TYPE_CHECKING:
    from .client import Client

Response = TypeVar("Response")
Result = TypeVar("Result")


class ClientBase(OperationBase):
    """A connection to one server, and the arrays that it keeps there."""

    def __init__(self, connection: Connection, daemon: Optional[PrivateDaemon], *, device: str,
                 lease: Optional[float], progress: Union[bool, Progress], recreate: bool,
                 max_outage: float) -> None:
        self._entrance = connection  # the address that was named, which may be that of several servers
        self.connection = connection  # to the one of them that has the session
        self._daemon = daemon
        self._device = device
        self._lease = lease
        self._progress = progress
        self.recreate = recreate
        self._max_outage = max_outage
        self.replays = threading.RLock()  # one at a time makes buffers again
        self._lock = threading.Lock()
        self._session: Optional[Session] = None
        self._local = threading.local()
        self._process = os.getpid()
        self._take_capabilities()
        _open_clients.add(self)

    @property
    def whole(self) -> "Client":
        """This, with the operations: there are no other clients."""
        return cast("Client", self)

    def _take_capabilities(self) -> None:
        self.capabilities = self.call("/cumulus.v1.Server/GetCapabilities", server_pb2.GetCapabilitiesRequest(),
                                      server_pb2.Capabilities.FromString)
        self.connection.shared_memory.set_socket(self.capabilities.shared_memory_socket)
        self.connection.c_channel.take_facts(Facts(self.connection.shared_memory.socket, self.capabilities.joined_uploads))
        self.connection.set_half_message(self.capabilities.half_message.ToNanoseconds() / 1e9)

    @property
    def address(self) -> str:
        """The server's, HOST:PORT or unix:PATH."""
        return self._entrance.address

    def __repr__(self) -> str:
        devices = ", ".join(f"{device.name} {device.model}" for device in self.capabilities.devices)
        return f"<cumulus.Client of {self.address}: {devices}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} is a connection, which no pickle or copy has; connect() anew there, and give arrays")

    def __enter__(self) -> "Client":
        return self.whole

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Deletes what the client keeps on the server, and ends a private server."""
        self._end_session()
        self._entrance.close()
        if self._daemon is not None:
            self._daemon.stop()

    def _end_session(self, patience: float = -1.0) -> None:
        """`patience`: seconds to wait for whoever makes one just now; negative: as long as it takes."""
        if not self._lock.acquire(timeout=patience):
            return
        session, self._session = self._session, None
        self._lock.release()
        if session is not None and not session.lost:
            session.close()

    def _end_with_process(self) -> None:
        """Of a client that nobody has closed: else its session, of which a server has so many for each client, stays until its lease ends."""
        if self._process == os.getpid() and self._daemon is None:  # a private server ends itself
            self._end_session(1.0)
            self._entrance.close()  # threads that go on make no other

    @property
    def session(self) -> Session:
        """The session that owns the buffers; made when it is first needed, and anew once it has been lost."""
        there = self._session
        if there is not None and not there.lost:
            return there
        with self._lock:
            if self._session is not None and self._session.lost:
                self.connection = self._entrance
                self._take_capabilities()  # of a server that has restarted, as the name of its shared memory's socket
                self._session = None
            if self._session is None:
                session = Session(self._entrance, device=self._device, ttl=self._lease)
                if session.connection is not self.connection:
                    self.connection = session.connection
                    self._take_capabilities()
                self._session = session
            return self._session

    @property
    def timings(self) -> Timings:
        """Of the last operation on this thread."""
        answered = getattr(self._local, "timings", None)
        return Timings(0.0, 0.0, 0.0, 0.0, "") if answered is None else read_timings(answered)

    def note_timings(self, answered: "array_pb2.Timings") -> None:
        """Of an operation that has just ended on this thread; read when they are asked for, which few calls' are."""
        self._local.timings = answered

    def call(self, method: str, request: Any, response: Callable[[bytes], Response],
             timeout: Optional[float] = None) -> Response:
        """One call of the wire, by its full name; for what the other methods do not cover."""
        session = self._session
        try:
            return self.connection.call(method, request, response, timeout)
        except (NotFound, Unavailable) as error:
            self._forget(error, session)
            raise

    def begin(self, rpc: str, request: Any, options: Mapping[str, Any]) -> Call:
        return Call(self, rpc, request, options)

    def run_on(self, rpc: str, head: bytes, source: Buffer) -> Optional[Buffer]:
        """As `OperationBase.run_on`. A request that is put together of bytes, and an answer of one buffer, take half of the steps of a `Call`, which
        count where the caches are another's by the time of the answer."""
        source.resident.check_kept()
        if self.recreate or source.client is not self:
            return None
        session = self.session
        message = head + _named_of(source.resident.name, session.name)
        try:
            answer = self.connection.call("/cumulus.v1.Operations/" + rpc, message, array_pb2.OperationResult.FromString)
        except Error as error:
            self._forget(error, session)
            raise
        arrays = answer.arrays
        made = arrays[0] if len(arrays) == 1 else None
        if made is None or made.WhichOneof("value") != "buffer":
            return Answer(self, answer, rpc, session, None).buffer("image")
        self.note_timings(answer.timings)
        return Buffer(source.client, made.buffer, session)

    def _forget(self, error: Error, session: Optional[Session]) -> None:
        if session is None or session.lost:
            return
        if error.reason in GONE:
            session.lost = True
        elif isinstance(error, Unavailable) and not error.reason and not self._entrance.closed and session.connection is not self._entrance:
            if not session.connection.answers(_ENDPOINT_RETURNS):  # others behind the address have room
                session.lost = True
                self.connection = self._entrance

    def recovering(self, attempt: Callable[[float], Result], timeout: Optional[float], allowance: float = 0.0) -> Result:
        """What `attempt` answers, which is given the seconds that are left. Where sessions are made again it is repeated
        when the session is lost, for as long as an outage may last."""
        deadline = self.connection.deadline(timeout, allowance)
        outage: Optional[Outage] = None
        while True:
            session = self._session
            try:
                return attempt(max(deadline - time.monotonic(), 0.0))
            except Error as error:
                self._forget(error, session)
                if not self.recreate or self.connection.closed:
                    raise
                outage = outage or Outage(deadline, self._max_outage)
                outage.wait_after(error)

    def progress_of(self, size: int, what: str) -> ContextManager[Optional[Progress]]:
        """What to call as a transfer of `size` bytes goes on."""
        if callable(self._progress):
            return contextlib.nullcontext(self._progress)
        return _bar(size, what) if self._progress and size >= 16 << 20 else contextlib.nullcontext(None)

    # Arrays on the server.

    def upload(self, array: Any, *, timeout: Optional[float] = None, ttl: Optional[float] = None,
               evictable: bool = False, request_id: str = "") -> Buffer:
        """Copies an array to the server: through memory that both share where that is to be had (`connect`), else in chunks that
        carry a crc32c each.

        Args:
            array: of any shape, uint8 to uint64, int32, int64, float16 to float64; bool counts as uint8. One on a GPU is
                copied within it where the server shares its memory, from 4 MiB on and if it is dense, else to host memory first.
            ttl: seconds that the buffer lives; without, as long as the client.
            evictable: the server may drop it when the device runs out of memory.
        """
        options = {"ttl": None if ttl is None else seconds(ttl, "ttl"), "evictable": evictable, "request_id": request_id}
        try:
            return self._upload(array, options, timeout)
        except InvalidArgument as error:
            name_arguments(error, (("spec.", ""),))
            raise

    def _upload(self, array: Any, options: Dict[str, Any], timeout: Optional[float]) -> Buffer:
        """By the way that is quickest."""
        memory = memory_of(array) if type(array) is np.ndarray and not self.recreate and not self._progress else None
        if memory is not None:
            there = self._upload_shared(array, memory, options, timeout)
        else:
            there = self._upload_within_gpu(array, "array", options, timeout)
        if there is not None:
            return there
        data = as_array(array, "array")
        with self.progress_of(data.nbytes, "upload") as progress:

            def attempt(left: float) -> Tuple[Session, transfer.Uploaded]:
                session = self.session
                return session, self.write(session, data, options, timeout=left, progress=progress)

            session, written = self.recovering(attempt, timeout, transfer.allowance(data.nbytes))
        buffer = Buffer(self.whole, written.message, session)
        if self.recreate:
            buffer.resident.recipe = UploadRecipe(buffer.resident, data, options, written.checksum)
        return buffer

    def _upload_shared(self, array: NDArray, memory: Memory, options: Mapping[str, Any], timeout: Optional[float]) -> Optional[Buffer]:
        """Of all of `memory`; None of what has to go another way."""
        deadline = self.connection.deadline(timeout, transfer.allowance(array.nbytes))
        session = self.session
        try:
            made = upload_shared(self.connection, session.name, (array, memory), options, deadline)
        except Error as error:
            self._forget(error, session)
            raise
        return None if made is None else Buffer(self.whole, made, session)

    def _upload_within_gpu(self, array: Any, field: str, options: Mapping[str, Any], timeout: Optional[float] = None,
                           dtypes: Sequence[str] = DTYPES, extents: Optional[Sequence[int]] = None) -> Optional[Buffer]:
        """None of what is not on a GPU that this process and the server share."""
        found = device_transfers.find(self, array)
        if found is None:
            return None
        check_array(found, field, dtypes, extents)
        written = device_transfers.upload(self, found, options, timeout)
        if written is None:
            return None
        buffer = Buffer(self.whole, written.message, written.session)
        with self.progress_of(buffer.nbytes, "upload") as progress:
            if progress is not None:
                progress(buffer.nbytes, buffer.nbytes)
        return buffer

    def given(self, value: Any, field: str, dtypes: Sequence[str] = DTYPES,
              extents: Optional[Sequence[int]] = None) -> Union[NDArray, ForOneCall]:
        """As `OperationBase.given`."""
        options = {"ttl": None, "evictable": False, "request_id": ""}
        there = self._upload_within_gpu(value, field, options, None, dtypes, extents)
        return as_array(value, field, dtypes, extents) if there is None else ForOneCall(there)

    def allocate_shared(self, shape: Union[int, Sequence[int]], dtype: Any) -> NDArray:
        """An array in host memory that uploads take from where it lies, and into which downloads are one copy, by the server.

        On the CPU backend the first upload of all of it copies nothing, and what is written to the array later is seen here
        alone; a GPU copies from it at its bus's rate, as often as it is uploaded. Until such an upload `Buffer.numpy(array)`
        has the server write to it; where that fails midway its elements are unspecified. It stays when the client is closed. Takes a
        connection of the server's and, on a GPU, some milliseconds. Where the server shares no memory with this client it is
        an ordinary array, which uploads as any other.

        Args:
            shape: extents, outermost first, at most 8; or the only one.
            dtype: of the elements: uint8 to uint64, int32, int64, float16 to float64, or bool.

        Returns:
            The array [shape], contiguous and writeable, uninitialised or 0.

        Raises:
            InvalidArgument: of a shape or dtype that no array of the server has.
            MemoryError: there is no room for an ordinary one.
        """
        extents, kind = allocated(shape, dtype)
        if self.connection.shared_memory.socket and math.prod(extents) > 0:
            by_library = self.connection.c_channel.allocate(extents, kind)
            if by_library is not None:
                return by_library
        shared = self.connection.shared_memory.allocate(extents, kind)
        return np.empty(extents, kind) if shared is None else shared

    def write(self, session: Session, data: NDArray, options: Mapping[str, Any], *, timeout: Optional[float] = None,
              progress: Optional[Progress] = None) -> transfer.Uploaded:
        """One upload to a session, as `upload` has it."""
        spec = transfer.spec_of_write(session.name, data, options)
        return transfer.upload(self.connection, spec, bytes_of(data), timeout=timeout, progress=progress,
                               checksum=self.recreate)


_ENDPOINT_RETURNS = 2.0  # seconds that a server which is known by an address of its own may be away
_IMAGE = recursive_filter_pb2.ApplyRecursiveFilterRequest.IMAGE_FIELD_NUMBER  # of every request with an image
_OPTIONS = recursive_filter_pb2.ApplyRecursiveFilterRequest.OPTIONS_FIELD_NUMBER


def _named_of(buffer: str, session: str) -> bytes:
    """Of a request: its image, and the session that has it and is to have the result."""
    return wire.field(_IMAGE, wire.field(array_pb2.Source.BUFFER_FIELD_NUMBER, buffer.encode())) + _options_of(session)


@functools.lru_cache(maxsize=16)
def _options_of(session: str) -> bytes:
    return wire.field(_OPTIONS, wire.field(array_pb2.RequestOptions.SESSION_FIELD_NUMBER, session.encode()))


_open_clients: "weakref.WeakSet[ClientBase]" = weakref.WeakSet()


@atexit.register
def _end_sessions() -> None:
    for client in list(_open_clients):
        client._end_with_process()


def _leave_to_parent() -> None:
    """In a child that has been forked: two processes would talk over one connection, and mix up what they say."""
    for client in list(_open_clients):
        client._entrance.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


@contextlib.contextmanager
def _bar(size: int, what: str) -> Iterator[Optional[Progress]]:
    """tqdm's, where it is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    with tqdm(total=size, unit="B", unit_scale=True, unit_divisor=1024, desc=what, leave=False) as bar:
        yield lambda done, total: bar.update(done - bar.n)
