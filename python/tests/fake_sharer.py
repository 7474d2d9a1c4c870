"""A server in this process that shares memory, and says on a region's connection what a test wants."""

import contextlib
import fcntl
import os
import socket
import struct
import threading

import numpy as np
from cumulus.shared_memory import memory, region
from cumulus.v1 import server_pb2, shared_memory_pb2
from fake_server import FakeServer, buffer

MIB = 1 << 20


class FakeSharer(FakeServer):
    """Shares memory, too; `say(connection, region)` has the rest of a region's connection."""

    def __init__(self, seals=None, size=16 * MIB, slots=16):
        super().__init__()
        self.seals = 0x1 | 0x2 | 0x4 if seals is None else seals  # F_SEAL_SEAL, SHRINK, GROW
        self.size = size
        self.slots = slots
        self.say = lambda connection: None
        self.said = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(f"\0cumulus-test-{os.getpid()}-{id(self)}")
        self._listener.listen()
        self.handlers["GetCapabilities"] = lambda request, context: server_pb2.Capabilities(
            max_inline_bytes=1 << 20, shared_memory_socket=f"@cumulus-test-{os.getpid()}-{id(self)}").SerializeToString()
        self.handlers["ReadShared"] = self.handlers["WriteShared"] = self.wait
        threading.Thread(target=self._serve, daemon=True).start()

    def wait(self, request, context):
        self.said.wait(10)
        return shared_memory_pb2.ReadSharedResponse().SerializeToString()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._share, args=(connection,), daemon=True).start()

    def _share(self, connection):
        with contextlib.suppress(OSError), connection:  # of a client that has hung up
            connection.recv(24)
            file = os.memfd_create("cumulus-shared", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
            try:
                os.truncate(file, self.size)
                fcntl.fcntl(file, fcntl.F_ADD_SEALS, self.seals)
                socket.send_fds(connection, [struct.pack("=IIQQ", region.REGION, self.slots, 0, self.size if self.slots == 0 else 16 * MIB) + b"an id"], [file])
            finally:
                os.close(file)
            self.say(connection)
            self.said.set()
            # To the client's end of it: to close with messages unread resets the connection, and takes back what was said.
            while connection.recv(24):
                pass

    def __exit__(self, *arguments):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        super().__exit__(*arguments)


def resident(server, c):
    """A buffer of `server`, of 2 MiB, that went up over a stream."""
    array = np.zeros(2 * MIB, np.uint8)
    server.handlers["WriteBuffer"] = lambda requests, _: (list(requests), buffer("sessions/s/buffers/b", array))[1]
    keep, c.connection.shared_memory = c.connection.shared_memory, memory.SharedMemory(False)
    try:
        return c.upload(array)
    finally:
        c.connection.shared_memory = keep
