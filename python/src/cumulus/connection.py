"""Channels to one server, and the one way in which every unary call goes over them."""

from __future__ import annotations

import functools
import math
import random
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

import grpc
import numpy as np

from .c_library.channel import Channel, Server
from .cancellation import CallScope, cancellation
from .credentials import ChannelSecurity, Credentials, secure
from .errors import Cancelled, DeadlineExceeded, Error, Unavailable, from_status, mistake_of_tls, wrong
from .shared_memory.memory import SharedMemory, is_on_this_machine

Progress = Callable[[int, int], None]
"""Called with the bytes that are done and all bytes, as a transfer goes on, on the thread that asked for it."""

Response = TypeVar("Response")

MAX_MESSAGE_BYTES = 8 << 20  # above the server's 4 MiB, so that its own limit is the one that speaks
MAX_REQUEST_BYTES = 4 << 20

_CAPABILITIES = "/cumulus.v1.Server/GetCapabilities"
_QUIET_SECONDS = 6.0  # less than the 13.5 after which a server closes by default a connection without calls
_PROBE_SECONDS = 2.0


class BackOff:
    """Waiting times between repetitions: 50 ms, doubling up to 1 s, each varied by a quarter."""

    def __init__(self) -> None:
        self._delay = 0.05

    def next(self) -> float:
        delay = self._delay * random.uniform(0.75, 1.25)
        self._delay = min(2 * self._delay, 1.0)
        return delay


def _options(connect_timeout: float, dead_after: float) -> Sequence[Tuple[str, Any]]:
    half = int(min(max(dead_after, 2.0), 86400.0) * 500)
    return [
        ("grpc.keepalive_time_ms", half),
        ("grpc.keepalive_timeout_ms", half),
        ("grpc.http2.max_pings_without_data", 0),  # a call that computes moves no data; 0: any number
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", int(min(connect_timeout, 3600.0) * 1000)),
        ("grpc.max_reconnect_backoff_ms", 1000),  # a server that comes back is to be found soon
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),  # each channel has a connection of its own
        # A stream is read by the thread that iterates over it, without handing each message to another.
        ("SingleThreadedUnaryStream", 1),
    ]


def error_of(failure: grpc.RpcError, address: str) -> Error:
    """The exception for what gRPC raised."""
    trailer = b""
    for key, value in failure.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            trailer = value
    return from_status(failure.code().name, failure.details() or "", trailer, address)


def _open(address: str, security: ChannelSecurity, options: Sequence[Tuple[str, Any]]) -> grpc.Channel:
    if security.credentials is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, security.credentials, options)


def _left(deadline: float) -> float:
    """Seconds until then, on the monotonic clock."""
    return max(deadline - time.monotonic(), 0.0)


def seconds(value: Any, field: str) -> float:
    """A number of seconds, of numpy too."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and not math.isnan(value):
        return float(value)
    raise wrong(field, f"is {value!r}", "a number of seconds")


class Connection:
    """`size` channels: unary calls go over the first, transfers over the one that has the fewest."""

    def __init__(self, address: str, *, size: int, connect_timeout: float, call_timeout: float,
                 dead_after: float, credentials: Credentials = Credentials(), shared_memory: bool = True) -> None:
        self.address = address
        self._open_other = functools.partial(Connection, size=size, connect_timeout=connect_timeout, call_timeout=call_timeout,
                                             dead_after=dead_after, credentials=credentials, shared_memory=shared_memory)
        self._others: Dict[str, Connection] = {}  # by the addresses that this server has said
        self._connect_timeout = connect_timeout
        self.shared_memory = SharedMemory(shared_memory and is_on_this_machine(address))
        self.c_channel = Channel(Server(address, Credentials() if address.startswith("unix:") else credentials,
                                        connect_timeout, dead_after))
        security = secure(address, credentials)
        self._authorization = security.metadata or ()
        self._encrypted = security.credentials is not None
        self.call_timeout = call_timeout
        options = _options(connect_timeout, dead_after)
        self._channels: List[grpc.Channel] = [_open(address, security, options) for _ in range(size)]
        self._transfers = [0] * size
        self._lock = threading.Lock()
        self._methods: Dict[str, Any] = {}
        self._closed = False
        self._is_parents = False  # this process was forked from the one that has it
        self._quiet_seconds = _QUIET_SECONDS
        self._last_call = time.monotonic()  # its end
        self._session = ("", "")  # that the client has, and of which instance of the server it is
        self._handles: Tuple[Tuple[str, str], ...] = ()  # likewise

    @property
    def metadata(self) -> Tuple[Tuple[str, str], ...]:
        """Of every call."""
        return (*self._authorization, *self._handles)

    def take_session(self, name: str, instance: str) -> None:
        """That the client has, from now on, for every call to say."""
        self._session = (name, instance)
        self._handles = tuple((key, value) for key, value in (("cumulus-session", name), ("cumulus-instance", instance)) if value)

    def session_and_instance(self, session: str) -> Tuple[str, str]:
        """A session's name, and the instance of the server that has it, where it is the one that the client has now; else ""."""
        name, instance = self._session
        return session, instance if name == session else ""

    @property
    def closed(self) -> bool:
        return self._closed

    def wait(self, timeout: float) -> None:
        """Until the server has taken the connection.

        By calls: gRPC's watch of a channel's state goes on for 0.2 s, during which each call takes two more switches of threads.
        """
        deadline = time.monotonic() + timeout
        words = self._silence(timeout, wait_for_ready=False)
        if words is None:
            return
        mistake = mistake_of_tls(words, self.address)  # which waiting does not mend
        if mistake is not None:
            raise mistake
        if self._silence(_left(deadline), wait_for_ready=True) is not None:
            cure = f"start cumulusd at {self.address}, or name another address"
            if "Socket closed" in words and not self._encrypted:
                cure = f"if it speaks TLS, name the authority of its certificate (tls_ca, CUMULUS_TLS_CA); else {cure}"
            raise Unavailable(f"no Cumulus server answers at {self.address} within {timeout:g} s ({words}); {cure}", cure=cure)

    def _silence(self, timeout: float, *, wait_for_ready: bool) -> Optional[str]:
        """What gRPC says of why nobody answers; None: somebody does. What a server refuses here it refuses the first call."""
        try:
            self._channels[0].unary_unary(_CAPABILITIES)(b"", timeout=timeout, metadata=self.metadata, wait_for_ready=wait_for_ready)
        except grpc.RpcError as failure:
            silent = (grpc.StatusCode.DEADLINE_EXCEEDED,) if wait_for_ready else (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
            return failure.details() or "no word" if failure.code() in silent else None
        return None

    def answers(self, timeout: float) -> bool:
        """Whether the server does within so many seconds."""
        return self._silence(timeout, wait_for_ready=True) is None

    def to(self, endpoint: str) -> "Connection":
        """The one to a server that this one has named, of several behind one address: this where it named none."""
        if endpoint in ("", self.address):
            return self
        with self._lock:
            other = self._others.get(endpoint)
            if other is None:
                other = self._others[endpoint] = self._open_other(endpoint)
        try:
            other.wait(self._connect_timeout)
        except Unavailable as error:
            cure = f"clients have to reach {endpoint}, or that server has to advertise another address"
            raise Unavailable(f"{error}; the server at {self.address} says that it is there (advertise): {cure}", cure=cure) from error
        return other

    def leave_to_parent(self) -> None:
        """In a child that has been forked."""
        self._is_parents = True
        for other in self._others.values():
            other.leave_to_parent()

    def set_half_message(self, seconds: float) -> None:
        """As Capabilities.half_message says: a connection without calls is closed after 0.45 of it at the earliest."""
        if seconds > 0:
            self._quiet_seconds = min(0.4 * seconds, _QUIET_SECONDS)

    def doubt(self) -> None:
        """The next call sees first whether the server is still the one that was there."""
        self._last_call = float("-inf")

    def deadline(self, timeout: Optional[float], allowance: float = 0.0) -> float:
        """When a call that starts now has to end, on the monotonic clock. DeadlineExceeded where that is now: through memory that both share a transfer
        may be as fast as that, once in a hundred times."""
        if timeout is not None and seconds(timeout, "timeout") <= 0:
            raise DeadlineExceeded("the call was given no time", cure="give it a timeout of more than 0 seconds")
        return time.monotonic() + (self.call_timeout + allowance if timeout is None else timeout)

    def call(self, method: str, request: Any, response: Callable[[bytes], Response],
             timeout: Optional[float] = None) -> Response:
        """Calls "/package.Service/Method". Repeats it while it is UNAVAILABLE with a time to come back.

        `request` is a message, or its bytes. KeyboardInterrupt cancels the call.
        """
        data = request if isinstance(request, bytes) else request.SerializeToString()
        answer = self.c_channel.call(self._session, method, data, self.call_timeout if timeout is None else max(timeout, 0.0))
        if answer is not None:
            return response(answer)
        deadline = self.deadline(timeout)
        back_off = BackOff()
        while True:
            try:
                return response(self.attempt(method, data, deadline))
            except grpc.RpcError as failure:
                error = error_of(failure, self.address)
            if not (isinstance(error, Unavailable) and error.retry_delay is not None):
                raise error
            delay = max(error.retry_delay, back_off.next())
            if time.monotonic() + delay >= deadline:
                raise error
            time.sleep(delay)

    def attempt(self, method: str, data: bytes, deadline: float) -> bytes:
        """Calls once. Raises what gRPC does, and Cancelled."""
        if time.monotonic() - self._last_call > self._quiet_seconds:
            self._notice_end(deadline)
        try:
            return self._attempt(method, data, deadline)
        finally:
            self._last_call = time.monotonic()

    def _notice_end(self, deadline: float) -> None:
        """Sees to it that a connection that the server has closed meanwhile is made anew.

        gRPC looks every 5 seconds; before, a call goes over the old connection, and fails. So one goes first that changes nothing.
        """
        try:
            self._stub(_CAPABILITIES)(b"", timeout=min(_left(deadline), _PROBE_SECONDS), metadata=self.metadata)
        except grpc.RpcError:
            pass  # what is wrong beyond that, the call itself says

    def _attempt(self, method: str, data: bytes, deadline: float) -> bytes:
        if cancellation() is None:  # half the time of a future; an exception, KeyboardInterrupt too, drops and so cancels it
            answer: bytes = self._stub(method)(data, timeout=_left(deadline), metadata=self.metadata)
            return answer
        with CallScope(self._stub(method).future(data, timeout=_left(deadline), metadata=self.metadata)) as call:
            try:
                answer = call.result()
                return answer
            except grpc.FutureCancelledError:
                raise Cancelled("the call was cancelled") from None

    def _stub(self, method: str) -> Any:
        self._check_open()
        stub = self._methods.get(method)
        if stub is None:
            stub = self._methods.setdefault(method, self._channels[0].unary_unary(method))
        return stub

    def _check_open(self) -> None:
        if self._is_parents:
            cure = "connect() in each process, after it has been forked"
            raise Unavailable(f"the client of {self.address} is that of the process from which this one was forked; {cure}", cure=cure)
        if self._closed:
            cure = "cumulus.connect() makes a new one"
            raise Unavailable(f"the client of {self.address} has been closed; {cure}", cure=cure)

    def transfer_channel(self) -> "TransferChannel":
        self._check_open()
        return TransferChannel(self)

    def take(self) -> int:
        with self._lock:
            index = min(range(len(self._channels)), key=lambda i: (self._transfers[i], i))
            self._transfers[index] += 1
            return index

    def give_back(self, index: int) -> None:
        with self._lock:
            self._transfers[index] -= 1

    def channel(self, index: int) -> grpc.Channel:
        return self._channels[index]

    def close(self) -> None:
        self._closed = True
        for other in self._others.values():
            other.close()
        self.c_channel.close()
        self.shared_memory.close()
        for channel in self._channels:
            channel.close()


class TransferChannel:
    """A channel for one transfer, as a context."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._index = -1

    def __enter__(self) -> grpc.Channel:
        self._index = self._connection.take()
        return self._connection.channel(self._index)

    def __exit__(self, *_: object) -> None:
        self._connection.give_back(self._index)
