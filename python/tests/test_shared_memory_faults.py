"""Shared memory where something is missing or goes wrong: streams take its place, or an error says what it was."""

import asyncio
import contextlib
import os
import signal
import struct
import time

import cumulus
import cumulus.aio
import grpc
import numpy as np
import pytest
from cumulus.shared_memory import memory, region, thread_count
from fake_server import abort
from local_daemon import LocalDaemon, eventually, forked_child, mappings_in, regions_in

pytest.importorskip("fcntl")
from fake_sharer import FakeSharer, resident  # noqa: E402

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="memory is shared on Linux")
RANDOM = np.random.default_rng(16)
MIB = 1 << 20
ARRAY = np.frombuffer(RANDOM.bytes(33 * MIB + 11), np.uint8)


def comes_back(c, array=ARRAY):
    return np.array_equal(c.upload(array).numpy(), array)


@pytest.fixture
def daemon(tmp_path):
    with LocalDaemon(tmp_path) as running:
        yield running
        assert regions_in("self") == 0 and mappings_in("self") == []


@pytest.fixture
def progress(monkeypatch):
    """What a client calls; a test says what that does. One thread copies, which calls it: others would go on meanwhile,
    to the transfer's end where that thread gets few turns."""
    monkeypatch.setattr(thread_count.ThreadCount, "choose", lambda *_: 1)

    class Progress:
        def __init__(self):
            self.then = lambda done, total: None

        def __call__(self, done, total):
            self.then(done, total)

    return Progress()


def shared_bytes(daemon):
    moved = daemon.moved()
    return moved["upload", "shared"] + moved["download", "shared"]


# Ways in which there is none.


def test_it_is_left_alone_where_the_client_says_so(daemon):
    with cumulus.connect(daemon.address, shared_memory=False) as c:
        assert comes_back(c)
    assert shared_bytes(daemon) == 0


def test_other_systems_have_none(daemon, monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "win32")
    with cumulus.connect(daemon.address) as c:
        assert comes_back(c)
    assert shared_bytes(daemon) == 0


def test_a_server_without_room_gets_streams(tmp_path):
    configuration = tmp_path / "config"
    configuration.write_text("shared_memory { max_bytes_per_user: 1 }")
    with LocalDaemon(tmp_path, "--config", configuration) as full, cumulus.connect(full.address) as c:
        assert comes_back(c) and shared_bytes(full) == 0


def test_a_socket_that_cannot_be_reached_means_streams(daemon):
    with cumulus.connect(daemon.address) as c:
        for address in ("@cumulus-of-nobody", "/nonexistent/socket", "@" + 200 * "x"):
            c.connection.shared_memory.set_socket(address)
            assert comes_back(c)
    assert shared_bytes(daemon) == 0


def test_with_all_rings_in_use_streams_take_over(daemon):
    with cumulus.connect(daemon.address) as c:
        rings = [c.connection.shared_memory.take_ring() for _ in range(5)]
        assert None not in rings[:4] and rings[4] is None
        assert comes_back(c) and shared_bytes(daemon) == 0
        for ring in rings[:4]:
            c.connection.shared_memory.give_back(ring)
        assert comes_back(c) and shared_bytes(daemon) == 2 * ARRAY.size
        del ring, rings


def test_a_daemon_that_has_restarted_is_asked_for_its_own(daemon, tmp_path):
    with cumulus.connect(daemon.address, recreate=True) as c:
        resident = c.upload(ARRAY)
        daemon.end()
        with LocalDaemon(tmp_path) as again:
            assert np.array_equal(resident.numpy(), ARRAY)
            assert comes_back(c) and shared_bytes(again) >= 3 * ARRAY.size
            resident = None


# Ways in which transfers end.


def test_a_killed_daemon_is_said(daemon, progress):
    def kill(done, total):
        if done > 5 * MIB:
            daemon.signal(signal.SIGKILL)

    with cumulus.connect(daemon.address, progress=progress) as c:
        progress.then = kill
        start = time.monotonic()
        with pytest.raises(cumulus.Unavailable, match="no Cumulus server answers"):
            c.upload(ARRAY)
        assert time.monotonic() - start < 60


def test_a_daemon_that_is_killed_in_a_download_is_said(daemon, progress):
    with cumulus.connect(daemon.address, progress=progress) as c:
        resident = c.upload(ARRAY)
        progress.then = lambda done, total: daemon.signal(signal.SIGKILL)
        with pytest.raises(cumulus.Unavailable, match="no Cumulus server answers"):
            resident.numpy()


@pytest.mark.parametrize("way", ["upload", "download"])
def test_what_a_progress_function_raises_ends_the_transfer_alone(daemon, progress, way):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with cumulus.connect(daemon.address, progress=progress) as c:
        resident = c.upload(ARRAY)
        progress.then = interrupt
        with pytest.raises(KeyboardInterrupt):
            c.upload(ARRAY) if way == "upload" else resident.numpy()
        progress.then = lambda done, total: None
        before = shared_bytes(daemon)
        assert comes_back(c) and shared_bytes(daemon) - before == 2 * ARRAY.size
        assert eventually(lambda: daemon.regions() == 1), "the ring of the transfer that ended is gone"


@pytest.mark.parametrize("way", ["upload", "download"])
def test_cancelled_transfers_leave_the_next_alone(daemon, progress, way):
    with cumulus.connect(daemon.address, progress=progress) as c:
        resident = c.upload(ARRAY)
        scope = cumulus.Cancellation()
        progress.then = lambda done, total: scope.cancel()
        with scope, pytest.raises(cumulus.Cancelled):
            c.upload(ARRAY) if way == "upload" else resident.numpy()
        progress.then = lambda done, total: None
        assert comes_back(c)


@pytest.mark.parametrize("way", ["upload", "download"])
def test_a_daemon_that_stands_still_holds_nobody_beyond_the_deadline(daemon, way):
    with cumulus.connect(daemon.address) as c:
        resident = c.upload(ARRAY)
        daemon.signal(signal.SIGSTOP)
        start, computed = time.monotonic(), time.process_time()
        with pytest.raises(cumulus.DeadlineExceeded):
            c.upload(ARRAY, timeout=1) if way == "upload" else resident.numpy(timeout=1)
        assert time.monotonic() - start < 30
        assert time.process_time() - computed < 0.5, "waiting computes nothing"
        daemon.signal(signal.SIGCONT)
        assert comes_back(c)


def test_a_task_that_is_cancelled_ends_its_transfer(daemon):
    async def run():
        async with cumulus.aio.connect(daemon.address) as c:
            await c.upload(ARRAY)
            daemon.signal(signal.SIGSTOP)
            task = asyncio.ensure_future(c.upload(ARRAY))
            await asyncio.sleep(0.3)
            start = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            ended = time.monotonic() - start
            daemon.signal(signal.SIGCONT)
            return ended

    assert asyncio.run(run()) < 5


def the_ring(c):
    """Taken and given back."""
    ring = c.connection.shared_memory.take_ring()
    c.connection.shared_memory.give_back(ring)
    return ring


def test_refusals_keep_the_ring(daemon):
    with cumulus.connect(daemon.address) as c:
        assert comes_back(c)
        ring = the_ring(c)
        for _ in range(3):
            with pytest.raises(cumulus.InvalidArgument, match="WriteShared: ttl"):
                c.upload(ARRAY, ttl=-1)
        assert comes_back(c) and the_ring(c) is ring and daemon.regions() == 1
        del ring


def test_a_forked_child_keeps_nothing_of_its_parents(daemon):
    with contextlib.ExitStack() as child:
        with cumulus.connect(daemon.address) as c:
            array = c.allocate_shared(MIB, np.uint8)
            assert comes_back(c) and daemon.regions() == 2
            child.enter_context(forked_child())
            assert comes_back(c), "the parent goes on"
            del array
        assert eventually(lambda: daemon.regions() == 0), "though the child lives"


# Servers that do what they must not.


@pytest.mark.parametrize("wrong", [
    (region.FILLED, 16, 0, MIB), (region.FILLED, 0, 0, MIB + 1), (region.FILLED, 0, 2 * MIB, 1),
    (region.FILLED, 0, 2**64 - 1, 1), (region.FILLED, 0, 0, 0), (region.FREE, 0, 0, MIB)])
def test_pieces_that_cannot_be_are_refused(wrong):
    def say(connection):
        connection.send(struct.pack("=IIQQ", region.BEGIN, 0, 0, 0))
        connection.send(struct.pack("=IIQQ", *wrong))

    with FakeSharer() as server, cumulus.connect(server.address) as c:
        array = resident(server, c)
        server.say = say
        with pytest.raises(cumulus.DataLoss, match="bytes that are not there"):
            array.numpy()


def test_a_download_of_which_pieces_are_missing_is_refused():
    with FakeSharer() as server, cumulus.connect(server.address) as c:
        array = resident(server, c)
        server.say = lambda connection: connection.send(struct.pack("=IIQQ", region.BEGIN, 0, 0, 0))
        with pytest.raises(cumulus.DataLoss, match="fewer bytes"):
            array.numpy()


@pytest.mark.parametrize("options", [{"seals": 0x1}, {"seals": 0x1 | 0x2 | 0x4, "size": 15 * MIB}])
def test_memory_that_may_shrink_or_is_too_small_is_not_taken(options):
    with FakeSharer(**options) as server, cumulus.connect(server.address) as c:
        assert c.connection.shared_memory.take_ring() is None
    assert eventually(lambda: regions_in("self") == 0) and mappings_in("self") == []  # the server is of this process, too


def test_a_server_that_does_not_know_its_ring_is_not_asked_again():
    with FakeSharer() as server, cumulus.connect(server.address) as c:
        array = resident(server, c)
        server.handlers["ReadShared"] = lambda request, context: abort(context, grpc.StatusCode.NOT_FOUND, "REGION_NOT_FOUND")
        server.handlers["ReadBuffer"] = lambda request, context: abort(context, grpc.StatusCode.INTERNAL, "A_STREAM")
        for _ in range(3):
            with pytest.raises(cumulus.Internal, match="A_STREAM"):
                array.numpy()
        assert server.count("ReadShared") == 1


def test_names_of_the_abstract_namespace_that_another_user_has_taken_are_not_believed(monkeypatch):
    with FakeSharer() as server, cumulus.connect(server.address) as c:
        rings = c.connection.shared_memory
        own = rings.take_ring()
        assert own is not None
        own.close()
        rings.give_back(own)
        # What the kernel says of the server: its process, user and group.
        monkeypatch.setattr(region.Region, "_peer", lambda _: struct.pack("=iII", 1, os.geteuid() + 1, 0))
        assert rings.take_ring() is None
        monkeypatch.setattr(region.Region, "_peer", lambda _: struct.pack("=iII", 1, 0, 0))
        root = rings.take_ring()
        assert root is not None
        root.close()
