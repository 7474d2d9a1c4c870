"""Downloads into arrays of `allocate_shared`: the server writes to where they lie; and what becomes of an array where that fails."""

import concurrent.futures
import gc
import os
import signal
import struct
import threading
import time

import cumulus
import numpy as np
import pytest
from cumulus.shared_memory import region
from cumulus.v1 import sessions_pb2
from local_daemon import LocalDaemon, eventually, mappings_in, regions_in

pytest.importorskip("fcntl")
from fake_sharer import FakeSharer, resident  # noqa: E402

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="memory is shared on Linux")
RANDOM = np.random.default_rng(17)
MIB = 1 << 20
KIB = 1 << 10


def some_bytes(size):
    return np.frombuffer(RANDOM.bytes(size), np.uint8)


ARRAY = some_bytes(33 * MIB + 11)


@pytest.fixture
def daemon(tmp_path):
    with LocalDaemon(tmp_path) as running:
        yield running
        gc.collect()  # exceptions refer to frames, and these to exceptions
        assert eventually(lambda: regions_in("self") == 0) and mappings_in("self") == []


@pytest.fixture
def c(daemon):
    with cumulus.connect(daemon.address) as connected:
        yield connected


@pytest.mark.parametrize("size", [256 * KIB, 3 * MIB + 1, 20 * MIB + 77])
def test_downloads_into_shared_arrays_use_no_ring(daemon, monkeypatch, size):
    told = []
    with cumulus.connect(daemon.address, progress=lambda done, _: told.append((done, bytes(array[done - 1 : done])))) as c:
        array = c.allocate_shared(size, np.uint8)
        sources = [some_bytes(size), some_bytes(size)]
        buffers = [c.upload(source) for source in sources]
        monkeypatch.delattr("cumulus.shared_memory.memory.SharedMemory.take_ring")
        before = daemon.moved()
        for source, buffer in zip(sources, buffers):
            told.clear()
            assert buffer.numpy(array) is array and np.array_equal(array, source)
            assert [done for done, _ in told] == sorted({done for done, _ in told}) and told[-1][0] == size
            assert all(byte == bytes(source[done - 1 : done]) for done, byte in told), "told before it was there"
        assert daemon.moved()["download", "shared"] - before["download", "shared"] == 2 * size
        del array, buffer, buffers


def test_a_download_into_a_shared_array_changes_nothing_that_was_uploaded_from_it(c):
    first, second = some_bytes(3 * MIB + 1), some_bytes(3 * MIB + 1)
    resident, other = c.upload(first), c.upload(second)
    array = c.allocate_shared(first.size, np.uint8)
    resident.numpy(array)
    taken = c.upload(array)
    other.numpy(array)
    assert np.array_equal(array, second) and np.array_equal(taken.numpy(), first)
    del array


def test_parts_of_a_shared_array_are_filled_as_any_array(c, daemon):
    array = c.allocate_shared((4, MIB), np.uint8)
    array[:] = 7
    rows = some_bytes(2 * MIB).reshape(2, MIB)
    c.upload(rows).numpy(array[:2])
    assert np.array_equal(array[:2], rows) and (array[2:] == 7).all() and daemon.regions() == 2
    del array


def test_threads_fill_shared_arrays_of_their_own_or_one(c):
    source = some_bytes(5 * MIB + 3)
    resident = c.upload(source)
    arrays = [c.allocate_shared(source.size, np.uint8) for _ in range(3)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            for array in arrays:
                array[:] = 0
            assert all(pool.map(lambda array: np.array_equal(resident.numpy(array), source), arrays))
            list(pool.map(resident.numpy, arrays[:1] * 6))
            assert np.array_equal(arrays[0], source)
    del arrays, array


# Ways in which downloads into shared arrays end: the array is an ordinary one then, which no server writes to.


def shared_array(c):
    array = c.allocate_shared(ARRAY.size, np.uint8)
    assert len(mappings_of_arrays()) == 1
    return array


def mappings_of_arrays():
    """Rings have a mapping of 16 MiB."""
    return [line for line in mappings_in("self") if int(line.split("-")[1].split()[0], 16) - int(line.split("-")[0], 16) > 16 * MIB]


def is_ordinary(array):
    array[:] = 5
    return mappings_of_arrays() == [] and (array == 5).all()


def test_a_daemon_that_is_killed_meanwhile_is_said(daemon):
    told = []

    def kill(done, total):
        told.append(done)
        if done > MIB and array is not None:
            daemon.signal(signal.SIGKILL)

    array = None
    with cumulus.connect(daemon.address, progress=kill) as c:
        resident, array = c.upload(ARRAY), shared_array(c)
        told.clear()
        with pytest.raises(cumulus.Unavailable, match="no Cumulus server answers"):
            resident.numpy(array)
            assert np.array_equal(array, ARRAY), "it was just in time"
            resident.numpy(array)
        assert told and is_ordinary(array)


def test_what_a_progress_function_raises_parts_the_array_from_the_server(daemon):
    interrupts = []

    def interrupt(done, total):
        if interrupts:
            raise interrupts.pop()

    with cumulus.connect(daemon.address, progress=interrupt) as c:
        resident, array = c.upload(ARRAY), shared_array(c)
        interrupts.append(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            resident.numpy(array)
        assert is_ordinary(array)
        assert np.array_equal(resident.numpy(array, timeout=20), ARRAY)
        assert np.array_equal(c.upload(array).numpy(), ARRAY)


@pytest.mark.parametrize("way", [cumulus.DeadlineExceeded, cumulus.Cancelled])
def test_a_daemon_that_stands_still_never_writes_to_the_array_again(daemon, way):
    with cumulus.connect(daemon.address) as c:
        resident, array = c.upload(ARRAY), shared_array(c)
        scope = cumulus.Cancellation()
        daemon.signal(signal.SIGSTOP)
        if way is cumulus.Cancelled:
            threading.Timer(0.3, scope.cancel).start()
        start = time.monotonic()
        with scope, pytest.raises(way):
            resident.numpy(array, timeout=1 if way is cumulus.DeadlineExceeded else 100)
        assert time.monotonic() - start < 30 and is_ordinary(array)
        daemon.signal(signal.SIGCONT)
        assert np.array_equal(resident.numpy(), ARRAY) and (array == 5).all()


def test_a_refused_download_leaves_the_array_as_it_was(daemon):
    with cumulus.connect(daemon.address) as c:
        resident, array, lost = c.upload(ARRAY), shared_array(c), c.upload(ARRAY)
        array[:] = 3
        c.connection.attempt("/cumulus.v1.Sessions/DeleteBuffer", sessions_pb2.DeleteBufferRequest(name=lost.name).SerializeToString(),
                             time.monotonic() + 10)
        with pytest.raises(cumulus.NotFound):
            lost.numpy(array)
        assert (array == 3).all() and len(mappings_of_arrays()) == 1
        assert np.array_equal(resident.numpy(array), ARRAY) and len(mappings_of_arrays()) == 1
        del array


@pytest.mark.parametrize("wrong", [
    (region.FILLED, 0, 1, MIB), (region.FILLED, 0, 0, 0), (region.FILLED, 0, 0, 2 * MIB + 1), (region.FREE, 0, 0, MIB)])
def test_pieces_of_a_shared_array_that_are_not_next_are_refused(wrong):
    def say(connection):
        connection.send(struct.pack("=IIQQ", region.BEGIN, 0, 0, 0))
        connection.send(struct.pack("=IIQQ", *wrong))

    with FakeSharer(size=2 * MIB, slots=0) as server, cumulus.connect(server.address) as c:
        buffer_there = resident(server, c)
        server.say = say
        array = c.allocate_shared(2 * MIB, np.uint8)
        with pytest.raises(cumulus.DataLoss, match="bytes that are not next"):
            buffer_there.numpy(array)
        assert is_ordinary(array) and mappings_in("self") == []
