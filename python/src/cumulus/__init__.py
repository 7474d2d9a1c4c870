"""Client of Cumulus, the GPU image-processing service.

```python
import cumulus

with cumulus.connect() as c:  # CUMULUS_SERVER, or a private daemon
    small = c.blur(image, sigma=8, boundary=("repeat", "clamp"))
    table = c.sampling_table(sky)
    distances, indices = c.kd_tree(points).query(queries, k=8)
    runs = c.run_length(mask)
    resident = c.upload(big)
    sums = c.blur(resident, 8).summed_area_table().numpy()
```

Numpy arrays in, numpy arrays out; of a `Buffer`, which `Client.upload` makes, results stay on the server, and operations on
them transfer nothing. `cumulus.aio` has the same for asyncio. Failures raise `Error`, with the field that is wrong and the
cure. The operations of `Client` are described in `cumulus.image_operations` and `cumulus.structure_operations`, GPU memory that it shares in
`cumulus.device_sharing.operations`.
"""

from __future__ import annotations

import os
from typing import Union

from . import _grpc  # noqa: F401  before anything else imports grpc
from .brackets import Brackets
from .buffer import Buffer, EncodedImage
from .cancellation import Cancellation
from .client import Client, connect
from .device_sharing.array import DeviceArray
from .errors import (Cancelled, DataLoss, DeadlineExceeded, Error, FailedPrecondition, Internal, InvalidArgument,
                     NotFound, OutOfRange, PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable,
                     Unimplemented)
from .filters import BsplinePrefilter, Exponential, Feedback, Gaussian
from .kd_tree import KdTree, NeighborLists
from .operation import CallOptions, Timings
from .pipeline import Pipeline, StepArray
from .run_length import RunLengths
from .sampling_table import Samples, SamplingTable
from .summed_area_table import SummedAreaTable

__version__ = "0.1.0"


def load(path: Union[str, "os.PathLike[str]"]) -> Union[SamplingTable, RunLengths, KdTree]:
    """Reads a .cst, .rle or tree's .npz file, told apart by its first bytes, without a server."""
    from . import container
    from .sampling import table_format

    with open(path, "rb") as file:
        magic = file.read(8)
        if magic == table_format.MAGIC:
            return SamplingTable.from_bytes(magic + file.read())
        if magic == container.MAGIC:
            return RunLengths.from_bytes(magic + file.read())
    if magic[:4] == b"PK\x03\x04":
        return KdTree.from_file(path)
    raise InvalidArgument(f"{path}: it is no .cst, .rle or .npz file of Cumulus")


__all__ = [
    "Brackets", "BsplinePrefilter", "Buffer", "CallOptions", "Cancellation", "Cancelled", "Client", "DataLoss",
    "DeadlineExceeded", "DeviceArray", "EncodedImage", "Error", "Exponential", "FailedPrecondition", "Feedback", "Gaussian", "Internal",
    "InvalidArgument", "KdTree", "NeighborLists", "NotFound", "OutOfRange", "PermissionDenied", "Pipeline", "ResourceExhausted", "RunLengths",
    "Samples", "SamplingTable", "StepArray", "SummedAreaTable", "Timings", "Unauthenticated", "Unavailable", "Unimplemented", "connect",
    "load",
]
