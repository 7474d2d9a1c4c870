"""An array that stays on the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Tuple, Union

import numpy as np

from . import transfer
from .arrays import Extents, NDArray, bytes_of, dtype_of
from .errors import wrong
from .recovery import Resident
from .session import Session

if TYPE_CHECKING:
    from .brackets import Brackets
    from .client import Client
    from .kd_tree import KdTree
    from .run_length import RunLengths
    from .sampling_table import SamplingTable
    from .summed_area_table import SummedAreaTable


class Buffer(Extents):
    """An array on the server, immutable. Operations on it run there, and their results stay there.

    Made by `Client.upload` and by operations on other buffers. The server's memory is released with the last
    reference to it. It is lost, and calls that name it raise `NotFound`, once its session is gone, unless the client was
    made by `connect(recreate=True)`.

    Attributes:
        shape: extents, outermost first.
        dtype: of its elements.
    """

    def __init__(self, client: "Client", message: Any, session: Session) -> None:
        self.client = client
        self.resident = Resident(client, session, message.name, message.size_bytes)
        self.shape: Tuple[int, ...] = tuple(message.spec.shape)
        self.dtype: "np.dtype[Any]" = dtype_of(message.spec.element_type)

    def __del__(self) -> None:
        self.resident.release()

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} is memory of the server's, which no pickle or copy has; take what its numpy() answers, or a table's local()")

    @property
    def name(self) -> str:
        """sessions/{session}/buffers/{buffer}, on the server now."""
        self.resident.check_kept()
        return self.resident.current_name()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<cumulus.Buffer {self.dtype.name} {list(self.shape)} on {self.client.address}>"

    def numpy(self, out: Optional[NDArray] = None, *, timeout: Optional[float] = None) -> NDArray:
        """Fetches the array: a new one, or into `out`, contiguous, of the same dtype and shape."""
        if out is None:
            out = np.empty(self.shape, self.dtype)
        elif out.dtype != self.dtype or out.shape != self.shape or not out.flags.c_contiguous or not out.flags.writeable:
            raise wrong("out", f"is {out.dtype} {list(out.shape)}",
                        f"a contiguous, writeable array of {self.dtype.name} {list(self.shape)}")
        with self.client.progress_of(self.nbytes, "download") as progress:
            self.client.recovering(
                lambda left: transfer.download(self.client.connection, self.name, bytes_of(out), timeout=left,
                                               progress=progress),
                timeout, transfer.allowance(self.nbytes))
        return out

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> NDArray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """Fetches the array into host memory, for torch.from_dlpack(buffer) and the like, which take it without another copy. Where a GPU is asked
        for, as by torch.from_dlpack(buffer, device="cuda"), it is a copy there that nobody else has, as `Client.import_buffer` makes it."""
        wanted = options.get("dl_device")
        if wanted is not None and wanted[0] == 2:  # kDLCUDA
            if options.get("copy") is False:
                raise BufferError("what is on the server is here as a copy alone")
            array = self.client.import_buffer(self, writable=True)
            return array.to_dlpack(options.get("max_version"), wanted, copied=True, copy=True)
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 1, 0  # kDLCPU: there the array is once it has been fetched, unless another device is asked for

    def delete(self) -> None:
        """Releases the server's memory now rather than with the last reference."""
        self.resident.release()

    # The operations of the client, on this array.

    def blur(self, sigma: Union[float, Tuple[float, float]], **options: Any) -> "Buffer":
        """`Client.blur` of this image."""
        return self.client.blur(self, sigma, **options)

    def filter(self, **options: Any) -> "Buffer":
        """`Client.filter` of this image."""
        return self.client.filter(self, **options)

    def bspline_prefilter(self, degree: int = 3, **options: Any) -> "Buffer":
        """`Client.bspline_prefilter` of this image."""
        return self.client.bspline_prefilter(self, degree, **options)

    def box_filter(self, radius: Union[int, Tuple[int, int], NDArray, "Buffer"], **options: Any) -> "Buffer":
        """`Client.box_filter` of this image."""
        return self.client.box_filter(self, radius, **options)

    def summed_area_table(self, **options: Any) -> "SummedAreaTable":
        """`Client.summed_area_table` of this image."""
        return self.client.summed_area_table(self, **options)

    def sampling_table(self, **options: Any) -> "SamplingTable":
        """`Client.sampling_table` of these weights."""
        return self.client.sampling_table(self, **options)

    def kd_tree(self, **options: Any) -> "KdTree":
        """`Client.kd_tree` of these points."""
        return self.client.kd_tree(self, **options)

    def run_length(self, **options: Any) -> "RunLengths":
        """`Client.run_length` of this array."""
        return self.client.run_length(self, **options)

    def match_brackets(self, **options: Any) -> "Brackets":
        """`Client.match_brackets` of this text."""
        return self.client.match_brackets(self, **options)


class ForOneCall:
    """An array that has been uploaded for one call, whose results are those of an array."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.shape = buffer.shape
        self.dtype = buffer.dtype
        self.ndim = buffer.ndim
        self.size = buffer.size
        self.nbytes = buffer.nbytes


class EncodedImage:
    """An image file, OpenEXR, Radiance HDR, PNG, TIFF or JPEG, that the server decodes.

    Args:
        file: its bytes, or its path (str or os.PathLike); of any size: what does not fit into a request
            (Capabilities.max_encoded_bytes, 3 MiB by default) is uploaded first.
        channels: names of those to keep, in this order ("R", "G", "B"); none: all.
        subimage: 0 is the first.
        server_path: instead of `file`, its path on the server, below the folder that that reads files from
            (Capabilities.file_root).
    """

    def __init__(self, file: Any = b"", *, channels: Tuple[str, ...] = (), subimage: int = 0,
                 server_path: str = "") -> None:
        self.path = ""
        self.server_path = server_path
        if isinstance(file, (bytes, bytearray, memoryview)):
            self.data = bytes(file)
        else:
            self.path = str(file)
            with open(file, "rb") as stream:
                self.data = stream.read()
        self.channels = tuple(channels)
        self.subimage = subimage
