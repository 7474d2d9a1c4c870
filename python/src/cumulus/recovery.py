"""Sessions that are made again: what the client keeps of each buffer, and how its calls go on."""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from .arrays import NDArray
from .cancellation import cancellation
from .connection import BackOff
from .errors import DataLoss, Error, NotFound, Unavailable

if TYPE_CHECKING:
    from .client_base import ClientBase
    from .session import Session

GONE = ("SESSION_EXPIRED", "SESSION_NOT_FOUND", "INSTANCE_RESTARTED")
_MAX_REPEATS = 8  # of a call, which a server may not survive
_MAX_DEPTH = 200  # of operations on results of operations: a recipe's inputs are made by recursion


def is_loss(error: Error) -> bool:
    """Whether what the call needs is gone or going. What a server says carries a reason."""
    if isinstance(error, NotFound):
        return error.reason in GONE
    if error.reason:
        return error.reason in ("DEVICE_FAULT", "DRAINING")
    return isinstance(error, Unavailable) or error.code in ("CANCELLED", "UNKNOWN", "INTERNAL")


class Outage:
    """How long one call goes on when what it needs is lost."""

    def __init__(self, deadline: float, longest: float) -> None:
        self._deadline = deadline
        self._longest = longest
        self._since: Optional[float] = None
        self._repeats = 0
        self._back_off = BackOff()

    def wait_after(self, error: Error) -> None:
        """Returns, after a short wait, where the call is to go on; raises `error` otherwise."""
        scope = cancellation()
        now = time.monotonic()
        self._since = self._since or now
        self._repeats += not isinstance(error, Unavailable)  # while no server answers, none is harmed
        delay = self._back_off.next()
        if (not is_loss(error) or self._repeats > _MAX_REPEATS or (scope is not None and scope.cancelled)
                or now + delay - self._since > self._longest or now + delay >= self._deadline):
            raise error
        time.sleep(delay)


class Resident:
    """What a Buffer, the calls that read it and the recipes of others share: an array on the server."""

    def __init__(self, client: "ClientBase", session: "Session", name: str, nbytes: int) -> None:
        self.client = client
        self.nbytes = nbytes
        self.session: Optional["Session"] = session  # that has it under this name
        self.name = name
        self.recipe: Any = None  # how to make it again; None: not at all
        self.released = False  # no handle is left

    def release(self) -> None:
        """Safe in finalizers."""
        self.released = True
        self.drop()

    def check_kept(self) -> None:
        """NotFound once it has been released."""
        if self.released:
            cure = "delete it after its last use, or leave that to the last reference"
            raise NotFound(f"the buffer has been deleted here; {cure}", cure=cure, reason="BUFFER_NOT_FOUND")

    def drop(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            session.release(self.name, self.nbytes)

    def adopt(self, session: "Session", name: str) -> None:
        self.name = name
        self.session = session

    def current_name(self) -> str:
        """Its name in the present session, where it is made again if need be. Blocks."""
        if self.recipe is None or self.released:
            return self.name
        with self.client.replays:
            self.restore(self.client.session)
            return self.name

    def restore(self, session: "Session") -> None:
        if self.session is session:
            return
        if self.recipe is None:
            raise NotFound("a buffer is lost with the server that had it, and comes from too long a chain of operations "
                           "to be made again", cure="download the end of such a chain now and then and upload it")
        self.recipe.make(session)


class UploadRecipe:
    """Uploads an array again. It holds the array."""

    def __init__(self, resident: Resident, data: NDArray, options: Dict[str, Any], checksum: int) -> None:
        self._resident = weakref.ref(resident)
        self._data = data
        self._options = options
        self._checksum = checksum
        self.depth = 0

    def make(self, session: "Session") -> None:
        resident = self._resident()
        if resident is None:
            return
        written = resident.client.write(session, self._data, self._options)
        if written.checksum != self._checksum:
            session.release(written.message.name, resident.nbytes)
            raise DataLoss("an array that has to be uploaded again, as its server has restarted, is not what it was",
                           cure="leave it as it is, or upload a copy of it")
        resident.adopt(session, written.message.name)


class RunRecipe:
    """Runs an operation again, for all of its results at once. It holds the operation's inputs."""

    def __init__(self, sending: Any, inputs: List[Resident]) -> None:
        self._sending = sending
        self._inputs = inputs
        self._outputs: List[Tuple[str, "weakref.ref[Resident]"]] = []
        self.depth = 1 + max((each.recipe.depth for each in inputs), default=0)

    @staticmethod
    def possible(inputs: List[Resident]) -> bool:
        return all(each.recipe is not None and each.recipe.depth < _MAX_DEPTH for each in inputs)

    def add_output(self, name: str, resident: Resident) -> None:
        self._outputs.append((name, weakref.ref(resident)))
        resident.recipe = self

    def make(self, session: "Session") -> None:
        for each in self._inputs:
            each.restore(session)
        self._sending.name(session)
        answer = self._sending.send()
        outputs = dict(self._outputs)
        for named in answer.arrays:
            if named.WhichOneof("value") != "buffer":
                continue
            reference = outputs.get(named.name)
            resident = reference() if reference is not None else None
            if resident is None:
                session.release(named.buffer.name, named.buffer.size_bytes)
                continue
            resident.adopt(session, named.buffer.name)
            if resident.released:
                resident.drop()
        for each in self._inputs:
            if each.released:  # it was made for this alone
                each.drop()
