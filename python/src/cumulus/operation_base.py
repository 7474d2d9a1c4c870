"""What the methods for operations stand on, be they of a client or of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from .arrays import DTYPES, NDArray

if TYPE_CHECKING:
    from .buffer import Buffer, ForOneCall
    from .operation import Call
    from .v1 import server_pb2


class OperationBase:
    """Calls, and what has to be known of the server to make them."""

    capabilities: "server_pb2.Capabilities"

    @property
    def address(self) -> str:
        """The server's."""
        raise NotImplementedError

    def begin(self, rpc: str, request: Any, options: Mapping[str, Any]) -> "Call":
        """A call of an operation, whose sources are to be filled in."""
        raise NotImplementedError

    def run_on(self, rpc: str, head: bytes, source: "Buffer") -> "Optional[Buffer]":
        """What an operation without options answers of one image on the server; `head` is its request without image and options. None where it has to
        be begun in the usual way, as in a pipeline."""
        return None

    def given(self, value: Any, field: str, dtypes: Sequence[str] = DTYPES,
              extents: Optional[Sequence[int]] = None) -> "Union[NDArray, ForOneCall]":
        """An array of any library as what a call takes: numpy's (`as_array`), or already on the server's GPU where both are on one."""
        raise NotImplementedError

    @property
    def _unknown(self) -> int:
        """For results whose size only the server knows: too large to come inline."""
        return self.capabilities.max_inline_bytes + 1
