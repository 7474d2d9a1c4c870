"""Arrays on their way to the server and back, handles, image files, and errors."""

import contextlib
import copy
import os
import pickle
import signal

import cumulus
import numpy as np
import pytest
from cumulus import daemon as daemon_module
from cumulus import errors

RANDOM = np.random.default_rng(6)
DTYPES = ["uint8", "uint16", "uint32", "uint64", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4, 5), (0, 4), (1, 1), ()])
def test_round_trip(client, dtype, shape):
    array = (RANDOM.random(shape) * 100).astype(dtype)
    resident = client.upload(array)
    assert resident.shape == shape and resident.dtype == dtype and resident.nbytes == array.nbytes
    back = resident.numpy()
    assert back.dtype == array.dtype and np.array_equal(back, array) and back.flags.writeable


def test_large_arrays(client):
    array = RANDOM.random((1500, 1501), dtype=np.float32)
    assert np.array_equal(client.upload(array).numpy(), array)
    assert client.blur(array, 2).shape == array.shape


def test_views_and_byte_orders(client):
    array = RANDOM.random((64, 48))
    for view in (array.T, array[::2, ::-3], array[3:, 5:], array.astype(">f8"), np.asfortranarray(array)):
        assert np.array_equal(client.upload(view).numpy(), view)


def test_masked_elements_are_refused(client):
    masked = np.ma.masked_less(np.arange(12.0).reshape(3, 4), 2)
    with pytest.raises(errors.InvalidArgument, match=r"image: has 2 masked elements.*image\.filled\(0\)"):
        client.blur(masked, 2)
    assert np.array_equal(client.upload(np.ma.array(masked.data)).numpy(), masked.data)


def test_contiguous_views_are_not_copied():
    from cumulus.arrays import as_array, bytes_of

    array = RANDOM.random((64, 48))
    for view in (array, array[10:20], array.view(np.uint64), array[:, :].reshape(48, 64)):
        assert np.shares_memory(bytes_of(as_array(view, "array")), array)
    read_only = array[10:20]
    read_only.flags.writeable = False
    assert np.shares_memory(as_array(read_only, "array"), array)


def test_read_only_arrays(client):
    array = np.frombuffer(RANDOM.bytes(1 << 21), np.uint8)
    assert np.array_equal(client.upload(array).numpy(), array)


def test_buffers_are_taken_by_dlpack(client):
    array = RANDOM.random((5, 6), dtype=np.float32)
    taken = np.from_dlpack(client.upload(array))
    assert taken.dtype == array.dtype and np.array_equal(taken, array)


def test_into_an_array(client):
    array = RANDOM.random((5, 6))
    out = np.empty((5, 6))
    resident = client.upload(array)
    assert resident.numpy(out) is out and np.array_equal(out, array)
    for wrong in (np.empty((6, 5)), np.empty((5, 6), np.float32), np.empty((5, 12))[:, ::2]):
        with pytest.raises(cumulus.InvalidArgument, match="out:"):
            resident.numpy(wrong)


def test_handles_chain_without_a_transfer(client, monkeypatch):
    image = RANDOM.random((300, 400), dtype=np.float32)
    resident = client.upload(image)
    for name in ("upload", "download"):
        monkeypatch.setattr(f"cumulus.transfer.{name}", lambda *_, **__: pytest.fail("a transfer"))
    table = client.blur(resident, 8).summed_area_table()
    boxes = resident.box_filter(3).bspline_prefilter()
    tree = client.sampling_table(resident.blur(2))
    monkeypatch.undo()
    assert np.abs(table.numpy() - client.blur(image, 8).astype(float).cumsum(0).cumsum(1)).max() < 0.1
    assert isinstance(boxes, cumulus.Buffer) and tree.sample(5).pdf.shape == (5,)


def test_released_buffers_are_gone(client):
    resident = client.upload(np.zeros(10))
    name = resident.name
    resident.delete()
    from cumulus.v1 import sessions_pb2

    for _ in range(200):
        try:
            client.call("/cumulus.v1.Sessions/GetBuffer", sessions_pb2.GetBufferRequest(name=name), bytes)
        except cumulus.NotFound:
            return
    pytest.fail("the buffer is still there")


def test_image_files(client, sunrise):
    by_path = client.blur(sunrise, 4)
    assert by_path.shape == (512, 1024, 3) and by_path.dtype == np.float32
    assert np.array_equal(client.blur(sunrise.read_bytes(), 4), by_path)
    red = client.blur(cumulus.EncodedImage(sunrise, channels=("R",)), 4)
    assert np.array_equal(red[..., 0], by_path[..., 0]) and red.shape[2] == 1
    assert client.sampling_table(str(sunrise), invalid_weights="clamp").header.width == 1024


def test_a_directory_of_sessions_is_left_empty(client):
    with cumulus.connect(client.address) as other:
        kept = other.upload(np.zeros(100))
        assert kept.client is other
        with pytest.raises(cumulus.InvalidArgument, match="another client"):
            client.run_length(kept)


@pytest.mark.parametrize("call, field, cure", [
    (lambda c: c.blur(np.zeros((4, 4), np.int64), 2), "image", "float32"),
    (lambda c: c.blur(np.zeros(4, np.float32), 2), "image", "height, width"),
    (lambda c: c.blur(np.zeros((4, 4, 5), np.float32), 2), "image", "1 to 4"),
    (lambda c: c.blur(np.zeros((4, 4), np.float32), 0.1), "sigma", "0.5 to 10000"),
    (lambda c: c.blur(c.upload(np.zeros((4, 4), np.float32)), (9, 0.1)), "sigma", "0.5 to 10000"),
    (lambda c: c.blur(np.zeros((4, 4), np.float32), 2, derivative=3), "derivative", "0, 1 or 2"),
    (lambda c: c.blur(np.zeros((4, 4), np.float32), 2, algorithm="filter-on-chip", max_truncation_error=2), "max_truncation_error", "1"),
    (lambda c: c.filter(np.zeros((4, 4), np.float32), x=cumulus.Gaussian(0.1)), "x.sigma", "0.5 to 10000"),
    (lambda c: c.filter(np.zeros((4, 4), np.float32), y=cumulus.Exponential(2)), "y.decay", "0.99999"),
    (lambda c: c.bspline_prefilter(np.zeros((4, 4), np.float32), 4), "degree", "3 or 5"),
    (lambda c: c.box_filter(np.zeros((4, 4), np.float32), (1, -1)), "radius", "0 to"),
    (lambda c: c.box_filter(np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32), max_radius=-1), "max_radius", "0 to"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32), luminance=(1, 2)), "luminance", "3"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32), method="alias", guide_sizes=(0, 5)), "guide_sizes[1]", "0"),
    (lambda c: c.blur(np.zeros((4, 4), bool), 2), "image", "float32"),
    (lambda c: c.box_filter(np.zeros((4, 4), np.float32), 2.5), "radius", "a whole number, or two"),
    (lambda c: c.box_filter(np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32), max_radius=2.5), "max_radius", "a whole number"),
    (lambda c: c.kd_tree(np.zeros((4, 3)), leaf_size=2.5), "leaf_size", "a whole number"),
    (lambda c: c.kd_tree(np.zeros((4, 3))).query(np.zeros((4, 3)), k=3.0), "k", "a whole number"),
    (lambda c: c.kd_tree(np.zeros((4, 3))).query(np.zeros((4, 3)), period=1.0), "period", "for each axis"),
    (lambda c: c.kd_tree(np.zeros((4, 3))).counts(np.zeros((4, 3)), "wide"), "radius", "a number"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32)).sample(4, seed=-1), "seed", "0 to"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32)).pdf(np.zeros((4, 2)), layer=-1), "layer", "0 to"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32), guide_sizes=2.5), "guide_sizes", "a whole number, or two"),
    (lambda c: c.kd_tree(np.zeros((4, 3))).query(np.zeros(3)), "queries", "[queries, 3]"),
    (lambda c: c.summed_area_table(np.ones((4, 4))).sum([0, 0, 1, 1]), "rectangles", "[count, 4]"),
    (lambda c: c.blur(np.zeros((4, 4), np.float32), 0), "sigma", "along one axis at least"),
    (lambda c: c.blur(np.zeros((4, 4), np.float32), 2, timeout="1"), "timeout", "a number of seconds"),
    (lambda c: c.blur(np.zeros((4, 4), np.float32), 2, timeout=float("nan")), "timeout", "a number of seconds"),
    (lambda c: c.upload(np.zeros(4), ttl=0), "ttl", "more than 0 and at most"),
    (lambda c: c.upload(np.zeros(4), ttl="1"), "ttl", "a number of seconds"),
    (lambda c: cumulus.connect(connect_timeout="3"), "connect_timeout", "a number of seconds"),
    (lambda c: cumulus.connect(connections="2"), "connections", "at least 1"),
    (lambda c: cumulus.connect(backend="gpu"), "backend", "'cpu', 'cuda' or 'auto'"),
    (lambda c: cumulus.connect(50651), "address", "as a str"),
    (lambda c: cumulus.connect("http://localhost:50651"), "server", "without http://"),
    (lambda c: c.blur(np.zeros((4, 4), np.float32), (1, 2, 3)), "sigma", "along x, along y"),
    (lambda c: c.blur(np.zeros((4, 4), np.float32), 2, boundary="wrap"), "boundary", "'repeat'"),
    (lambda c: c.filter(np.zeros((4, 4), np.float32), x="gaussian"), "x", "Gaussian"),
    (lambda c: c.kd_tree(np.zeros((4, 3), int)), "points", "float32"),
    (lambda c: c.kd_tree(np.zeros((4, 3))).query(np.zeros((4, 2))), "queries", "[queries, 3]"),
    (lambda c: c.kd_tree(np.zeros((4, 3))).query(np.zeros((4, 3)), k=200), "k", "128"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32)).sample(0), "points", "at least 1"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32)).local().sample(np.zeros((4, 3))), "points", "[count, 2]"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32)).local().pdf(np.zeros((4, 4))), "points", "directions"),
    (lambda c: c.summed_area_table(np.ones((4, 4))).sum(np.zeros((3, 3), int)), "rectangles", "[count, 4]"),
    (lambda c: c.run_length(np.full((4, 4), 255, np.uint8)).to_coco(), "mask", "mask > 0"),
    (lambda c: c.upload(np.zeros(4, complex)), "array", "float32"),
    (lambda c: c.upload(object()), "array", "an array of numbers"),
    (lambda c: c.kd_tree("points.ply"), "points", "an array of numbers"),
    (lambda c: c.run_length(b"abc"), "array", "an array of numbers"),
    (lambda c: c.blur(None, 2), "image", "an array of numbers"),
    (lambda c: c.blur(b"no image", 2), "image", "EXR"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32)).pdf([0, 1, 0]), "points", "[count, 3], directions"),
    (lambda c: c.sampling_table(np.ones((4, 4), np.float32)).sample([0.5, 0.5]), "points", "[count, 2]"),
])
def test_wrong_arguments_say_field_and_cure(client, call, field, cure):
    with pytest.raises(cumulus.InvalidArgument) as refused:
        call(client)
    assert refused.value.field == field and cure in (refused.value.cure or str(refused.value)), str(refused.value)
    assert field in str(refused.value) and isinstance(refused.value, ValueError)


def test_one_number_is_one_whatever_holds_it(client):
    table = client.sampling_table(np.ones((4, 8), np.float32))
    assert np.array_equal(table.pdf([[0, 1, 0]]), table.pdf([[0.0, 1.0, 0.0]]))
    image = RANDOM.random((8, 9), dtype=np.float32)
    assert np.array_equal(client.blur(image, np.array(2.0)), client.blur(image, 2))
    boxes = [[0, 0, 2, 2], [1, 1, 3, 3], [0, 0, 0, 0]]
    assert np.array_equal(client.intersect_clips([1, 0, 2], boxes)[1], [1, 1, 2, 2])
    assert client.match_brackets([1, 2, -2, -1]).partner.tolist() == [3, 2, 1, 0]
    with pytest.raises(cumulus.InvalidArgument, match="text: has elements of int64"):
        client.match_brackets([1, 2**40])


def test_a_channel_that_a_file_lacks_is_named(client, sunrise):
    with pytest.raises(cumulus.InvalidArgument) as refused:
        client.blur(cumulus.EncodedImage(sunrise, channels=("Z",)), 2)
    assert refused.value.field == "image.channels[0]" and "image.channels[0]: 'Z' is not in the image" in str(refused.value)


def test_texts_of_the_server_are_in_words_of_python(client):
    with pytest.raises(cumulus.FailedPrecondition, match="unless non_finite is 'clamp' or 'keep'$"):
        client.blur(np.full((4, 4), np.nan, np.float32), 2)
    with pytest.raises(cumulus.FailedPrecondition, match="unless invalid_weights is 'clamp'$"):
        client.sampling_table(np.full((4, 4), np.nan, np.float32))


def test_what_is_on_a_server_does_not_pickle(client):
    resident = client.upload(np.zeros(5))
    for each in (resident, client, client.kd_tree(np.zeros((4, 2)))):
        with pytest.raises(TypeError, match="which no pickle or copy has"):
            pickle.dumps(each)
    with pytest.raises(TypeError, match="which no pickle or copy has"):
        copy.copy(resident)  # which would delete it twice
    table = client.sampling_table(np.ones((4, 4), np.float32)).local()
    assert np.array_equal(pickle.loads(pickle.dumps(table)).table, table.table)


def test_a_buffer_is_of_no_use_once_it_has_been_deleted(client):
    resident = client.upload(np.zeros((4, 4), np.float32))
    resident.delete()
    for use in (resident.numpy, lambda: client.blur(resident, 2), lambda: client.blur(resident, 2, timeout=9), lambda: client.pipeline().blur(resident, 2)):
        with pytest.raises(cumulus.NotFound, match="has been deleted here"):
            use()


def test_arrays_of_truth_values_are_called_so(client):
    with pytest.raises(cumulus.InvalidArgument, match="has elements of bool; float16"):
        client.blur(np.zeros((4, 4), bool), 2)


def test_unanswerable_input_says_where(client):
    with pytest.raises(cumulus.FailedPrecondition) as refused:
        client.match_brackets("([)")
    assert refused.value.reason == "UNBALANCED_BRACKETS" and refused.value.metadata["position"] == "2"
    weights = np.ones((4, 4), np.float32)
    weights[2, 3] = np.nan
    with pytest.raises(cumulus.FailedPrecondition) as refused:
        client.sampling_table(weights)
    assert (refused.value.metadata["row"], refused.value.metadata["column"]) == ("2", "3")


def test_options_that_no_operation_has(client):
    with pytest.raises(TypeError, match="unexpected argument 'time_out'"):
        client.blur(np.zeros((4, 4), np.float32), 2, time_out=3)


def test_call_options(client):
    image = client.upload(np.zeros((4, 4), np.float32))
    assert client.blur(image, 2, timeout=10, request_id="test", priority="batch", ttl=5, evictable=True).shape == (4, 4)
    assert client.timings.device == "cpu"


def test_a_forked_child_is_told_to_connect_by_itself(client):
    resident = client.upload(np.zeros((4, 4), np.float32))
    for call in (lambda: client.blur(np.zeros((4, 4), np.float32), 2), lambda: client.upload(np.zeros(1 << 20)), resident.numpy):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                call()
            except cumulus.Unavailable as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.close(write)
        with open(read, "rb") as said:
            assert b"from which this one was forked; connect() in each process" in said.read()
        os.waitpid(child, 0)
    assert not resident.numpy().any()


def test_several_threads(client):
    import concurrent.futures

    images = [RANDOM.random((200, 300), dtype=np.float32) for _ in range(16)]
    alone = [client.blur(image, 3) for image in images]
    with cumulus.connect(client.address, connections=3) as c, concurrent.futures.ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda image: c.blur(c.upload(image), 3).numpy(), images))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together))


def test_a_closed_client_says_so(client):
    c = cumulus.connect(client.address)
    resident = c.upload(np.zeros(5))
    c.close()
    c.close()
    for call in (lambda: c.blur(np.zeros((4, 4), np.float32), 2), lambda: c.upload(np.zeros(5)), resident.numpy):
        with pytest.raises(cumulus.Unavailable, match="has been closed"):
            call()
    resident.delete()


def test_a_private_daemon_ends_with_its_client():
    with cumulus.connect(backend="cpu") as c:
        daemon = c._daemon
        folder, pid = daemon._folder, daemon.pid
        assert folder.is_dir() and pid > 0
    assert not folder.exists() and daemon.pid == 0


def test_a_private_daemon_where_the_temporary_folder_has_a_long_name(tmp_path, monkeypatch):
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with cumulus.connect(backend="cpu") as c:
        assert c.address.startswith("unix:/tmp/cumulus-")
    assert not any(folder.iterdir())


def test_why_a_private_daemon_did_not_start_is_said_without_the_rest_of_its_log(tmp_path, monkeypatch):
    program = tmp_path / "cumulusd"
    program.write_text("#!/bin/sh\necho '2026-11-28 20:08:31.221 info open files: at most 20000'\necho 'cumulusd: no GPU; use --backend cpu'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr("cumulus.daemon.find_daemon", lambda: str(program))
    with pytest.raises(cumulus.Unavailable) as refused:
        cumulus.connect(backend="cuda")
    assert str(refused.value) == "the private cumulusd did not start: cumulusd: no GPU; use --backend cpu"


@pytest.mark.parametrize("library", [False, True])
def test_what_became_of_a_private_daemon_is_said(library, monkeypatch):
    if not library:
        monkeypatch.setenv("CUMULUS_C_LIBRARY", "")
    with cumulus.connect(backend="cpu") as c:
        resident = c.upload(np.ones((8, 8), np.float32))
        os.kill(c._daemon.pid, signal.SIGKILL)
        with pytest.raises(cumulus.Unavailable) as error:
            for _ in range(40):  # from the sixteenth on by the library, where there is one
                with contextlib.suppress(cumulus.NotFound):
                    resident.blur(2)
        assert "the private cumulusd has ended, by SIGKILL" in str(error.value)
        assert f"its log, until the client is closed, is {c._daemon._folder / 'log'}" in str(error.value)
        assert error.value.cure == "connect() anew, which starts another"
        assert "start cumulusd" not in str(error.value)


@pytest.mark.parametrize("code, how", [(0, "with exit code 0"), (3, "with exit code 3"), (-9, "by SIGKILL"), (-99, "by signal 99")])
def test_how_a_process_has_ended(code, how):
    assert daemon_module._how(code) == how


def test_a_private_daemon_that_stands_still_is_not_said_to_have_ended():
    with cumulus.connect(backend="cpu") as c:
        assert f"process {c._daemon.pid}) does not answer" in c._daemon._explain()[0]
        address = c.address
        refused = errors.from_status("UNAVAILABLE", "failed to connect", b"", address)
        assert "does not answer" in str(refused)
    after = errors.from_status("UNAVAILABLE", "failed to connect", b"", address)
    assert "start cumulusd at" in after.cure  # nobody knows of it any more


def test_a_private_daemon_ends_with_a_killed_process(tmp_path):
    import os
    import signal
    import subprocess
    import sys
    import time

    script = "import cumulus, sys, time; c = cumulus.connect(backend='cpu'); print(c._daemon.pid, flush=True); time.sleep(60)"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
    daemon = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    for _ in range(500):
        try:
            os.kill(daemon, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("the daemon outlives its client")
