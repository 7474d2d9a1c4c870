"""Transfers by the client library for C: the same bits, errors and ends as without it."""

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import threading
import time

import cumulus
import cumulus.aio
import google_crc32c
import grpc
import numpy as np
import pytest
from c_library import LIBRARY, MIB, connected, end_when_closed, random, told
from cumulus.c_library import binding
from cumulus.v1 import transfer_pb2
from fake_server import CHUNK, DATA, abort, buffer, server  # noqa: F401
from local_daemon import LocalDaemon

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} has not been built")
PATIENCE = 0.5  # seconds, until what is cancelled has ended


@pytest.fixture
def with_library(monkeypatch):
    monkeypatch.setenv("CUMULUS_C_LIBRARY", str(LIBRARY))


@pytest.fixture
def daemon(tmp_path):
    with LocalDaemon(tmp_path) as running:
        yield running


CASES = [((MIB + 1,), "uint8"), ((3 * MIB,), "uint8"), ((2 * MIB - 1,), "uint16"), ((1021, 1031), "uint32"), ((7, 100003), "uint64"),
         ((513, 769, 3), "float32"), ((1, 1, 1, 1, 1, 1, 1, 600001), "float16"), ((600001, 1), "int32"), ((300, 1, 1001), "int64"),
         ((33 * MIB + 11,), "uint8"), ((1200, 1300, 4), "float64")]


@pytest.mark.parametrize("shape, dtype", CASES)
@pytest.mark.parametrize("shared_memory", [True, False])
def test_the_same_bits_either_way(daemon, shape, dtype, shared_memory):
    array = random(shape, dtype)
    for up, down in ((True, False), (False, True), (True, True)):
        with connected(daemon.address, up, shared_memory=shared_memory) as (c, by_library):
            sent = c.upload(array)
            assert bool(by_library) == up
            assert (sent.shape, sent.dtype, sent.nbytes) == (array.shape, array.dtype, array.nbytes)
        with connected(daemon.address, down, shared_memory=shared_memory) as (c, by_library):
            sent = c.upload(array)
            fetched = np.full_like(array, 1)
            by_library.clear()
            sent.numpy(fetched)
            assert bool(by_library) == down
            assert fetched.tobytes() == array.tobytes()


@pytest.mark.parametrize("size", [1, 1000, 256 << 10, MIB - 1, MIB, MIB + 1])
@pytest.mark.parametrize("shared_memory", [True, False])
def test_small_arrays(daemon, size, shared_memory):
    array = random((size,), "uint8")
    with connected(daemon.address, True, shared_memory=shared_memory) as (c, _):
        assert np.array_equal(c.upload(array).numpy(), array)
    with connected(daemon.address, True, shared_memory=shared_memory) as (c, _):
        assert c.upload(np.empty((0, 3), np.float32)).numpy().shape == (0, 3)


def test_which_transport_is_taken(daemon):
    array = random((8 * MIB,), "uint8")
    for shared_memory, transport in ((True, "shared"), (False, "unix")):
        before = daemon.moved()
        with connected(daemon.address, True, shared_memory=shared_memory) as (c, by_library):
            c.upload(array).numpy()
            assert len(by_library) == 2
        after = daemon.moved()
        grown = {key: after[key] - before.get(key, 0) for key in after}
        assert {key[1] for key, bytes_ in grown.items() if bytes_ >= array.nbytes} == {transport}, grown


def test_options_reach_the_server(daemon):
    array = random((2 * MIB,), "uint8")
    with connected(daemon.address, True) as (c, by_library):
        gone = c.upload(array, ttl=0.2, evictable=True, request_id="frame 7")
        assert by_library
        time.sleep(1.5)
        with pytest.raises(cumulus.NotFound):
            gone.numpy()


FAULTS = {
    "the buffer is gone": lambda c, array: remove_and_fetch(c, array),
    "the request's id is too long": lambda c, array: c.upload(array, request_id="x" * 200),
    "a ttl of nothing": lambda c, array: c.upload(array, ttl=0),
    "no time": lambda c, array: c.upload(array, timeout=0),
    "the session is another's": lambda c, array: (setattr(c.session, "name", "sessions/0"), c.upload(array)),
}


@pytest.mark.parametrize("library", [True, False])
def test_a_transfer_of_no_time_does_not_begin(daemon, library):
    """Through shared memory it might be done in that."""
    with connected(daemon.address, library) as (c, by_library):
        array = c.allocate_shared((4 * MIB,), np.uint8)
        there = c.upload(random((4 * MIB,), "uint8"))
        by_library.clear()
        for call in (lambda: c.upload(array, timeout=0), lambda: c.upload(np.array(array), timeout=0), lambda: there.numpy(timeout=0)):
            with pytest.raises(cumulus.DeadlineExceeded, match="no time"):
                call()
        assert not by_library


def remove_and_fetch(c, array):
    sent = c.upload(array)
    sent.delete()
    for _ in range(500):
        sent.numpy(np.empty_like(array))
        time.sleep(0.01)


@pytest.mark.parametrize("what", sorted(FAULTS))
@pytest.mark.parametrize("shared_memory", [True, False])
def test_the_same_errors_either_way(daemon, what, shared_memory):
    raised = []
    for library in (False, True):
        with connected(daemon.address, library, shared_memory=shared_memory) as (c, _):
            c.upload(random((2 * MIB,), "uint8"))  # the session is there
            with pytest.raises(cumulus.Error) as error:
                FAULTS[what](c, random((4 * MIB,), "uint8"))
            raised.append(told(error.value))
    without, by_library = ([str(part) for part in each] for each in raised)
    if what in ("the buffer is gone", "the session is another's", "no time"):
        without[1] = by_library[1] = ""  # names of either session; gRPC's words, which have changed since
    assert without == by_library


@pytest.mark.parametrize("code, reason", [("RESOURCE_EXHAUSTED", "QUOTA"), ("UNAUTHENTICATED", "TOKEN_UNKNOWN"),
                                          ("PERMISSION_DENIED", "ROLE_FORBIDS"), ("INTERNAL", "DEVICE_FAULT")])
def test_what_a_server_says_is_said(server, code, reason):
    server.handlers["WriteBuffer"] = lambda requests, context: abort(context, grpc.StatusCode[code], reason)
    raised = []
    for library in (False, True):
        with connected(server.address, library) as (c, by_library), pytest.raises(cumulus.Error) as error:
            c.upload(np.zeros(4 * CHUNK, np.uint8))
        assert bool(by_library) == library
        raised.append(told(error.value))
    assert raised[0] == raised[1] and raised[0][5] == reason


def chunks_of(array):
    whole = array.tobytes()
    for offset in range(0, len(whole), CHUNK):
        part = whole[offset : offset + CHUNK]
        yield transfer_pb2.ReadBufferResponse(offset=offset, data=part, crc32c=google_crc32c.value(part))


def test_a_damaged_chunk_is_data_loss(server):
    server.handlers["WriteBuffer"] = lambda requests, _: (list(requests), buffer("sessions/s/buffers/b", DATA))[1]

    def read(request, _):
        for message in chunks_of(DATA):
            message.crc32c ^= 1
            yield message.SerializeToString()

    server.handlers["ReadBuffer"] = read
    for library in (False, True):
        with connected(server.address, library) as (c, by_library):
            sent = c.upload(DATA)
            with pytest.raises(cumulus.DataLoss, match="download it again") as error:
                sent.numpy()
            assert bool(by_library) == library and error.value.cure == "download it again"


def test_a_download_goes_on_where_the_connection_broke(server):
    server.handlers["WriteBuffer"] = lambda requests, _: (list(requests), buffer("sessions/s/buffers/b", DATA))[1]
    asked = []

    def read(request, context):
        asked.append(transfer_pb2.ReadBufferRequest.FromString(request).read_offset)
        for message in chunks_of(DATA):
            if message.offset < asked[-1]:
                continue
            if len(asked) == 1 and message.offset == 2 * CHUNK:
                abort(context, grpc.StatusCode.UNAVAILABLE, "DRAINING", 0.05)
            yield message.SerializeToString()

    server.handlers["ReadBuffer"] = read
    with connected(server.address, True) as (c, by_library):
        assert np.array_equal(c.upload(DATA).numpy(), DATA)
        assert len(by_library) == 2
    assert asked == [0, 2 * CHUNK]


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("shared_memory", [True, False])
def test_keyboard_interrupt(daemon, direction, shared_memory):
    array = random((64 * MIB,), "uint8")
    with connected(daemon.address, True, shared_memory=shared_memory) as (c, by_library):
        sent = c.upload(array)
        sent.numpy()
        by_library.clear()
        daemon.signal(signal.SIGSTOP)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        start = time.monotonic()
        try:
            with pytest.raises(KeyboardInterrupt):
                c.upload(array) if direction == "up" else sent.numpy()
            took = time.monotonic() - start
        finally:
            daemon.signal(signal.SIGCONT)
            timer.join()
        assert by_library and 0.25 < took < 0.3 + PATIENCE
        assert np.array_equal(sent.numpy(), array)


@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_task_that_is_cancelled(daemon, with_library, shared_memory):
    array = random((64 * MIB,), "uint8")

    async def run():
        async with cumulus.aio.connect(daemon.address, shared_memory=shared_memory) as c:
            sent = await c.upload(array)
            daemon.signal(signal.SIGSTOP)
            task = asyncio.create_task(c.upload(array))
            await asyncio.sleep(0.2)
            start = time.monotonic()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            took = time.monotonic() - start
            daemon.signal(signal.SIGCONT)
            assert np.array_equal(await sent.numpy(), array)
            return took

    assert asyncio.run(run()) < PATIENCE


def test_a_client_that_is_closed_ends_its_transfers(daemon):
    array = random((64 * MIB,), "uint8")
    with connected(daemon.address, True) as (c, _):
        c.upload(array)
        end_when_closed(daemon, c, lambda: c.upload(array), PATIENCE)


def test_progress(daemon):
    seen = []
    array = random((256 * MIB,), "uint8")
    note = lambda done, total: seen.append((done, total, threading.get_ident()))  # noqa: E731
    with connected(daemon.address, True, progress=note, shared_memory=False) as (c, by_library):
        sent = c.upload(array)
        sent.numpy()
        assert len(by_library) == 2
    assert {each[1:] for each in seen} == {(array.nbytes, threading.get_ident())}
    ends = [index for index, each in enumerate(seen) if each[0] == array.nbytes]
    assert len(ends) == 2 and ends[-1] == len(seen) - 1
    up = [each[0] for each in seen[: ends[0] + 1]]
    assert up == sorted(up)


def test_a_progress_that_raises_ends_the_transfer(daemon):
    def refuse(done, total):
        raise RuntimeError("enough")

    with connected(daemon.address, True, progress=refuse) as (c, _):
        with pytest.raises(RuntimeError, match="enough"):
            c.upload(random((64 * MIB,), "uint8"))


@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_restart_in_the_middle(tmp_path, shared_memory):
    array = random((64 * MIB,), "uint8")
    first = LocalDaemon(tmp_path)
    second = []

    def restart():
        first.end()
        second.append(LocalDaemon(tmp_path))

    try:
        with connected(first.address, True, recreate=True, shared_memory=shared_memory) as (c, by_library):
            sent = c.upload(array)
            timer = threading.Timer(0.02, restart)
            timer.start()
            for _ in range(3):
                assert np.array_equal(sent.numpy(), array)
                assert np.array_equal(c.upload(array).numpy(), array)
            timer.join()
            assert np.array_equal(sent.numpy(), array) and second
            assert c.connection.c_channel._opened() is not None
    finally:
        for each in (first, *second):
            each.end()


def test_a_lost_session_is_said(tmp_path):
    array = random((8 * MIB,), "uint8")
    with LocalDaemon(tmp_path) as first:
        with connected(first.address, True) as (c, _):
            sent = c.upload(array)
            first.end()
            with LocalDaemon(tmp_path):
                with pytest.raises(cumulus.NotFound) as error:
                    sent.numpy()
                assert error.value.reason == "INSTANCE_RESTARTED" and "upload again" in error.value.cure
                assert np.array_equal(c.upload(array).numpy(), array)


@pytest.mark.parametrize("shared_memory", [True, False])
def test_threads(daemon, shared_memory):
    arrays = [random((5 * MIB + each,), "uint8") for each in range(8)]
    with connected(daemon.address, True, shared_memory=shared_memory) as (c, by_library):
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            for _ in range(3):
                fetched = list(threads.map(lambda each: c.upload(each).numpy(), arrays))
                assert all(np.array_equal(ours, sent) for ours, sent in zip(fetched, arrays))
        assert len(by_library) == 48


def test_a_forked_child_does_without(daemon):
    array = random((8 * MIB,), "uint8")
    with connected(daemon.address, True) as (c, by_library):
        sent = c.upload(array)
        child = os.fork()
        if child == 0:
            c.connection.c_channel.close()
            os._exit(0 if c.connection.c_channel._opened() is None else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert np.array_equal(sent.numpy(), array) and len(by_library) == 2


def test_a_forked_child_leaves_what_is_under_way(daemon):
    array = random((8 * MIB,), "uint8")
    with connected(daemon.address, True) as (c, _), concurrent.futures.ThreadPoolExecutor(1) as threads:
        c.upload(array)
        daemon.signal(signal.SIGSTOP)
        upload = threads.submit(c.upload, array)
        time.sleep(0.2)
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends it, where it waits for a thread that is not there
            c.connection.c_channel.close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        daemon.signal(signal.SIGCONT)
        assert status == 0
        assert np.array_equal(upload.result(10).numpy(), array)


def test_an_empty_name_turns_it_off(daemon):
    with connected(daemon.address, False) as (c, by_library):
        c.upload(random((8 * MIB,), "uint8"))
        assert binding.load() is None and not by_library


def test_what_is_no_library_is_said_once(daemon, tmp_path, monkeypatch):
    other = tmp_path / "libother.so"
    other.write_bytes(b"no library")
    monkeypatch.setenv("CUMULUS_C_LIBRARY", str(other))
    array = random((8 * MIB,), "uint8")
    with cumulus.connect(daemon.address) as c:
        with pytest.warns(RuntimeWarning, match="libother.so.*CUMULUS_C_LIBRARY"):
            sent = c.upload(array)
        assert np.array_equal(sent.numpy(), array)


def test_a_library_of_another_release_is_left(with_library, monkeypatch):
    monkeypatch.setattr(binding, "RELEASE", "0.0.9")
    binding._load.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="of release 0.1.0"):
            assert binding.load() is None
    finally:
        binding._load.cache_clear()


def test_the_release_is_the_packages():
    assert binding.RELEASE == cumulus.__version__
