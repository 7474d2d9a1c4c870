"""GPU memory that a daemon and this process share, on a GPU, with CuPy, PyTorch and JAX. Skips itself where there is none."""

import asyncio
import gc
import os
import subprocess
import sys
import threading

import cumulus
import cumulus.aio
import numpy as np
import pytest
from conftest import PROGRAMS
from cumulus import client_base
from cumulus.device_sharing import driver, transfers
from local_daemon import LocalDaemon, eventually

RANDOM = np.random.default_rng(13)
IMAGE = RANDOM.random((700, 1000), dtype=np.float32)
GRANULE = 2 << 20


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    if driver.load() is None:
        pytest.skip("no GPU here")
    if not (PROGRAMS / "cumulusd").exists():
        pytest.skip(f"{PROGRAMS / 'cumulusd'} has not been built")
    flags = ("--memory", "1G", "--memory-on-demand", "--shared-device-memory", "1G")
    with LocalDaemon(tmp_path_factory.mktemp("daemon"), *flags, backend="cuda") as running:
        if not running.started:
            pytest.skip("this cumulusd has no kernels for GPUs")
        yield running


@pytest.fixture
def c(daemon):
    with cumulus.connect(daemon.address) as connected:
        yield connected


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.fixture
def torch():
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("torch has no GPU")
    return module


@pytest.fixture
def never_by_the_host(monkeypatch):
    """Nothing that is uploaded may become numpy's here."""
    def refuse(value, *_, **__):
        pytest.fail(f"{type(value)} goes by the host")

    monkeypatch.setattr(client_base, "as_array", refuse)
    monkeypatch.setattr(transfers, "_MIN_BYTES", 1 << 20)


def reserved_bytes(c):
    c._take_capabilities()
    return c.capabilities.devices[0].reserved_bytes


# Without another library. First of all, so that no other has made a context.


@pytest.mark.parametrize("rows", [1, 700])
def test_an_import_is_what_a_download_brings(c, rows):
    blurred = c.upload(IMAGE[:rows]).blur(3)
    array = c.import_buffer(blurred)
    assert array.data % GRANULE == 0 and array.shape == (rows, 1000)
    assert np.array_equal(array.numpy(), blurred.numpy())


def test_an_import_counts_until_it_is_dropped(c):
    b = c.upload(IMAGE)
    before = reserved_bytes(c)
    array = c.import_buffer(b)
    more = c.allocate_device_array(GRANULE + 1, "uint8")
    assert not more.numpy().any()
    assert reserved_bytes(c) == before + 2 * GRANULE + 2 * GRANULE
    del more
    assert eventually(lambda: reserved_bytes(c) == before + 2 * GRANULE)
    b.delete()
    assert np.array_equal(array.numpy(), IMAGE)  # nobody takes it away from who has it


def environment():
    """Of a child that finds the same packages."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


CHILD = """
import sys, time, numpy as np, cumulus
c = cumulus.connect(sys.argv[1])
array = c.import_buffer(c.upload(np.zeros(64 << 20, np.uint8)))
print(array.nbytes, flush=True)
time.sleep(600)
"""


def test_what_a_killed_client_had_is_reclaimed(daemon, c):
    before = reserved_bytes(c)
    child = subprocess.Popen([sys.executable, "-c", CHILD, daemon.address], stdout=subprocess.PIPE, env=environment())
    assert child.stdout.readline() == b"67108864\n"
    assert eventually(lambda: reserved_bytes(c) == before + (64 << 20))  # the buffer is gone with its handle
    child.kill()
    child.wait()
    assert eventually(lambda: reserved_bytes(c) == before)


def test_it_is_off_unless_configured(tmp_path, daemon):
    with LocalDaemon(tmp_path, "--memory", "1G", "--memory-on-demand", backend="cuda") as other, cumulus.connect(other.address) as c:
        assert c.capabilities.max_shared_device_bytes == 0
        with pytest.raises(cumulus.FailedPrecondition, match="--shared-device-memory"):
            c.allocate_device_array(5, "uint8")
        with cumulus.connect(daemon.address) as first:
            frame = first.allocate_device_array(5, "uint8")
            with pytest.raises(cumulus.NotFound):
                c.upload_device_array(frame)
            assert not c.upload(frame).numpy().any()  # by the host


def test_from_threads_and_tasks(daemon, c):
    right = []
    b = c.upload(IMAGE)
    threads = [threading.Thread(target=lambda: right.append(np.array_equal(c.import_buffer(b).numpy(), IMAGE))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 4

    async def run():
        async with cumulus.aio.connect(daemon.address) as there:
            frame = await there.allocate_device_array(IMAGE.shape, IMAGE.dtype)
            array = await there.import_buffer(await there.upload(IMAGE))
            return array.numpy(), await (await there.upload_device_array(frame)).numpy()

    imported, zeros = asyncio.run(run())
    assert np.array_equal(imported, IMAGE) and not zeros.any()


# Out.


@pytest.mark.parametrize("dtype", cumulus.arrays.DTYPES)
def test_cupy_has_it_as_it_lies(c, cupy, dtype):
    values = RANDOM.integers(0, 100, (70, 30, 3)).astype(dtype)
    array = c.import_buffer(c.upload(values))
    taken = cupy.asarray(array)
    assert taken.data.ptr == array.data and taken.dtype == dtype
    assert np.array_equal(cupy.asnumpy(taken), values)
    by_dlpack = cupy.from_dlpack(c.import_buffer(c.upload(values), writable=True))
    by_dlpack += 1
    assert np.array_equal(cupy.asnumpy(by_dlpack), values + 1)


def test_torch_has_it_as_it_lies(c, torch):
    b = c.upload(IMAGE)
    array = c.import_buffer(b, writable=True)
    for taken in (torch.from_dlpack(array), torch.as_tensor(array, device="cuda")):
        assert taken.data_ptr() == array.data and np.array_equal(taken.cpu().numpy(), IMAGE)
    try:
        only_read = torch.from_dlpack(c.import_buffer(b))
    except BufferError as refusal:  # of a PyTorch whose DLPack has no flag for it
        assert "writable=True" in str(refusal)
    else:
        assert np.array_equal(only_read.cpu().numpy(), IMAGE)


def test_a_buffer_goes_where_dlpack_asks(c, torch, cupy):
    b = c.upload(IMAGE)
    there = torch.from_dlpack(b, device="cuda")
    assert there.is_cuda and np.array_equal(there.cpu().numpy(), IMAGE)
    there += 1  # nobody else's
    assert np.array_equal(b.numpy(), IMAGE)
    assert np.array_equal(torch.from_dlpack(b).numpy(), IMAGE)


def test_jax_has_it(c):
    jax = pytest.importorskip("jax")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        jax.devices("gpu")
    except RuntimeError as problem:
        pytest.skip(f"jax has no GPU: {problem}")
    taken = jax.dlpack.from_dlpack(c.import_buffer(c.upload(IMAGE), writable=True))
    assert np.array_equal(np.asarray(taken), IMAGE)
    assert np.array_equal(c.upload(taken).numpy(), IMAGE)


def test_it_stays_as_long_as_an_array_made_of_it(daemon, cupy):
    with cumulus.connect(daemon.address) as c:
        taken = cupy.asarray(c.import_buffer(c.upload(IMAGE)))
    gc.collect()
    assert np.array_equal(cupy.asnumpy(taken), IMAGE)


def test_its_end_waits_for_what_reads_it(c, cupy):
    there = cupy.random.random((3000, 3000), dtype=np.float32)
    b = c.upload(IMAGE)
    with cupy.cuda.Stream(non_blocking=True):
        for _ in range(50):
            there = there @ there
            there /= there.max()
        result = cupy.asarray(c.import_buffer(b)) * 2  # of which nothing is left but the kernel
    assert np.array_equal(cupy.asnumpy(result), IMAGE * 2)


def test_kernels_that_write_to_an_import_end_with_an_error(daemon, cupy):
    code = """
import sys, numpy as np, cupy, cumulus
c = cumulus.connect(sys.argv[1])
taken = cupy.asarray(c.import_buffer(c.upload(np.zeros(1 << 20, np.uint8))))
try:
    taken += 1
    cupy.cuda.Device().synchronize()
except cupy.cuda.runtime.CUDARuntimeError as error:
    print("cudaErrorIllegalAddress" in str(error), flush=True)
import os
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code, daemon.address], capture_output=True, text=True, timeout=120, env=environment())
    assert done.stdout == "True\n", done.stderr


# In.


def test_arrays_of_cupy_go_within_the_gpu(c, cupy, never_by_the_host):
    for dtype in ("uint8", "float16", "float64", "bool"):
        values = (RANDOM.random((2000, 1100)) * 2).astype(dtype)
        uploaded = c.upload(cupy.asarray(values))
        assert np.array_equal(uploaded.numpy(), values.view(np.uint8) if dtype == "bool" else values)


def test_operations_take_them(c, cupy, torch, never_by_the_host):
    with cumulus.connect(c.address) as other:
        wanted = other.upload_device_array(filled(other, cupy)).blur(3).numpy()
    for image in (cupy.asarray(IMAGE), torch.from_numpy(IMAGE).cuda()):
        assert np.array_equal(c.blur(image, 3), wanted)
        assert np.array_equal(c.upload(image).blur(3).numpy(), wanted)


def filled(c, cupy):
    frame = c.allocate_device_array(IMAGE.shape, IMAGE.dtype)
    cupy.asarray(frame)[...] = cupy.asarray(IMAGE)
    return frame


def test_an_array_of_ones_own_is_uploaded_again_and_again(c, cupy, torch, never_by_the_host):
    frame = filled(c, cupy)
    first = c.upload(frame)
    torch.from_dlpack(frame).add_(1)
    second = c.upload_device_array(frame, stream=torch.cuda.current_stream().cuda_stream)
    assert np.array_equal(first.numpy(), IMAGE) and np.array_equal(second.numpy(), IMAGE + 1)


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_what_is_still_computed_is_waited_for(c, library, never_by_the_host):
    module = pytest.importorskip(library)
    if library == "torch":
        there = module.eye(2048, device="cuda")
        scope = module.cuda.stream(module.cuda.Stream())
    else:
        there = module.eye(2048, dtype=np.float32)
        scope = module.cuda.Stream(non_blocking=True)
    (module.cuda if library == "torch" else module.cuda.Device()).synchronize()
    with scope:
        product = there
        for _ in range(50):
            product = product @ there
        product = product * 3
        uploaded = c.upload(product)
    assert np.array_equal(uploaded.numpy(), 3 * np.eye(2048, dtype=np.float32))


def test_what_is_not_dense_goes_by_the_host(c, cupy, torch):
    there = torch.from_numpy(np.tile(IMAGE, (2, 1))).cuda()
    for view in (there.T, cupy.asarray(there)[:, ::2]):
        assert np.array_equal(c.upload(view).numpy(), cupy.asnumpy(cupy.asarray(view)))
