"""What a client does with GPU memory that it shares with its server."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union, cast

from ..arrays import allocated
from ..buffer import Buffer
from ..errors import wrong
from . import transfers
from .array import DeviceArray

if TYPE_CHECKING:
    from ..client_base import ClientBase


_MAX_BYTES = (1 << 63) - 1


class DeviceSharing:
    """A part of `Client`."""

    def import_buffer(self, buffer: Buffer, *, writable: bool = False, timeout: Optional[float] = None) -> DeviceArray:
        """Maps a copy of a buffer, of its dtype and shape, on the GPU that this process and the server share, for kernels of CuPy, PyTorch and
        others; the copy is made within the GPU and complete when this returns.

        Args:
            buffer: of this client, `result.buffer` of a sampling table for instance.
            writable: kernels may write to the copy, too. Libraries that know no arrays that are only to be read, as PyTorch, need not take others.
            timeout: seconds; the client's without.

        Raises:
            FailedPrecondition: the server shares no GPU memory with this process, or has no room for more.
            ResourceExhausted: the session's quota has no room.
            NotFound: the buffer is gone.
            Internal: the driver fails.
        """
        client = cast("ClientBase", self)
        if not isinstance(buffer, Buffer) or buffer.client is not client:
            raise wrong("buffer", "is none of this client", "one that this client's calls answered")

        def attempt(left: float) -> DeviceArray:
            name = buffer.name
            array = transfers.allocate(client, buffer.shape, buffer.dtype, writable=writable)
            transfers.read(client, name, array, left)
            return array

        return client.recovering(attempt, timeout)

    def allocate_device_array(self, shape: Union[int, Sequence[int]], dtype: Any) -> DeviceArray:
        """An array of zeros on the session's GPU for kernels to write to, of which `upload` makes buffers, as often as wanted.

        Args:
            shape: extents, outermost first, at most 8; or the only one.
            dtype: of the elements: uint8 to uint64, int32, int64, float16 to float64.

        Raises:
            InvalidArgument: of a shape or dtype that no array of the server has.
            FailedPrecondition: as `import_buffer`.
        """
        extents, kind = allocated(shape, dtype)
        if math.prod(extents) * kind.itemsize > _MAX_BYTES:
            raise wrong("shape", f"is {list(extents)}", "one of fewer bytes than any memory has")
        return transfers.allocate(cast("ClientBase", self), extents, kind, writable=True)

    def upload_device_array(self, array: DeviceArray, *, stream: Optional[int] = None, ttl: Optional[float] = None,
                            evictable: bool = False, request_id: str = "", timeout: Optional[float] = None) -> Buffer:
        """Makes a buffer of what the array holds once the GPU's work that writes it is done, by a copy within the GPU: the array may be written
        to again when this returns. `upload(array)` is the same, for all streams.

        Args:
            array: of `allocate_device_array` or `import_buffer`, of this server.
            stream: the handle of the CUDA stream whose work writes the array (`torch.cuda.current_stream().cuda_stream`,
                `cupy.cuda.get_current_stream().ptr`; 0 and 1: the default stream); without, the work of all streams is waited for.
            ttl, evictable, request_id, timeout: as `upload` has them.

        A client of `connect(recreate=True)` cannot make such a buffer again: what needs it when its server has restarted raises `NotFound`.

        Raises:
            FailedPrecondition: the array lies on another GPU than the session.
            NotFound: the array is not this server's.
        """
        client = cast("ClientBase", self)
        transfers.wait_for_writers(array, stream)
        if array.memory is None:
            return client.upload(array.numpy(), ttl=ttl, evictable=evictable, request_id=request_id, timeout=timeout)
        options = {"ttl": ttl, "evictable": evictable, "request_id": request_id}
        written = transfers.write(client, array, options, timeout)
        return Buffer(client.whole, written.message, written.session)
