"""A server whose every answer a test chooses, for what a real one does rarely."""

import concurrent.futures
import threading

import cumulus
import grpc
import numpy as np
import pytest
from google.protobuf import duration_pb2

from cumulus import wire
from cumulus.v1 import array_pb2, server_pb2, sessions_pb2, transfer_pb2


def details(code, reason, retry_delay=None):
    """A google.rpc.Status with ErrorInfo and, where wanted, RetryInfo."""
    def field(number, data):
        return wire.varint(number << 3 | 2) + wire.varint(len(data)) + data

    def packed(name, data):
        return field(3, field(1, f"type.googleapis.com/google.rpc.{name}".encode()) + field(2, data))

    status = b"\x08" + wire.varint(code) + packed("ErrorInfo", field(1, reason.encode()))
    if retry_delay is not None:
        delay = duration_pb2.Duration()
        delay.FromNanoseconds(int(retry_delay * 1e9))
        status += packed("RetryInfo", field(1, delay.SerializeToString()))
    return status


def abort(context, code, reason, retry_delay=None):
    context.set_trailing_metadata((("grpc-status-details-bin", details(code.value[0], reason, retry_delay)),))
    context.abort(code, f"refused: {reason}")


class FakeServer(grpc.GenericRpcHandler):
    """Answers capabilities and sessions; `handlers` has functions of (request bytes or iterator, context) by method."""

    def __init__(self, ttl=600):
        self.handlers = {}
        self.calls = []
        self.ttl = ttl
        self._lock = threading.Lock()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), (self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stop(None).wait()

    def count(self, method):
        with self._lock:
            return self.calls.count(method)

    def service(self, details_):
        method = details_.method.rsplit("/", 1)[-1]
        with self._lock:
            self.calls.append(method)
        handler = self.handlers.get(method) or getattr(self, "_" + method, None)
        if handler is None:
            return None
        if method == "WriteBuffer":
            return grpc.stream_unary_rpc_method_handler(handler)
        if method == "ReadBuffer":
            return grpc.unary_stream_rpc_method_handler(handler)
        return grpc.unary_unary_rpc_method_handler(handler)

    def _GetCapabilities(self, _, context):
        return server_pb2.Capabilities(max_inline_bytes=1 << 20, max_encoded_bytes=3 << 20).SerializeToString()

    def _CreateSession(self, request, context):
        name = "sessions/" + sessions_pb2.CreateSessionRequest.FromString(request).session_id
        return sessions_pb2.Session(name=name, device="cpu").SerializeToString()

    def _GetSession(self, request, context):
        return b""

    def _DeleteSession(self, request, context):
        return b""

    def _BatchDeleteBuffers(self, request, context):
        return b""


def buffer(name, array):
    message = array_pb2.Buffer(name=name, size_bytes=array.nbytes)
    message.spec.element_type = array_pb2.ElementType.Value(array.dtype.name.upper())
    message.spec.shape.extend(array.shape)
    return message.SerializeToString()


CHUNK = 1 << 20
DATA = np.arange(3 * CHUNK // 4 + 7, dtype=np.uint32)


@pytest.fixture
def server():
    with FakeServer() as running:
        yield running


def connect(server, **options):
    return cumulus.connect(server.address, **options)


def receive(requests):
    return [transfer_pb2.WriteBufferRequest.FromString(message) for message in requests]


def resident(server, c):
    server.handlers["WriteBuffer"] = lambda requests, _: (list(requests), buffer("sessions/s/buffers/b", DATA))[1]
    return c.upload(DATA)


def hanging(server, method):
    ended = threading.Event()

    def hang(request, context):
        context.add_callback(ended.set)
        ended.wait(10)
        return b""

    server.handlers[method] = hang
    return ended
