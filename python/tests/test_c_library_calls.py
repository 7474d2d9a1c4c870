"""Calls of the wire and shared arrays by the client library for C: the same answers, errors and ends as without it."""

import asyncio
import concurrent.futures
import contextlib
import gc
import os
import signal
import threading
import time

import cumulus
import cumulus.aio
import grpc
import numpy as np
import pytest
from c_library import LIBRARY, MIB, calling, connected, end_when_closed, random, told
from cumulus.c_library import binding
from fake_server import abort, server  # noqa: F401
from local_daemon import LocalDaemon, eventually, regions_in

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} has not been built")
IMAGE = np.random.default_rng(2).random((90, 70, 3), dtype=np.float32)
METHOD = "/cumulus.v1.Sessions/GetSession"
PATIENCE = 0.5  # seconds, until what is cancelled has ended


@pytest.fixture
def daemon(tmp_path):
    with LocalDaemon(tmp_path) as running:
        yield running


# Calls.


def results_of(c):
    points = IMAGE.reshape(-1, 3)
    resident = c.upload(IMAGE)
    return (c.blur(IMAGE, 3), resident.blur(3).summed_area_table().numpy(), *c.kd_tree(points).query(points[:7], k=3),
            c.sampling_table(IMAGE).sample(100).pdf)


def test_the_same_answers_either_way(daemon):
    answers = []
    for library in (False, True):
        with calling(daemon.address, library) as (c, by_library):
            answers.append(results_of(c))
        assert (len(by_library) > 8) == library
    assert all(np.array_equal(*each) for each in zip(answers[0][:4], answers[1][:4]))


def test_a_client_of_few_calls_does_not_load_it(daemon):
    with connected(daemon.address, True) as (c, _):
        for _ in range(5):
            c.blur(IMAGE, 2)
        assert c.connection.c_channel._open is None
        for _ in range(20):
            c.blur(IMAGE, 2)
        assert c.connection.c_channel._open is not None


WRONG = {
    "a field": lambda c: c.blur(c.upload(IMAGE), 0.1),
    "an input": lambda c: c.sampling_table(np.zeros((4, 4), np.float32)),
    "a method": lambda c: c.call("/cumulus.v1.Sessions/Nothing", b"", bytes),
    "a message": lambda c: c.call("/cumulus.v1.Sessions/CreateSession", b"\xff\xff", bytes),
    "a session": lambda c: c.call(METHOD, b"\x0a\x0asessions/0", bytes),
    "a request that is too large": lambda c: c.call(METHOD, bytes(5 * MIB), bytes),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_the_same_errors_either_way(daemon, what):
    raised = []
    for library in (False, True):
        with calling(daemon.address, library) as (c, by_library), pytest.raises(cumulus.Error) as error:
            WRONG[what](c)
        raised.append([str(part) for part in told(error.value)])
        assert bool(by_library) == library
    if what in ("a method", "a message", "a request that is too large"):
        raised[0][1] = raised[1][1] = ""  # gRPC's words, which change
    assert raised[0] == raised[1]


@pytest.mark.parametrize("code, reason", [("RESOURCE_EXHAUSTED", "QUOTA"), ("UNAVAILABLE", "DRAINING"), ("INTERNAL", "DEVICE_FAULT")])
def test_what_a_server_says_is_said(server, code, reason):
    server.handlers["GetSession"] = lambda request, context: abort(context, grpc.StatusCode[code], reason)
    raised = []
    for library in (False, True):
        with calling(server.address, library) as (c, _), pytest.raises(cumulus.Error) as error:
            c.call(METHOD, b"", bytes)
        raised.append(told(error.value))
    assert raised[0] == raised[1] and raised[0][5] == reason


def test_a_call_is_repeated_while_the_server_says_when_to_come_back(server):
    def refuse_twice(request, context):
        if server.count("GetSession") < 3:
            abort(context, grpc.StatusCode.UNAVAILABLE, "QUEUE_FULL", 0.01)
        return b"\x0a\x01x"

    server.handlers["GetSession"] = refuse_twice
    with calling(server.address, True) as (c, by_library):
        by_library.clear()
        assert c.call(METHOD, b"", bytes) == b"\x0a\x01x"
        assert len(by_library) == 1 and server.count("GetSession") == 3


def test_messages_have_any_bytes(server):
    server.handlers["GetSession"] = lambda request, context: request[::-1]
    with calling(server.address, True) as (c, _):
        for message in (b"", b"\0", b"\0a\0\0", bytes(range(256)) * 4096):
            assert c.call(METHOD, message, bytes) == message[::-1]


def test_calls_say_whose_handles_they_name(server):
    said = []
    server.handlers["GetSession"] = lambda request, context: (said.append(dict(context.invocation_metadata())), b"")[1]
    with calling(server.address, True) as (c, _):
        c.call(METHOD, b"", bytes)
        name = c.session.name
        c.call(METHOD, b"", bytes)
    assert "cumulus-session" not in said[0] and said[1]["cumulus-session"] == name


@contextlib.contextmanager
def interrupted_after(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.join()


def test_keyboard_interrupt_cancels_a_call_on_the_server_too(server):
    ended = threading.Event()

    def wait(request, context):
        context.add_callback(ended.set)
        ended.wait(10)
        return b""

    server.handlers["GetSession"] = wait
    with calling(server.address, True) as (c, _), interrupted_after(0.3):
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            c.call(METHOD, b"", bytes)
        assert time.monotonic() - start < 0.3 + PATIENCE
        assert ended.wait(5)


def test_a_task_that_is_cancelled(daemon, monkeypatch):
    monkeypatch.setenv("CUMULUS_C_LIBRARY", str(LIBRARY))
    monkeypatch.setattr("cumulus.c_library.channel._CALLS_BEFORE", 0)

    async def run():
        async with cumulus.aio.connect(daemon.address) as c:
            await c.blur(IMAGE, 2)
            daemon.stand_still()
            task = asyncio.create_task(c.blur(IMAGE, 2))
            await asyncio.sleep(0.2)
            start = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            daemon.signal(signal.SIGCONT)
            return time.monotonic() - start

    assert asyncio.run(run()) < PATIENCE


def test_a_deadline_ends_a_call(daemon):
    with calling(daemon.address, True) as (c, by_library):
        c.blur(IMAGE, 2)
        daemon.stand_still()
        with pytest.raises(cumulus.DeadlineExceeded, match="longer timeout"):
            c.call(METHOD, b"\x0a\x0asessions/0", bytes, timeout=0.2)
        daemon.signal(signal.SIGCONT)
        assert by_library


def test_a_client_that_is_closed_ends_its_calls(daemon):
    with calling(daemon.address, True) as (c, _):
        c.blur(IMAGE, 2)
        end_when_closed(daemon, c, lambda: c.blur(IMAGE, 2), PATIENCE)


def test_a_forked_child_calls_without_it(daemon):
    with calling(daemon.address, True) as (c, by_library):
        c.blur(IMAGE, 2)
        before = len(by_library)
        child = os.fork()
        if child == 0:
            os._exit(0 if c.connection.c_channel.call(("", ""), METHOD, b"", 1.0) is None else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0
        c.blur(IMAGE, 2)
        assert len(by_library) == before + 1


def test_a_forked_childs_own_clients_do_without_it(daemon):
    with calling(daemon.address, True) as (c, _):
        c.blur(IMAGE, 2)
        child = os.fork()
        if child == 0:
            os._exit(0 if binding.load() is None else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0 and binding.load() is not None


def test_a_restart_is_said_and_outlived(tmp_path):
    with LocalDaemon(tmp_path) as first:
        with calling(first.address, True) as (c, _):
            resident = c.upload(IMAGE)
            first.end()
            with pytest.raises(cumulus.Unavailable):
                resident.blur(2)
            with LocalDaemon(tmp_path):
                with pytest.raises(cumulus.NotFound) as error:
                    eventually_answered(lambda: resident.blur(2))
                assert error.value.reason == "INSTANCE_RESTARTED"
                assert np.array_equal(c.upload(IMAGE).blur(2).numpy(), c.blur(IMAGE, 2))


def eventually_answered(call, seconds=10):
    end = time.monotonic() + seconds
    while True:
        try:
            return call()
        except cumulus.Unavailable:  # gRPC's next attempt to connect is a second away
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def test_threads_call_at_once(daemon):
    with calling(daemon.address, True) as (c, _), concurrent.futures.ThreadPoolExecutor(8) as threads:
        right = c.blur(IMAGE, 2)
        assert all(np.array_equal(each, right) for each in threads.map(lambda _: c.blur(IMAGE, 2), range(200)))


# Shared arrays.


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int64", "float64", "bool"])
def test_shared_arrays_go_by_the_library(daemon, dtype):
    with connected(daemon.address, True) as (c, by_library):
        array = c.allocate_shared((300, 1000, 3), dtype)
        assert (array.shape, array.dtype) == ((300, 1000, 3), np.dtype(dtype)) and array.flags.c_contiguous
        array[...] = random((300, 1000, 3), "uint8") % 2
        sent = c.upload(array)
        before = daemon.moved()
        back = c.allocate_shared(sent.shape, sent.dtype)
        assert np.array_equal(sent.numpy(back), array.astype(sent.dtype))
        assert daemon.moved() != before
        assert len(by_library) == 2


def test_a_shared_array_stays_the_callers(daemon):
    with connected(daemon.address, True) as (c, _):
        array = c.allocate_shared((2 * MIB,), np.uint8)
        array[:] = 7
        sent = c.upload(array)
        array[:] = 8  # seen here alone
        assert sent.numpy().max() == 7 and array.min() == 8
        again = c.upload(array)
        assert again.numpy().min() == 8
    assert array.min() == 8


def test_a_shared_arrays_memory_ends_with_it(daemon):
    with connected(daemon.address, True) as (c, _):
        before = regions_in(os.getpid())
        array = c.allocate_shared((8 * MIB,), np.uint8)
        part = array[5:]
        assert regions_in(os.getpid()) == before + 1
        del array
        gc.collect()
        assert regions_in(os.getpid()) == before + 1
        del part
        assert eventually(lambda: regions_in(os.getpid()) == before)


def test_where_nothing_is_shared_they_are_ordinary(daemon):
    with connected(daemon.address, True, shared_memory=False) as (c, _):
        array = c.allocate_shared((2 * MIB,), np.uint8)
        array[:] = 3
        assert np.array_equal(c.upload(array).numpy(), array)
        assert c.allocate_shared((0, 3), np.float32).shape == (0, 3)


def filled(c, value=7, shape=(4 * MIB,), dtype=np.uint8):
    array = c.allocate_shared(shape, dtype)
    array[...] = value
    return array


def test_views_of_a_whole_shared_array(daemon):
    with connected(daemon.address, True) as (c, by_library):
        for view in (lambda a: a.reshape(-1, 4), lambda a: a.view(np.float32), lambda a: a[...], lambda a: a.view(">i4"),
                     lambda a: a[: 2 * MIB], lambda a: a[::2], lambda a: a.reshape(1024, -1).T):
            array = filled(c)
            array[: 2 * MIB] = random((2 * MIB,), "uint8") & 63  # no NaN among the floats
            sent = c.upload(view(array))
            assert sent.shape == view(array).shape
            assert np.array_equal(sent.numpy(), view(array))
        assert len(by_library) >= 7


def test_a_whole_shared_array_goes_a_way_of_its_own(daemon, monkeypatch):
    with connected(daemon.address, True) as (c, by_library):
        array = filled(c)
        array[5] = 9
        monkeypatch.setattr("cumulus.transfer.upload", None)  # all other arrays' way
        sent = c.upload(array)
        assert len(by_library) == 1
        assert np.array_equal(sent.numpy(), array)


def test_options_of_shared_arrays_reach_the_server(daemon):
    with connected(daemon.address, True) as (c, _):
        gone = c.upload(filled(c), ttl=0.2, evictable=True, request_id="frame 7")
        time.sleep(1.5)
        with pytest.raises(cumulus.NotFound):
            gone.numpy()


@pytest.mark.parametrize("options", [{"request_id": "x" * 200}, {"ttl": 0}, {"ttl": 1e-10}], ids=str)
def test_the_same_errors_of_shared_arrays(daemon, options):
    raised = []
    for library in (False, True):
        with connected(daemon.address, library) as (c, _):
            c.upload(filled(c))  # the session is there
            with pytest.raises(cumulus.Error) as error:
                c.upload(filled(c), **options)
            raised.append([str(part) for part in told(error.value)])
    assert raised[0] == raised[1]


def test_keyboard_interrupt_ends_the_upload_of_a_shared_array(daemon):
    with connected(daemon.address, True) as (c, by_library):
        c.upload(filled(c))
        array = filled(c)
        by_library.clear()
        daemon.stand_still()
        with interrupted_after(0.3):
            start = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                c.upload(array)
            assert time.monotonic() - start < 0.3 + PATIENCE
        daemon.signal(signal.SIGCONT)
        assert by_library and np.array_equal(c.upload(array).numpy(), array)


def test_a_client_that_is_closed_ends_the_upload_of_a_shared_array(daemon):
    with connected(daemon.address, True) as (c, _):
        c.upload(filled(c))
        array = filled(c)
        end_when_closed(daemon, c, lambda: c.upload(array), PATIENCE)


def test_a_shared_array_goes_to_a_server_that_has_restarted(tmp_path):
    with LocalDaemon(tmp_path) as first:
        with connected(first.address, True) as (c, _):
            c.upload(filled(c))
            array = filled(c)
            first.end()
            with LocalDaemon(tmp_path):
                with pytest.raises(cumulus.NotFound) as error:
                    eventually_answered(lambda: c.upload(array))
                assert error.value.reason == "INSTANCE_RESTARTED"
                assert np.array_equal(c.upload(array).numpy(), array)
