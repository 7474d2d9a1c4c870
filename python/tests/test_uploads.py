"""What an upload sends: against a server that a test chooses."""

import concurrent.futures
import threading
import time

import cumulus
import google_crc32c
import grpc
import numpy as np
import pytest
from fake_server import CHUNK, DATA, abort, buffer, connect, receive, server  # noqa: F401


def test_chunks_of_an_upload(server):
    got = []

    def write(requests, _):
        got.extend(receive(requests))
        return buffer("sessions/s/buffers/b", DATA)

    server.handlers["WriteBuffer"] = write
    seen = []
    with connect(server, progress=lambda done, total: seen.append((done, total))) as c:
        c.upload(DATA)
    assert [message.write_offset for message in got] == [0, CHUNK, 2 * CHUNK, 3 * CHUNK]
    assert [message.finish_write for message in got] == [False, False, False, True]
    assert [message.HasField("spec") for message in got] == [True, False, False, False]
    assert b"".join(message.data for message in got) == DATA.tobytes()
    assert all(message.crc32c == google_crc32c.value(message.data) for message in got)
    assert seen[-1] == (DATA.nbytes, DATA.nbytes) and len(seen) == 4


@pytest.mark.parametrize("size, messages", [(CHUNK, 1), (CHUNK + 4, 2)])
def test_an_upload_of_a_chunk_is_one_message(server, size, messages):
    got = []
    array = DATA[: size // 4]

    def write(requests, _):
        got.extend(receive(requests))
        return buffer("sessions/s/buffers/b", array)

    server.handlers["WriteBuffer"] = write
    seen = []
    with connect(server, progress=lambda done, total: seen.append((done, total))) as c:
        c.upload(array)
    assert len(got) == messages and got[-1].finish_write and b"".join(message.data for message in got) == array.tobytes()
    assert seen[-1] == (size, size)


def test_an_upload_stops_where_the_server_refuses_it(server):
    server.handlers["WriteBuffer"] = lambda requests, context: abort(context, grpc.StatusCode.INVALID_ARGUMENT, "WRONG")
    seen = []
    with connect(server, progress=lambda done, total: (time.sleep(0.1), seen.append(done))) as c:
        with pytest.raises(cumulus.InvalidArgument, match="refused: WRONG"):
            c.upload(np.zeros(100 * CHUNK, np.uint8))
    assert len(seen) < 50


def test_an_empty_array_is_one_message(server):
    got = []

    def write(requests, _):
        got.extend(receive(requests))
        return buffer("sessions/s/buffers/b", np.empty((0, 3), np.float32))

    server.handlers["WriteBuffer"] = write
    with connect(server) as c:
        assert c.upload(np.empty((0, 3), np.float32)).shape == (0, 3)
    assert len(got) == 1 and got[0].finish_write and not got[0].HasField("crc32c")


def test_transfers_of_several_threads_have_connections_of_their_own(server):
    peers = []
    together = threading.Barrier(3)

    def write(requests, context):
        messages = receive(requests)
        if len(messages) > 1:
            peers.append(context.peer())
            together.wait(10)
        return buffer("sessions/s/buffers/b", DATA)

    server.handlers["WriteBuffer"] = write
    with connect(server, connections=3) as c, concurrent.futures.ThreadPoolExecutor(3) as threads:
        list(threads.map(c.upload, [DATA] * 3))
    assert len(set(peers)) == 3
