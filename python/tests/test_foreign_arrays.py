"""Arrays of other libraries: in host memory without a copy, on a GPU by one to the host."""

import cumulus
import numpy as np
import pytest
from cumulus.arrays import as_array, bytes_of

RANDOM = np.random.default_rng(6)
ON_A_GPU = (2, 0)


class Dlpack:
    """An array of another library, in host memory, by DLPack of before 2023, which has no options."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Refusing(Dlpack):
    """As PyTorch's tensor that requires grad, in whatever way it is asked, or one of the device "meta"."""

    def __init__(self, array, without_elements):
        super().__init__(array)
        self.without_elements = without_elements

    def __dlpack__(self, stream=None):
        raise BufferError("Can't export tensors that require gradient")

    def __dlpack_device__(self):
        if self.without_elements:
            raise ValueError("Unknown device type meta for Dlpack")
        return super().__dlpack_device__()

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


class Interface:
    """By the older protocol of the same, or by that of CUDA's memory."""

    def __init__(self, array, name, **methods):
        setattr(self, name, array.__array_interface__)
        self.array = array
        self.__dict__.update(methods)


class OnAGpu(Dlpack):
    """On a GPU, of a library that copies to where DLPack asks."""

    def __init__(self, array):
        super().__init__(array)
        self.copies = 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device != (1, 0) or not copy:
            raise BufferError("it is on a GPU")
        self.copies += 1
        return self.array.copy().__dlpack__()

    def __dlpack_device__(self):
        return ON_A_GPU


class OldOnAGpu(Dlpack):
    """Of a library whose DLPack leaves arrays where they are."""

    def __init__(self, array, **methods):
        super().__init__(array)
        self.__dict__.update(methods)

    def __dlpack_device__(self):
        return ON_A_GPU

    def __dlpack__(self, stream=None):
        raise pytest.fail("numpy would read a GPU's memory")


def test_those_in_host_memory_are_not_copied(client):
    array = RANDOM.random((64, 48))
    for foreign in (Dlpack(array), Interface(array, "__array_interface__"), memoryview(array)):
        assert np.shares_memory(bytes_of(as_array(foreign, "array")), array)
        assert np.array_equal(client.upload(foreign).numpy(), array)


def test_those_on_a_gpu_are_copied_once_by_their_library(client):
    array = RANDOM.random((64, 48), dtype=np.float32)
    foreign = OnAGpu(array)
    assert np.array_equal(client.upload(foreign).numpy(), array) and foreign.copies == 1
    assert np.array_equal(client.blur(foreign, 2), client.blur(array, 2)) and foreign.copies == 2


@pytest.mark.parametrize("method", ["cpu", "get", "copy_to_host", "numpy"])
@pytest.mark.parametrize("kind", ["of an older DLPack", "of CUDA's interface"])
def test_what_libraries_call_such_a_copy(client, kind, method):
    array = RANDOM.random((64, 48), dtype=np.float32)
    copy = {method: (lambda: Dlpack(array)) if method == "cpu" else lambda: array}
    foreign = OldOnAGpu(array, **copy) if kind == "of an older DLPack" else Interface(array, "__cuda_array_interface__", **copy)
    assert np.array_equal(client.upload(foreign).numpy(), array)


def test_every_operation_takes_them(client):
    image = RANDOM.random((32, 48), dtype=np.float32)
    gpu = OnAGpu
    assert np.array_equal(client.box_filter(gpu(image), 2), client.box_filter(image, 2))
    radii = np.full(image.shape, 2, np.float32)
    radius_map = gpu(radii)
    radius_map.ndim = 2
    assert np.array_equal(client.box_filter(image, radius_map), client.box_filter(image, radii))
    table = client.summed_area_table(gpu(image))
    rectangles = np.array([[0, 0, 9, 9], [3, 4, 30, 40]])
    assert np.array_equal(table.sum(gpu(rectangles)), table.sum(rectangles))
    points = RANDOM.random((100, 3))
    tree = client.kd_tree(gpu(points))
    assert np.array_equal(tree.query(gpu(points), k=3)[1], client.kd_tree(points).query(points, k=3)[1])
    mask = (image > 0.5).astype(np.uint8)
    assert client.run_length(gpu(mask)).area == client.run_length(mask).area
    sky = client.sampling_table(gpu(image))
    assert np.array_equal(sky.pdf(gpu(points[:, :2].copy())), sky.pdf(points[:, :2]))


@pytest.mark.parametrize("foreign", [OldOnAGpu, lambda array: Interface(array, "__cuda_array_interface__")])
def test_those_without_a_way_to_the_host_are_refused(client, foreign):
    for call in (client.upload, lambda value: client.blur(value, 2), lambda value: client.kd_tree(value)):
        with pytest.raises(cumulus.InvalidArgument, match="is an array on a GPU.*its copy in host memory"):
            call(foreign(RANDOM.random((5, 6))))


def test_what_numpy_cannot_take_says_why(client):
    class Bfloat16(Dlpack):
        def __dlpack__(self, **_):
            raise BufferError("bfloat16 is not supported")

    with pytest.raises(cumulus.InvalidArgument, match="array: cannot be taken .bfloat16 is not supported.") as error:
        client.upload(Bfloat16(np.zeros(3)))
    assert error.value.field == "array"


def test_what_dlpack_cannot_take_comes_as_an_array_where_it_is_one(client):
    class Mask:
        """Of bool, which the DLPack of older numpys lacks."""

        def __array__(self, *_, **__):
            return array

        def __dlpack__(self, **_):
            raise BufferError("bool is not supported")

        def __dlpack_device__(self):
            return (1, 0)

    array = RANDOM.random((5, 6)) > 0.5
    assert np.array_equal(client.upload(Mask()).numpy(), array)


def on_the_gpu(library, array):
    """The array there; skips without the library or a GPU."""
    module = pytest.importorskip(library)
    if library == "torch":
        if not module.cuda.is_available():
            pytest.skip("torch has no GPU")
        return module.from_numpy(array).cuda()
    if library == "cupy":
        try:
            return module.asarray(array)
        except Exception as problem:  # whatever CUDA says
            pytest.skip(f"cupy has no GPU: {problem}")
    if library == "numba.cuda":
        if not module.is_available():
            pytest.skip("numba has no GPU")
        return module.to_device(array)
    try:
        return module.device_put(array, module.devices("gpu")[0])
    except RuntimeError as problem:
        pytest.skip(f"jax has no GPU: {problem}")


@pytest.mark.parametrize("library", ["torch", "cupy", "numba.cuda", "jax"])
def test_arrays_of_the_libraries_themselves(client, library):
    array = RANDOM.random((300, 200), dtype=np.float32)
    there = on_the_gpu(library, array)
    assert np.array_equal(client.upload(there).numpy(), array)
    assert np.array_equal(client.blur(there, 3), client.blur(array, 3))
    transposed = there.T
    assert np.array_equal(client.upload(transposed).numpy(), array.T)
    if library == "torch":
        pytest.importorskip("torch")
        assert np.array_equal(client.upload(there.cpu()).numpy(), array)


def test_what_is_still_computed_there_is_waited_for(client):
    there = on_the_gpu("torch", np.eye(2048, dtype=np.float32))
    torch = pytest.importorskip("torch")
    with torch.cuda.stream(torch.cuda.Stream()):
        product = there
        for _ in range(50):
            product = product @ there
        assert np.array_equal(client.upload(product).numpy(), np.eye(2048, dtype=np.float32))


def test_results_go_to_a_gpu_by_way_of_the_host(client):
    torch = pytest.importorskip("torch")
    array = RANDOM.random((30, 20), dtype=np.float32)
    there = torch.from_dlpack(client.upload(array))
    assert np.array_equal(there.numpy(), array)
    if torch.cuda.is_available():
        assert np.array_equal(there.cuda().cpu().numpy(), array)


@pytest.mark.parametrize("without_elements, says", [(False, "tensor.detach"), (True, "device type meta")])
def test_what_a_library_refuses_is_said_of_the_argument(without_elements, says):
    with pytest.raises(cumulus.InvalidArgument, match=says) as refused:
        as_array(Refusing(RANDOM.random(4), without_elements), "image")
    assert refused.value.field == "image"
