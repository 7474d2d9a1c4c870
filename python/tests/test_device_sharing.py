"""GPU memory that client and server share, over a driver and a server of the tests' own; test_device_sharing_gpu.py has them on a GPU."""

import ctypes
import gc
import threading

import cumulus
import grpc
import numpy as np
import pytest
from cumulus.device_sharing import dlpack, driver, foreign, transfers
from cumulus.shared_memory import region
from cumulus.v1 import array_pb2, recursive_filter_pb2
from fake_cuda import GRANULE, MIB, DeviceSharer, FakeCuda
from fake_server import abort, buffer
from local_daemon import LocalDaemon

RANDOM = np.random.default_rng(11)
IMAGE = RANDOM.random((600, 700), dtype=np.float32)  # 1.6 MiB


@pytest.fixture
def cuda(monkeypatch):
    """The driver that the client finds; at the test's end nothing may be left of what it mapped."""
    library = FakeCuda()
    monkeypatch.setattr(driver, "load", lambda: driver.Driver(library))
    monkeypatch.setattr(transfers, "_MIN_BYTES", MIB)
    yield library
    gc.collect()
    assert library.is_clean()


@pytest.fixture
def server():
    with DeviceSharer(IMAGE) as running:
        yield running


@pytest.fixture
def c(server):
    with cumulus.connect(server.address) as client:
        yield client


def resident(c):
    """A buffer of the server's `there`."""
    message = array_pb2.Buffer.FromString(buffer("sessions/s/buffers/b", IMAGE))
    return cumulus.Buffer(c, message, c.session)


def content(array):
    """What is in the memory that an array's interface names."""
    data = ctypes.string_at(array.__cuda_array_interface__["data"][0], array.nbytes)
    return np.frombuffer(data, array.dtype).reshape(array.shape)


class OnAGpu:
    """An array of another library, whose memory is `array`'s, by either protocol, or by both."""

    def __init__(self, array, interface=None, by_dlpack=False):
        self.array = array
        self.streams = []
        self.copies = 0
        if interface is not None:
            self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3, **interface}
        if by_dlpack:
            self.__dlpack_device__ = lambda: (2, 0)
            self.__dlpack__ = self.capsule

    def capsule(self, stream=None, **_):
        self.streams.append(stream)
        place = dlpack.Content(self.array.__array_interface__["data"][0], 0, self.array.shape, self.array.dtype)
        return dlpack.capsule_of(place, self.array, flags=0, versioned=False)

    def numpy(self):
        self.copies += 1
        return self.array.copy()


def test_an_import_has_what_is_on_the_server(cuda, server, c):
    array = c.import_buffer(resident(c))
    assert np.array_equal(content(array), IMAGE) and np.array_equal(array.numpy(), IMAGE)
    assert (array.shape, array.dtype, array.device, array.writable) == (IMAGE.shape, IMAGE.dtype, 0, False)
    interface = array.__cuda_array_interface__
    assert interface["data"] == (array.data, True) and interface["typestr"] == "<f4" and interface["version"] == 3
    assert server.wants[-1] == region.Message(region.DEVICE, 0, 0, IMAGE.nbytes)
    assert cuda.mapped == {array.data: driver.READ}
    (reserved, nbytes), = cuda.reserved.items()
    assert (array.data - reserved, nbytes) == (GRANULE, 3 * GRANULE)


def test_its_memory_stays_as_long_as_anybody_has_it(cuda, server, c):
    array = c.import_buffer(resident(c), writable=True)
    assert cuda.mapped == {array.data: driver.READ_AND_WRITE} and not array.__cuda_array_interface__["data"][1]
    capsule = array.__dlpack__()
    c.close()
    del array
    gc.collect()
    assert np.array_equal(np.ctypeslib.as_array(ctypes.cast(dlpack.content_of(capsule).address, ctypes.POINTER(ctypes.c_float)), (600, 700)),
                          IMAGE)
    assert not server.hung_up.wait(0.05)
    cuda.said.clear()
    del capsule
    assert cuda.said == ["wait for all", "unmap"] and cuda.is_clean()
    assert server.hung_up.wait(10)


def test_who_takes_a_tensor_gives_it_back(cuda, c):
    """As C programs do: by the name of the capsule, and the tensor's deleter."""
    capsule = c.import_buffer(resident(c), writable=True).__dlpack__()
    managed = ctypes.cast(dlpack._pointer(capsule, b"dltensor"), ctypes.POINTER(dlpack._Managed))
    rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
    rename(capsule, b"used_dltensor")
    del capsule
    gc.collect()
    assert cuda.mapped
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.contents.deleter)(ctypes.addressof(managed.contents))
    assert cuda.is_clean()


def flags_of(capsule):
    return ctypes.cast(dlpack._pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(dlpack._ManagedVersioned)).contents.flags


def test_what_dlpack_is_told(cuda, c):
    b = resident(c)
    array = c.import_buffer(b)
    with pytest.raises(BufferError, match="only to be read.*writable=True"):
        array.__dlpack__()
    with pytest.raises(BufferError, match="on GPU 0"):
        array.__dlpack__(max_version=(1, 1), dl_device=(2, 1))
    with pytest.raises(BufferError, match="copies none"):
        array.__dlpack__(max_version=(1, 1), copy=True)
    assert flags_of(array.__dlpack__(stream=7, max_version=(1, 1))) == dlpack.READ_ONLY
    place = dlpack.content_of(array.__dlpack__(max_version=(1, 1), dl_device=(2, 0)))
    assert place == dlpack.Content(array.data, 0, IMAGE.shape, IMAGE.dtype)
    assert array.__dlpack_device__() == (2, 0) and b.__dlpack_device__() == (1, 0)
    assert flags_of(b.__dlpack__(max_version=(1, 0), dl_device=(2, 0))) == dlpack.COPIED
    with pytest.raises(BufferError, match="as a copy alone"):
        b.__dlpack__(dl_device=(2, 0), copy=False)


@pytest.mark.parametrize("dtype", cumulus.arrays.DTYPES)
def test_every_type_comes_through_dlpack(dtype):
    array = np.zeros((3, 1, 5), dtype)
    capsule = OnAGpu(array, by_dlpack=True).capsule()
    assert dlpack.content_of(capsule) == dlpack.Content(array.__array_interface__["data"][0], 0, (3, 1, 5), array.dtype)


def test_an_array_of_ones_own_is_uploaded_as_it_lies(cuda, server, c):
    frame = c.allocate_device_array((600, 700), "float32")
    assert cuda.mapped == {frame.data: driver.READ_AND_WRITE} and not content(frame).any()
    ctypes.memmove(frame.data, IMAGE.ctypes.data, IMAGE.nbytes)
    cuda.said.clear()
    assert c.upload(frame, ttl=60).shape == (600, 700)
    c.upload_device_array(frame, stream=77)
    assert cuda.said == ["wait for all", "wait for 77"] and len(server.wants) == 1
    assert all(np.array_equal(written, IMAGE) for written in server.written) and len(server.written) == 2


@pytest.mark.parametrize("interface, said", [
    ({"stream": None}, ["copy on 1", "wait for 1"]), ({"stream": 7}, ["copy on 7", "wait for 7"]), ({}, ["wait for all", "copy on 1", "wait for 1"])])
def test_an_array_of_another_library_is_copied_behind_its_stream(cuda, server, c, interface, said):
    array = OnAGpu(IMAGE, interface)
    uploaded = c.upload(array)
    assert cuda.said == [*said, "wait for all", "unmap"]
    assert np.array_equal(server.written[0], IMAGE) and uploaded.dtype == np.float32
    assert array.copies == 0 and cuda.is_clean()


def test_by_dlpack_its_library_orders_the_work(cuda, server, c):
    array = OnAGpu(IMAGE > 0.5, by_dlpack=True)
    array.array = np.tile(array.array, (4, 1))  # 1.6 MiB
    assert c.upload(array).dtype == np.uint8
    assert array.streams == [driver.LEGACY_STREAM] and cuda.said[:2] == ["copy on 1", "wait for 1"]
    assert np.array_equal(server.written[0], array.array)


def by_the_host(server, c, array):
    """Uploads over a stream, and says what came."""
    came = []
    server.handlers["WriteBuffer"] = lambda requests, _: (came.append(list(requests)), buffer("sessions/s/buffers/b", IMAGE))[1]
    c.upload(array)
    return bool(came) and not server.written


def test_what_cannot_go_there_goes_by_the_host(cuda, server, c):
    assert by_the_host(server, c, OnAGpu(IMAGE[:, :600], {"stream": None}))  # not dense
    assert by_the_host(server, c, OnAGpu(IMAGE[:100].copy(), {"stream": None}))  # too small to be worth it
    assert {want.kind for want in server.wants} == {region.RING}
    server.refusal = "all of it is in use"
    assert by_the_host(server, c, OnAGpu(IMAGE, {"stream": None}))
    server.refusal = ""
    cuda.pointers_on = 1
    assert by_the_host(server, c, OnAGpu(IMAGE, {"stream": None})) and server.wants[-1].kind == region.RING


@pytest.mark.parametrize("reason", ["REGION_NOT_FOUND", "REGION_ELSEWHERE"])
def test_an_array_that_the_session_cannot_take_goes_by_the_host(cuda, server, c, reason):
    frame = c.allocate_device_array((600, 700), "float32")
    server.handlers["WriteShared"] = lambda _, context: abort(context, grpc.StatusCode.FAILED_PRECONDITION, reason)
    assert by_the_host(server, c, frame)
    with pytest.raises(cumulus.FailedPrecondition, match=reason):
        c.upload_device_array(frame)


def test_what_is_kept_for_another_server_goes_by_the_host(cuda, server):
    with cumulus.connect(server.address, recreate=True) as c:
        assert by_the_host(server, c, OnAGpu(IMAGE, {"stream": None}))


def test_operations_take_what_has_been_copied_there(cuda, server, c):
    asked = []

    def answer(request, _):
        asked.append(recursive_filter_pb2.ApplyRecursiveFilterRequest.FromString(request))
        result = array_pb2.OperationResult()
        named = result.arrays.add(name="image")
        named.buffer.ParseFromString(buffer("sessions/s/buffers/result", IMAGE))
        return result.SerializeToString()

    server.handlers["ApplyRecursiveFilter"] = answer
    server.handlers["ReadBuffer"] = lambda request, _: iter(())
    with pytest.raises(cumulus.DataLoss):  # the result is fetched, as of any array
        c.blur(OnAGpu(IMAGE, {"stream": None}), 3)
    assert asked[0].image.buffer == "sessions/s/buffers/1" and np.array_equal(server.written[0], IMAGE)
    with pytest.raises(cumulus.InvalidArgument, match="has elements of int64"):
        c.blur(OnAGpu(np.zeros((600, 700), np.int64), {"stream": None}), 3)
    p = c.pipeline()
    step = p.blur(OnAGpu(IMAGE, {"stream": None}), 3)
    assert len(server.written) == 2
    with pytest.raises(cumulus.FailedPrecondition, match="no array before its pipeline runs"):
        step.__dlpack__(dl_device=(2, 0))


def test_what_is_no_dense_array_of_numpys_is_left_to_its_library():
    class Strange:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, stream=None):
            raise BufferError("it takes gradients")

    assert foreign.content_of(Strange()) is None
    assert foreign.content_of(IMAGE) is None
    assert foreign.content_of(OnAGpu(IMAGE, {"mask": IMAGE})) is None
    assert foreign.content_of(OnAGpu(IMAGE.T, {})) is None


@pytest.mark.parametrize("call", [lambda c: c.import_buffer(resident(c)), lambda c: c.allocate_device_array(5, "uint8")])
def test_what_is_missing_is_said(cuda, server, monkeypatch, call):
    with cumulus.connect(server.address, shared_memory=False) as c:
        with pytest.raises(cumulus.FailedPrecondition, match="shares no memory with its server.*--shared-memory-socket"):
            call(c)
    server.refusal = "shared_memory.max_device_bytes (--shared-device-memory) is 0"
    with cumulus.connect(server.address) as c:
        with pytest.raises(cumulus.FailedPrecondition, match="GPU memory cannot be shared.*--shared-device-memory"):
            call(c)
        server.refusal = ""
        cuda.fails = {"cuMemImportFromShareableHandle"}
        with pytest.raises(cumulus.Internal, match="words of the driver.*CUDA_VISIBLE_DEVICES"):
            call(c)
        cuda.fails = {"cuMemSetAccess"}
        with pytest.raises(cumulus.Internal, match="cuMemSetAccess: words of the driver"):
            call(c)
        assert cuda.is_clean()
        monkeypatch.setattr(driver, "load", lambda: None)
        with pytest.raises(cumulus.FailedPrecondition, match="no CUDA driver.*fetch the array"):
            call(c)


def test_wrong_arguments(cuda, c):
    with pytest.raises(cumulus.InvalidArgument, match="buffer: is none of this client"):
        c.import_buffer(IMAGE)
    for shape in ((-1,), (1 << 62, 8)):
        with pytest.raises(cumulus.InvalidArgument, match="shape"):
            c.allocate_device_array(shape, "float64")
    with pytest.raises(cumulus.InvalidArgument, match="dtype"):
        c.allocate_device_array(3, "complex64")


def test_arrays_without_elements(cuda, server, c):
    empty = c.allocate_device_array((0, 5), "float32")
    assert empty.data == 0 and empty.numpy().shape == (0, 5) and not server.wants
    assert dlpack.content_of(empty.__dlpack__()).address == 0
    server.handlers["WriteBuffer"] = lambda requests, _: (list(requests), buffer("sessions/s/buffers/b", np.zeros((0, 5), np.float32)))[1]
    assert c.upload_device_array(empty).shape == (0, 5)


def test_from_several_threads_at_once(cuda, c):
    b = resident(c)
    right = []
    threads = [threading.Thread(target=lambda: right.append(np.array_equal(c.import_buffer(b).numpy(), IMAGE))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 8


def refusal(client):
    with pytest.raises(region.NoRegion) as refused:
        region.open_device_region(client.capabilities.shared_memory_socket, region.Message(region.DEVICE, 0, 0, MIB))
    return str(refused.value)


def test_a_server_without_a_gpu_says_so(client, tmp_path):
    assert client.capabilities.max_shared_device_bytes == 0
    assert "(--shared-device-memory) is 0" in refusal(client)
    with LocalDaemon(tmp_path, "--shared-device-memory", "64M") as daemon, cumulus.connect(daemon.address) as other:
        assert "no device cuda0" in refusal(other) and "--backend cuda" in refusal(other)
    expected = "the session is on the device cpu" if driver.load() is not None else "no CUDA driver"
    for call in (lambda: client.import_buffer(client.upload(IMAGE)), lambda: client.allocate_device_array(5, "uint8")):
        with pytest.raises(cumulus.FailedPrecondition, match=expected):
            call()
