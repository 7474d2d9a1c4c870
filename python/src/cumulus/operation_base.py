"""What the methods for operations stand on, be they of a client or of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
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

    @property
    def _unknown(self) -> int:
        """For results whose size only the server knows: too large to come inline."""
        return self.capabilities.max_inline_bytes + 1
