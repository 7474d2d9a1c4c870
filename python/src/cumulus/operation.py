"""One call of an operation: its inputs on their way, and its results where they are wanted."""

from __future__ import annotations

import math
import operator
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, TypedDict, Union

import numpy as np

from .arrays import AnyArray, NDArray, choose, read_inline, write_spec
from .buffer import Buffer, EncodedImage, ForOneCall
from .connection import MAX_REQUEST_BYTES
from .errors import Internal, InvalidArgument, Names, name_arguments, wrong
from .recovery import Resident, RunRecipe
from .session import Session
from .v1 import array_pb2

if TYPE_CHECKING:
    from .client_base import ClientBase

Input = Union[NDArray, Buffer, ForOneCall, EncodedImage]
ImageLike = Union[AnyArray, str, "os.PathLike[str]", bytes, EncodedImage]
"""What images and weights may be besides buffers: arrays, or an image file by its path or its bytes."""


class CallOptions(TypedDict, total=False):
    """What every operation takes besides its own arguments."""

    timeout: Optional[float]  # seconds, from now to the end, repetitions included; the connection's without
    request_id: str  # at most 128 bytes, which the server repeats in its log
    priority: str  # "interactive" or "batch": runs when no interactive request waits
    ttl: Optional[float]  # seconds, lifetime of new buffers; without as long as the session
    evictable: bool  # the server may drop new buffers when the device runs out of memory


class Timings(NamedTuple):
    """Where a call's time went, in seconds on the server's clock, and the device that ran it; `decode` is the part of
    `input` that decoding images took, whose files have `encoded_bytes`."""

    queue: float
    input: float
    compute: float
    output: float
    device: str
    decode: float = 0.0
    encoded_bytes: int = 0


def _seconds(duration: Any) -> float:
    return float(duration.seconds) + float(duration.nanos) * 1e-9


def read_timings(times: Any) -> Timings:
    """Of an answer's."""
    return Timings(_seconds(times.queue), _seconds(times.input), _seconds(times.compute), _seconds(times.output),
                   times.device, _seconds(times.decode), times.encoded_bytes)


class Call:
    """Fills in a request's sources, runs it, and takes the results.

    Arrays travel inline as far as the server's limits allow, and are uploaded otherwise, as buffers that live until the
    call has ended.
    """

    def __init__(self, client: "ClientBase", rpc: str, request: Any, options: Mapping[str, Any]) -> None:
        for name in options:
            if name not in CallOptions.__annotations__:
                raise TypeError(f"{rpc}: unexpected argument {name!r}; besides its own it takes "
                                + ", ".join(CallOptions.__annotations__))
        self._client = client
        self._rpc = rpc
        self._request = request
        self._options = options
        self._sending = _Sending(client, rpc, request)
        self._uploaded: List[Buffer] = []
        self._names: Names = ()
        self._inline_bytes = 0
        self._needs_session = False

    def called(self, names: Names) -> "Call":
        """What its caller calls the request's fields, for errors that name one; those of its name need no place in `names`."""
        self._names = names
        return self

    def source(self, source: Any, value: Input, field: str) -> "Call":
        """Fills in one source, checking only what the server could not say better."""
        if isinstance(value, Buffer):
            if value.client is not self._client:
                raise wrong(field, "is a buffer of another client", "one of the client that is called")
            value.resident.check_kept()
            self._needs_session = True
            self._sending.named.append((source, value.resident))
        elif isinstance(value, ForOneCall):
            self._uploaded.append(value.buffer)
            self._needs_session = True
            self._sending.named.append((source, value.buffer.resident))
        elif isinstance(value, EncodedImage):
            self._encoded(source.encoded, value, field)
        else:
            self._array(source, value)
        return self

    def _encoded(self, encoded: Any, image: EncodedImage, field: str) -> None:
        encoded.subimage = image.subimage
        encoded.channels.extend(image.channels)
        if image.server_path:
            if image.data:
                raise wrong(field, "is an image file and a path on the server", "one of the two")
            encoded.path = image.server_path
        elif self._inline_bytes + len(image.data) <= self._client.capabilities.max_encoded_bytes:
            self._inline_bytes += len(image.data)
            encoded.data = image.data
        else:
            self._sending.named.append((encoded, self._upload(np.frombuffer(image.data, np.uint8)).resident))

    def _array(self, source: Any, array: NDArray) -> None:
        limit = self._client.capabilities.max_inline_bytes
        if array.nbytes <= limit and self._inline_bytes + array.nbytes <= MAX_REQUEST_BYTES // 2:
            self._inline_bytes += array.nbytes
            write_spec(array.dtype, array.shape, source.inline_array.spec)
            source.inline_array.data = array.tobytes()
            return
        self._sending.named.append((source, self._upload(array).resident))

    def _upload(self, array: NDArray) -> Buffer:
        """For as long as the call."""
        buffer = self._client.upload(array, timeout=self._options.get("timeout"))
        self._uploaded.append(buffer)
        self._needs_session = True
        return buffer

    def run(self, resident: bool, result_bytes: int) -> "Result":
        """`result_bytes`: of all results together, at most, as far as one can know."""
        inline = not resident and result_bytes <= self._client.capabilities.max_inline_bytes
        self._needs_session = self._needs_session or not inline
        if inline:
            self._request.options.output.inline_array.SetInParent()
        if self._options:
            self._write_options(resident)
        try:
            session, answer = self._client.recovering(self._attempt, self._options.get("timeout"))
            return Result(self._client, answer, self._rpc, session, self._recipe())
        except InvalidArgument as error:
            self._name_arguments(error)
            raise
        finally:
            for buffer in self._uploaded:
                buffer.delete()

    def _name_arguments(self, error: InvalidArgument) -> None:
        name_arguments(error, self._names)

    def _write_options(self, resident: bool) -> None:
        options = self._request.options
        if resident:
            if self._options.get("ttl") is not None:
                options.output.ttl.FromNanoseconds(int(float(self._options["ttl"]) * 1e9))
            options.output.evictable = bool(self._options.get("evictable", False))
        options.request_id = str(self._options.get("request_id", ""))
        if self._options.get("priority", "interactive") != "interactive":
            options.priority = choose(array_pb2.Priority, "", str(self._options["priority"]), "priority")

    def _attempt(self, timeout: float) -> Tuple[Optional[Session], Any]:
        if not self._needs_session:
            return None, self._sending.send(timeout)
        with self._client.replays:
            session = self._client.session
            for _, resident in self._sending.named:
                resident.current_name()
            self._sending.name(session)
        return session, self._sending.send(timeout)

    def _recipe(self) -> Optional[RunRecipe]:
        """How the results can be made again."""
        inputs = [resident for _, resident in self._sending.named]
        if not self._client.recreate or not self._needs_session or not RunRecipe.possible(inputs):
            return None
        return RunRecipe(self._sending, inputs)


class _Sending:
    """A request on its way, as often as wanted. It refers to buffers by their state, not by handles."""

    def __init__(self, client: "ClientBase", rpc: str, request: Any) -> None:
        self._client = client
        self._rpc = rpc
        self._request = request
        self.named: List[Tuple[Any, Resident]] = []  # sources whose names are looked up when they are sent

    def name(self, session: Session) -> None:
        self._request.options.session = session.name
        for source, resident in self.named:
            source.buffer = resident.name

    def send(self, timeout: Optional[float] = None) -> Any:
        return self._client.call(f"/cumulus.v1.Operations/{self._rpc}", self._request,
                                 array_pb2.OperationResult.FromString, timeout)


class Result:
    """An operation's arrays by name, each a buffer or an array that came with the answer."""

    def __init__(self, client: "ClientBase", answer: Any, rpc: str, session: Optional[Session],
                 recipe: Optional[RunRecipe]) -> None:
        self._rpc = rpc
        self._values: Dict[str, Union[NDArray, Buffer]] = {}
        for named in answer.arrays:
            kind = named.WhichOneof("value")
            if kind != "buffer":
                self._values[named.name] = read_inline(named.inline_array)
                continue
            if session is None:
                raise Internal(f"{rpc}: the server kept {named.name!r} although the call named no session")
            self._values[named.name] = kept = Buffer(client.whole, named.buffer, session)
            if recipe is not None:
                recipe.add_output(named.name, kept.resident)
        client.note_timings(answer.timings)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def buffer(self, name: str) -> Buffer:
        value = self._value(name)
        if isinstance(value, Buffer):
            return value
        raise Internal(f"{self._rpc}: the array {name!r} came inline, and was to stay on the server")

    def array(self, name: str) -> NDArray:
        value = self._value(name)
        return value.numpy() if isinstance(value, Buffer) else value

    def either(self, name: str, resident: bool) -> Union[NDArray, Buffer]:
        return self.buffer(name) if resident else self.array(name)

    def _value(self, name: str) -> Union[NDArray, Buffer]:
        if name in self._values:
            return self._values[name]
        raise Internal(f"{self._rpc}: the server sent no array {name!r}, only " + ", ".join(self._values),
                       cure="use a client of the server's version")


def nbytes(dtype: Any, *shape: int) -> int:
    return int(np.dtype(dtype).itemsize) * math.prod(shape)


def pair(value: Any, field: str, kinds: Tuple[type, ...]) -> Tuple[Any, Any]:
    """One value for both axes, or (along x, along y), as on the command line."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # an array of one number, or a tensor
        value = value.item()
    elif isinstance(value, np.ndarray) and value.ndim == 1:
        value = tuple(value)
    if isinstance(value, kinds) and not isinstance(value, bool):
        return value, value
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(each, kinds) for each in value):
        return value[0], value[1]
    one = "a name" if str in kinds else "a number" if float in kinds else "a whole number"
    raise wrong(field, f"is {value!r}", f"{one}, or two: (along x, along y)")


def whole(value: Any, field: str, least: int = -(2**63), most: int = 2**63 - 1) -> int:
    """A whole number, of numpy too, in the range that the wire has for it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise wrong(field, f"is {value!r}", "a whole number") from None
    if isinstance(value, bool) or not least <= number <= most:
        raise wrong(field, f"is {value!r}", f"a whole number, {least} to {most},")
    return number
