"""A CUDA driver whose device's memory is the host's, and a server that shares some of it: what cumulus.device_sharing does, without a GPU."""

import contextlib
import ctypes
import mmap
import os
import socket
import struct
import threading

import numpy as np
from cumulus.device_sharing import driver
from cumulus.shared_memory import region
from cumulus.v1 import array_pb2, server_pb2, sessions_pb2, shared_memory_pb2
from fake_server import buffer
from fake_sharer import FakeSharer

MIB = 1 << 20
GRANULE = 2 * MIB

_C = ctypes.CDLL(None)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_C.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_NOTHING, _FIXED = 0, 0x10


class FakeCuda:
    """What `said` has are the calls that wait or copy, in their order, and `mapped` the addresses that are mapped. `fails` names functions
    that do."""

    def __init__(self, device=0):
        self.device = device  # that the server's memory is on
        self.pointers_on = device
        self.said = []
        self.mapped = {}
        self.reserved = {}
        self.handles = set()
        self.contexts = []
        self.fails = set()
        for name in driver._ARGUMENTS:
            setattr(self, name, self._function(name))

    def _function(self, name):
        body = getattr(self, "_" + name)

        def function(*arguments):
            if name in self.fails:
                return 1
            body(*arguments)
            return 0

        return function

    def _cuInit(self, flags):
        pass

    def _cuGetErrorString(self, result, words):
        words._obj.value = b"words of the driver"

    def _cuDevicePrimaryCtxRetain(self, context, device):
        context._obj.value = 100 + device

    def _cuCtxPushCurrent_v2(self, context):
        self.contexts.append(context)

    def _cuCtxPopCurrent_v2(self, context):
        self.contexts.pop()

    def _cuCtxSynchronize(self):
        assert self.contexts
        self.said.append("wait for all")

    def _cuStreamSynchronize(self, stream):
        self.said.append(f"wait for {stream}")

    def _cuMemImportFromShareableHandle(self, handle, descriptor, kind):
        assert kind == 1
        handle._obj.value = os.dup(descriptor)
        self.handles.add(handle._obj.value)

    def _cuMemGetAllocationPropertiesFromHandle(self, properties, handle):
        properties._obj.location.id = self.device

    def _cuMemRelease(self, handle):
        self.handles.remove(handle)
        os.close(handle)

    def _cuMemAddressReserve(self, address, nbytes, alignment, wanted, flags):
        address._obj.value = _C.mmap(None, nbytes, _NOTHING, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        self.reserved[address._obj.value] = nbytes

    def _cuMemAddressFree(self, address, nbytes):
        assert self.reserved.pop(address) == nbytes
        _C.munmap(address, nbytes)

    def _cuMemMap(self, address, nbytes, offset, handle, flags):
        _C.mmap(address, nbytes, _NOTHING, mmap.MAP_SHARED | _FIXED, handle, 0)
        self.mapped[address] = 0

    def _cuMemUnmap(self, address, nbytes):
        self.said.append("unmap")
        del self.mapped[address]
        _C.mmap(address, nbytes, _NOTHING, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED, -1, 0)

    def _cuMemSetAccess(self, address, nbytes, rights, count):
        assert rights._obj.location.id == self.device and count == 1
        self.mapped[address] = rights._obj.flags
        _C.mprotect(address, nbytes, mmap.PROT_READ | (mmap.PROT_WRITE if rights._obj.flags == driver.READ_AND_WRITE else 0))

    def _cuMemcpyDtoDAsync_v2(self, destination, source, nbytes, stream):
        self.said.append(f"copy on {stream}")
        ctypes.memmove(destination, source, nbytes)

    def _cuMemcpyDtoH_v2(self, destination, source, nbytes):
        ctypes.memmove(destination, source, nbytes)

    def _cuPointerGetAttribute(self, value, attribute, address):
        value._obj.value = self.pointers_on if attribute == 9 else 100 + self.pointers_on

    def is_clean(self):
        """Nothing is left of what was mapped, and no context current."""
        return not (self.mapped or self.reserved or self.handles or self.contexts)


class DeviceSharer(FakeSharer):
    """Shares "GPU memory" of memfds, reads `there` into regions, and takes arrays from them."""

    def __init__(self, there=None, device="cuda0", limit=64 * MIB, refusal=""):
        self.there = np.zeros(0, np.uint8) if there is None else there
        self.refusal = refusal
        self.wants = []
        self.written = []  # the specs and bytes of arrays that came
        self.hung_up = threading.Event()
        self.files = {}
        super().__init__(slots=0)
        name = f"@cumulus-test-{os.getpid()}-{id(self)}"
        self.handlers["GetCapabilities"] = lambda request, context: server_pb2.Capabilities(
            max_inline_bytes=1 << 20, shared_memory_socket=name, max_shared_device_bytes=limit).SerializeToString()
        self.handlers["CreateSession"] = lambda request, context: sessions_pb2.Session(
            name="sessions/s", device=device).SerializeToString()
        self.handlers["ReadShared"] = self.read
        self.handlers["WriteShared"] = self.write

    def _share(self, connection):
        with contextlib.suppress(OSError), connection:
            want = region.Message(*struct.unpack("=IIQQ", connection.recv(24)))
            self.wants.append(want)
            if self.refusal or want.kind != region.DEVICE:
                connection.send(struct.pack("=IIQQ", region.REFUSED, 0, 0, 0) + self.refusal.encode())
                return
            name = f"region {len(self.wants)}"
            nbytes = -(-want.nbytes // GRANULE) * GRANULE
            self.files[name] = file = os.memfd_create("gpu", os.MFD_CLOEXEC)
            os.truncate(file, nbytes)
            socket.send_fds(connection, [struct.pack("=IIQQ", region.REGION, 0, 0, nbytes) + name.encode()], [file])
            while connection.recv(24):
                pass
        self.hung_up.set()

    def read(self, request, context):
        wanted = shared_memory_pb2.ReadSharedRequest.FromString(request)
        os.pwrite(self.files[wanted.region], self.there.tobytes(), 0)
        return b""

    def write(self, request, context):
        wanted = shared_memory_pb2.WriteSharedRequest.FromString(request)
        array = np.empty(tuple(wanted.spec.spec.shape), array_pb2.ElementType.Name(wanted.spec.spec.element_type).lower())
        array[...] = np.frombuffer(os.pread(self.files[wanted.region], array.nbytes, 0), array.dtype).reshape(array.shape)
        self.written.append(array)
        return buffer(f"sessions/s/buffers/{len(self.written)}", array)

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        for file in self.files.values():
            os.close(file)
