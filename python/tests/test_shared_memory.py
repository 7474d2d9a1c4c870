"""Transfers through memory that client and daemon share: that they bring the same, go that way, and leave nothing."""

import concurrent.futures
import os
import threading

import cumulus
import cumulus.aio
import numpy as np
import pytest
from cumulus.arrays import DTYPES
from cumulus.shared_memory import thread_count
from cumulus.shared_memory.memory import is_on_this_machine
from local_daemon import LocalDaemon, eventually, forked_child, mappings_in, regions_in

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="memory is shared on Linux")
RANDOM = np.random.default_rng(15)
MIB = 1 << 20
KIB = 1 << 10


def some_bytes(size):
    return np.frombuffer(RANDOM.bytes(size), np.uint8)


def come_back(c, array):
    return np.array_equal(c.upload(array).numpy().view(np.uint8), np.ascontiguousarray(array).view(np.uint8))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with LocalDaemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


@pytest.fixture
def c(daemon):
    """A client of its own, of which nothing may be left afterwards, on either side."""
    with cumulus.connect(daemon.address) as connected:
        yield connected
    assert eventually(lambda: regions_in("self") == 0 and mappings_in("self") == [])
    assert eventually(lambda: daemon.regions() == 0)


@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_every_dtype_comes_back(c, dtype):
    array = (RANDOM.random((701, 997)) * 100).astype(dtype)
    resident = c.upload(array)
    back = resident.numpy()
    assert back.dtype == (np.uint8 if dtype == "bool" else array.dtype) and back.shape == array.shape
    assert np.array_equal(back, array)


def test_arrays_of_any_size_come_back_through_one_ring(c, daemon):
    for size in (0, 1, 256 * KIB - 1, 256 * KIB, MIB, 3 * MIB + 1, 16 * MIB, 16 * MIB + 1, 37 * MIB + 77):
        assert come_back(c, some_bytes(size)), size
    assert daemon.regions() == 1


def test_views_come_back(c):
    array = RANDOM.random((512, 384))
    read_only = array[100:]
    read_only.flags.writeable = False
    for view in (array.T, array[::2, ::-3], array[3:, 5:], array.astype(">f8"), np.asfortranarray(array), read_only):
        assert np.array_equal(c.upload(view).numpy(), view)


def test_from_256_kib_on_the_memory_is_what_brings_them(c, daemon):
    before = daemon.moved()
    array = some_bytes(5 * MIB + 3)
    assert come_back(c, array)
    after = daemon.moved()
    moved = {key: after[key] - before[key] for key in after}
    assert moved.pop(("upload", "shared")) == moved.pop(("download", "shared")) == array.size
    assert set(moved.values()) == {0}
    assert come_back(c, some_bytes(256 * KIB - 1))
    small = daemon.moved()
    assert small["upload", "unix"] - after["upload", "unix"] == 256 * KIB - 1
    assert small["upload", "shared"] == after["upload", "shared"]


def test_what_operations_send_and_fetch_goes_that_way_too(c, daemon):
    image = RANDOM.random((1024, 1024), dtype=np.float32)
    before = daemon.moved()
    blurred = c.blur(image, 2)
    after = daemon.moved()
    assert after["upload", "shared"] - before["upload", "shared"] == image.nbytes
    assert after["download", "shared"] - before["download", "shared"] == blurred.nbytes


@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_threads_copies_the_same(c, monkeypatch, count):
    monkeypatch.setattr(thread_count.ThreadCount, "choose", lambda *_: count)
    for size in (256 * KIB, 20 * MIB, 41 * MIB + 5):
        assert come_back(c, some_bytes(size)), size


def test_the_number_of_threads_follows_what_has_helped():
    def settled(rates):
        threads = thread_count.ThreadCount()
        for _ in range(8):
            count = threads.choose(64 * MIB)
            threads.note(count, 64 * MIB, 64 * MIB / rates[count])
        return threads.choose(64 * MIB)

    assert settled({1: 5e9, 2: 5.2e9, 4: 4e9}) == 1  # a tenth more is not worth a thread
    assert settled({1: 5e9, 2: 8e9, 4: 8.1e9}) == 2
    assert settled({1: 5e9, 2: 8e9, 4: 12e9}) == 4
    assert thread_count.ThreadCount().choose(16 * MIB - 1) == 1


def test_threads_have_rings_of_their_own_or_streams(daemon):
    with cumulus.connect(daemon.address, connections=2) as c, concurrent.futures.ThreadPoolExecutor(7) as pool:
        arrays = [some_bytes(5 * MIB + i) for i in range(7)]
        for _ in range(3):
            assert all(pool.map(lambda array: come_back(c, array), arrays))
        assert 1 <= daemon.regions() <= 4
    assert eventually(lambda: daemon.regions() == 0)


def test_two_clients_do_not_meet(daemon):
    def repeat(size):
        with cumulus.connect(daemon.address) as c:
            return all(come_back(c, some_bytes(size)) for _ in range(5))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert all(pool.map(repeat, (18 * MIB + 3, 17 * MIB + 5)))


@pytest.mark.parametrize("count", [1, 4])
def test_they_say_how_far_they_are_on_the_callers_thread(daemon, monkeypatch, count):
    monkeypatch.setattr(thread_count.ThreadCount, "choose", lambda *_: count)
    told = []
    array = some_bytes(20 * MIB + 9)
    with cumulus.connect(daemon.address, progress=lambda *done: told.append((threading.get_ident(), *done))) as c:
        resident = c.upload(array)
        up = told[:]
        told.clear()
        resident.numpy()
    for each in (up, told):
        done = [entry[1] for entry in each]
        assert done == sorted(set(done)) and done[-1] == array.size and len(done) <= 21
        assert {(entry[0], entry[2]) for entry in each} == {(threading.get_ident(), array.size)}
    assert count > 1 or len(up) == len(told) == 21


def test_arrays_have_the_checksums_of_streams(daemon):
    """What is uploaded again after a loss is held against the checksum of the first upload, whichever way each went."""
    array = some_bytes(5 * MIB + 1)
    with cumulus.connect(daemon.address, recreate=True) as c, \
            cumulus.connect(daemon.address, recreate=True, shared_memory=False) as streams:
        own = c.allocate_shared(array.size, np.uint8)
        own[:] = array
        by_ring, by_region, by_stream = (client.upload(each).resident.recipe._checksum
                                         for client, each in ((c, array), (c, own), (streams, array)))
    assert by_ring == by_region == by_stream != 0


# Arrays that are born in shared memory.


def test_a_shared_array_becomes_the_buffer_without_a_copy(c, daemon):
    size = 3 * MIB + 4096
    array = c.allocate_shared((3 * 256 + 1, 4096), "uint8")
    assert array.shape == (769, 4096) and array.flags.writeable and array.flags.c_contiguous and not array.any()
    before = daemon.moved()
    values = some_bytes(size).reshape(array.shape)
    array[:] = values
    first = c.upload(array)
    of_the_buffer = [line for line in mappings_in(daemon.pid) if " r--p " in f" {line.split()[1]} "]
    assert len(of_the_buffer) == 1, "the buffer is the region"
    assert eventually(lambda: daemon.regions() == 0), "its connection has ended"
    array[0] = 255 - array[0]
    array[500] = 7
    second = c.upload(array)
    assert daemon.moved()["upload", "shared"] - before["upload", "shared"] == 2 * size
    assert np.array_equal(first.numpy(), values) and np.array_equal(second.numpy(), array)
    del array


@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_shared_arrays_have_every_dtype(c, dtype):
    array = c.allocate_shared((7, 11), dtype)
    values = (RANDOM.random((7, 11)) * 100).astype(dtype)
    array[:] = values
    assert array.dtype == dtype and np.array_equal(c.upload(array).numpy(), values)
    del array


def test_parts_of_a_shared_array_are_taken_as_any_array(c):
    array = c.allocate_shared((64, 8192), np.float32)
    array[:] = RANDOM.random(array.shape)
    assert np.array_equal(c.upload(array[10:60]).numpy(), array[10:60])
    assert np.array_equal(c.upload(array.T).numpy(), array.T)
    assert np.array_equal(c.upload(array).numpy(), array)
    del array


def test_a_shared_array_is_taken_as_a_copy_while_it_cannot_be_sealed(c):
    """A child that was forked meanwhile may still write to it."""
    array = c.allocate_shared(MIB, np.uint8)
    array[:] = some_bytes(MIB)
    with forked_child():
        assert np.array_equal(c.upload(array).numpy(), array)
    del array


def test_shared_arrays_of_operations(c):
    image = c.allocate_shared((600, 800), np.float32)
    image[:] = RANDOM.random(image.shape)
    assert np.array_equal(c.blur(image, 3), c.blur(image.copy(), 3))
    assert np.array_equal(c.blur(image, 3), c.blur(image.copy(), 3))
    del image


def test_a_shared_array_outlives_its_client(daemon):
    with cumulus.connect(daemon.address) as c:
        uploaded, kept = c.allocate_shared(MIB, np.uint8), c.allocate_shared(MIB, np.uint8)
        uploaded[:] = kept[:] = values = some_bytes(MIB)
        c.upload(uploaded)
    assert np.array_equal(uploaded, values) and np.array_equal(kept, values)
    del uploaded
    assert eventually(lambda: daemon.regions() == 1)  # the daemon hears the client close its ring
    view = kept[5:]
    del kept
    assert np.array_equal(view, values[5:])
    del view
    assert eventually(lambda: daemon.regions() == 0) and mappings_in("self") == []


def test_empty_shared_arrays_and_those_that_cannot_be(c):
    assert np.array_equal(c.upload(c.allocate_shared((0, 3), np.float64)).numpy(), np.empty((0, 3)))
    for shape, dtype, field in ((-1, "uint8", "shape"), ((1,) * 9, "uint8", "shape"), (3, "complex64", "dtype"),
                                (3, "no dtype", "dtype"), ("three", "uint8", "shape")):
        with pytest.raises(cumulus.InvalidArgument) as refused:
            c.allocate_shared(shape, dtype)
        assert field in refused.value.field


def test_without_room_a_shared_array_is_an_ordinary_one(tmp_path):
    with LocalDaemon(tmp_path, "--shared-memory-socket", "off") as off, cumulus.connect(off.address) as c:
        array = c.allocate_shared((600, 800), np.float32)
        array[:] = 3
        assert mappings_in("self") == [] and np.array_equal(c.upload(array).numpy(), array)


def test_it_is_of_this_machine_alone():
    for address in ("unix:/tmp/socket", "localhost:1", "127.0.0.1:50651", "127.3.2.1:1", "[::1]:50651"):
        assert is_on_this_machine(address), address
    for address in ("gpu7:50651", "10.0.0.7:1", "[fe80::1]:1", "localhost.example:1", "1127.0.0.1:1"):
        assert not is_on_this_machine(address), address


def test_for_asyncio(daemon):
    import asyncio

    arrays = [some_bytes(2 * MIB + i) for i in range(6)]

    async def run():
        async with cumulus.aio.connect(daemon.address) as c:
            own = await c.allocate_shared(MIB, np.uint8)
            own[:] = 5
            buffers = await asyncio.gather(*(c.upload(array) for array in (*arrays, own)))
            return await asyncio.gather(*(each.numpy() for each in buffers))

    before = daemon.moved()
    backs = asyncio.run(run())
    assert all(np.array_equal(back, array) for back, array in zip(backs, arrays)) and (backs[-1] == 5).all()
    assert daemon.moved()["upload", "shared"] > before["upload", "shared"] + 5 * MIB
