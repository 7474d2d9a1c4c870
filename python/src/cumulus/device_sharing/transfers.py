"""Buffers in memory that client and server have both mapped on a GPU, and back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from ..errors import Error, FailedPrecondition
from ..shared_memory.region import DEVICE, Message, NoRegion, Region, open_device_region
from ..shared_memory.region_call import belongs_to_streams
from ..transfer import spec_of_write
from ..v1 import array_pb2, shared_memory_pb2
from . import driver as cuda
from .array import DeviceArray, Memory
from .foreign import ForeignContent, content_of
from .mapping import DeviceMapping

if TYPE_CHECKING:
    from ..client_base import ClientBase
    from ..session import Session

_MIN_BYTES = 4 << 20  # of an array of another library: below, its way by the host takes no longer than an allocation
_READ = "/cumulus.v1.SharedMemory/ReadShared"
_WRITE = "/cumulus.v1.SharedMemory/WriteShared"


OnGpu = Union[DeviceArray, ForeignContent]


class Written(NamedTuple):
    """A new buffer, and the session that has it."""

    message: array_pb2.Buffer
    session: "Session"


def not_here(why: str, cure: str) -> FailedPrecondition:
    return FailedPrecondition(f"GPU memory cannot be shared: {why}; {cure}", cure=cure)


def loaded_driver() -> cuda.Driver:
    driver = cuda.load()
    if driver is None:
        raise not_here("this machine has no CUDA driver (libcuda.so.1) that works", "without one, fetch the array (Buffer.numpy)")
    return driver


def allocate(client: "ClientBase", shape: Tuple[int, ...], dtype: "np.dtype[Any]", *, writable: bool) -> DeviceArray:
    """Memory on the session's GPU, of zeros. FailedPrecondition where there is none to be had."""
    driver = loaded_driver()
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes == 0:
        return DeviceArray(shape, dtype, None, writable=writable)
    region = _open(client, nbytes)
    try:
        mapping = DeviceMapping(driver, region.descriptor, region.nbytes, writable=writable)
    except BaseException:
        region.close()
        raise
    return DeviceArray(shape, dtype, Memory(driver, region, mapping), writable=writable)


def _open(client: "ClientBase", nbytes: int) -> Region:
    device = client.session.device
    if not (device.startswith("cuda") and device[4:].isdecimal()):
        raise not_here(f"the session is on the device {device}", "one on a GPU has some (connect(device=\"cuda0\"))")
    socket = client.connection.shared_memory.socket
    if not socket:
        raise not_here("the connection shares no memory with its server",
                       "both have to be on one machine, the address be a Unix socket or a loopback address, and neither turn it off "
                       "(connect(shared_memory=True), --shared-memory-socket)")
    try:
        return open_device_region(socket, Message(DEVICE, int(device[4:]), nbytes=nbytes))
    except NoRegion as refusal:
        raise FailedPrecondition(f"GPU memory cannot be shared: {refusal}", cure="what the text says") from None


def read(client: "ClientBase", name: str, array: DeviceArray, timeout: float) -> None:
    """Has the server copy a buffer of the array's size into it."""
    if array.memory is None:
        return
    request = shared_memory_pb2.ReadSharedRequest(name=name, region=array.memory.region.id)
    client.call(_READ, request, bytes, timeout)


def write(client: "ClientBase", array: DeviceArray, options: Mapping[str, Any], timeout: Optional[float]) -> Written:
    """Makes a buffer of a copy of what is in the array now; of one with elements."""
    assert array.memory is not None
    session = client.session
    spec = spec_of_write(session.name, array, options)
    request = shared_memory_pb2.WriteSharedRequest(spec=spec, region=array.memory.region.id)
    return Written(client.call(_WRITE, request, array_pb2.Buffer.FromString, timeout), session)


def wait_for_writers(array: DeviceArray, stream: Optional[int]) -> None:
    """Until the work that `stream` (None: any) has been given is done."""
    if array.memory is None:
        return
    driver = array.memory.driver
    with driver.on(array.device):
        if stream is None:
            driver.wait_for_all()
        else:
            driver.wait_for_stream(stream)


def find(client: "ClientBase", value: Any) -> Optional[OnGpu]:
    """An array on a GPU that may go to the server within it, as far as one can know before trying; None of all others."""
    if isinstance(value, np.ndarray) or client.capabilities.max_shared_device_bytes <= 0 or client.recreate:
        return None
    if isinstance(value, DeviceArray):
        return value if value.memory is not None else None
    if not (hasattr(value, "__dlpack_device__") or hasattr(value, "__cuda_array_interface__")):
        return None
    # Before anything is asked that waits.
    if (getattr(value, "nbytes", _MIN_BYTES) < _MIN_BYTES or not client.connection.shared_memory.socket
            or not client.session.device.startswith("cuda") or cuda.load() is None):
        return None
    content = content_of(value)
    return content if content is not None and content.nbytes >= _MIN_BYTES else None


def upload(client: "ClientBase", found: OnGpu, options: Mapping[str, Any], timeout: Optional[float]) -> Optional[Written]:
    """By copies within the GPU; None where it has to go by the host."""
    try:
        if isinstance(found, DeviceArray):
            wait_for_writers(found, None)
            return write(client, found, options, timeout)
        array = _copy_of(client, found)
        return None if array is None else write(client, array, options, timeout)
    except Error as error:
        if belongs_to_streams(error) or error.reason == "REGION_ELSEWHERE":
            return None
        raise


def _copy_of(client: "ClientBase", content: ForeignContent) -> Optional[DeviceArray]:
    """In memory that the server shares, complete; None where there is none, or the array is on another GPU."""
    try:
        array = allocate(client, content.shape, content.dtype, writable=True)
    except FailedPrecondition:  # nothing is left of what is shared, for instance
        return None
    if array.memory is None or not array.memory.driver.holds(array.device, content.address):
        return None
    driver = array.memory.driver
    with driver.on(array.device):
        if content.stream is None:
            driver.wait_for_all()
        stream = content.stream or cuda.LEGACY_STREAM
        driver.copy(array.data, content.address, array.nbytes, stream)  # behind whatever still writes the array
        driver.wait_for_stream(stream)
    return array
